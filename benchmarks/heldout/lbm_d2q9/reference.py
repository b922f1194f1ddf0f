"""The lattice step with rolled arrays in double precision."""

import numpy as np

SMALL: dict[str, int] = {"NX": 96, "NY": 60}
RTOL: float = 1e-4

_VELOCITIES = np.array(
    [[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, 1], [-1, -1], [1, -1]]
)
_WEIGHTS = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
_OPPOSITE = [0, 3, 4, 1, 2, 7, 8, 5, 6]


def expected(
    inputs: list[np.ndarray | np.generic | None], parameters: dict[str, int]
) -> dict[int, np.ndarray]:
    """Return the distributions after one step."""
    shape = (parameters["NY"], parameters["NX"])
    f = np.asarray(inputs[0], dtype=np.float64).reshape(*shape, 9)
    f = np.moveaxis(f, 2, 0)
    solid = np.asarray(inputs[2]).reshape(shape) != 0
    omega = float(np.asarray(inputs[5]))
    pulled = np.stack([np.roll(f[q], (cy, cx), (0, 1)) for q, (cx, cy) in enumerate(_VELOCITIES)])
    rho = pulled.sum(axis=0)
    u = np.tensordot(_VELOCITIES.T, pulled, axes=1) / rho
    along = np.tensordot(_VELOCITIES, u, axes=1)
    shape_term = 1.0 + 3.0 * along + 4.5 * along**2 - 1.5 * (u**2).sum(axis=0)
    relaxed = (1.0 - omega) * pulled + omega * rho * _WEIGHTS[:, None, None] * shape_term
    result = np.where(solid, pulled[_OPPOSITE], relaxed)
    return {1: np.moveaxis(result, 0, 2).astype(np.float32).reshape(-1)}
