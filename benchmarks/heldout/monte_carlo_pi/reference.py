"""The same random sequence, advanced for all work-items together."""

import numpy as np

SMALL: dict[str, int] = {"GROUPS": 12, "DRAWS": 100}
RTOL: float = 0.0

_MULTIPLIER = 6364136223846793005
_INCREMENT = 1442695040888963407
_MODULUS = 1 << 64


def _compute_leap(steps: int) -> tuple[int, int]:
    """Compute multiplier and increment of several steps at once."""
    multiplier, increment = 1, 0
    for _ in range(steps):
        multiplier = multiplier * _MULTIPLIER % _MODULUS
        increment = (increment * _MULTIPLIER + _INCREMENT) % _MODULUS
    return multiplier, increment


def expected(
    inputs: list[np.ndarray | np.generic | None], parameters: dict[str, int]
) -> dict[int, np.ndarray]:
    """Return the number of hits of every work-group."""
    items = parameters["GROUPS"] * 64
    value = int(np.asarray(inputs[2]))
    states: list[int] = []
    for _ in range(items):
        value = (value * _MULTIPLIER + _INCREMENT) % _MODULUS
        states.append(value)
    state = np.array(states, dtype=np.uint64)
    m, c = (np.uint64(number) for number in _compute_leap(items))
    hits = np.zeros(items, dtype=np.uint32)
    for _ in range(parameters["DRAWS"]):
        x = state >> np.uint64(33)
        state = state * m + c
        y = state >> np.uint64(33)
        state = state * m + c
        hits += x * x + y * y < np.uint64(1 << 62)
    return {0: hits.reshape(-1, 64).sum(axis=1, dtype=np.uint32)}
