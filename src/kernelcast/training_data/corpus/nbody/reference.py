"""The step with all pairs at once."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return new positions and velocities."""
    position, velocity = (np.asarray(value, dtype=np.float64) for value in values[2:4])
    time_step, damping, softening = (float(np.asarray(value)) for value in values[4:7])
    assert len(position) == parameters["BODIES"]
    place, mass = position[:, :3], position[:, 3]
    away = place[np.newaxis] - place[:, np.newaxis]
    square = np.sum(away**2, axis=2) + softening
    acceleration = np.zeros_like(position)
    acceleration[:, :3] = np.einsum("ijk,ij->ik", away, mass / square**1.5)
    new_velocity = (velocity + acceleration * time_step) * damping
    new_position = position + new_velocity * time_step
    return {0: new_position.astype(np.float32), 1: new_velocity.astype(np.float32)}


REFERENCES = {"nbody": Reference(expected=expected, small={"BODIES": 1024}, tolerance=1e-4)}
