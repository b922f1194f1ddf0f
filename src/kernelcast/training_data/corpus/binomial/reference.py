"""Binomial trees, folded back level by level for all options at once."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value

_RISK_FREE, _VOLATILITY = 0.02, 0.30


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the prices."""
    sample = np.asarray(values[0], dtype=np.float64).ravel()
    steps = parameters["LOCAL0"] - 2
    stock, strike, years = (
        low * (1.0 - sample) + high * sample for low, high in ((5, 30), (1, 100), (0.25, 10))
    )
    time_step = years / steps
    spread = _VOLATILITY * np.sqrt(time_step)
    growth, up = np.exp(_RISK_FREE * time_step), np.exp(spread)
    chance_up = (growth - 1.0 / up) / (up - 1.0 / up)
    leaves = np.arange(steps + 1)[:, np.newaxis]
    level = np.maximum(stock * np.exp(spread * (2 * leaves - steps)) - strike, 0.0)
    for _ in range(steps):
        level = (chance_up * level[1:] + (1.0 - chance_up) * level[:-1]) / growth
    return {1: level[0].astype(np.float32)}


REFERENCES = {"binomial": Reference(expected=expected, small={"GROUPS": 64}, tolerance=1e-3)}
