"""The kick of an n-body step in NumPy."""

import numpy as np

SMALL: dict[str, int] = {"N": 512}
RTOL: float = 1e-5


def expected(
    inputs: list[np.ndarray | np.generic | None], parameters: dict[str, int]
) -> dict[int, np.ndarray]:
    """Return the velocities after one kick."""
    bodies, velocity, kicked, _, softening, step_s = (np.asarray(value) for value in inputs)
    place, mass = bodies.reshape(-1, 4)[:, :3], bodies.reshape(-1, 4)[:, 3]
    distance = place[np.newaxis] - place[:, np.newaxis]
    weight = mass * (np.square(distance).sum(axis=2) + softening) ** -1.5
    result = velocity.reshape(-1, 4).copy()
    result[:, :3] += step_s * np.einsum("ij,ijk->ik", weight, distance)
    return {2: result.reshape(kicked.shape)}
