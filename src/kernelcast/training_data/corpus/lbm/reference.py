"""Lattice-Boltzmann steps in NumPy, all velocities from one table each."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.corpus.lbm.inputs import DRIVEN, OBSTACLE
from kernelcast.training_data.reference import Array, Reference, Value

OMEGA = 1.85
# x, y, z; each velocity with an odd index is followed by its opposite
VELOCITIES = np.array([
    (0, 0, 0), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1),
    (1, 1, 0), (-1, -1, 0), (-1, 1, 0), (1, -1, 0), (1, 0, 1), (-1, 0, -1),
    (-1, 0, 1), (1, 0, -1), (0, 1, 1), (0, -1, -1), (0, -1, 1), (0, 1, -1),
])  # fmt: skip
OPPOSITES = [0, *(q + 1 if q % 2 else q - 1 for q in range(1, 19))]
# by the number of axes along which a velocity moves
WEIGHTS = np.array([1 / 3, 1 / 18, 1 / 36])[np.abs(VELOCITIES).sum(axis=1)]


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the distributions after the step; what no cell sends is as before."""
    source, flags, target = (np.asarray(value) for value in values[:3])
    nx, layer = parameters["NX"], parameters["NX"] * parameters["NY"]
    cells = np.arange(flags.size) + 2 * layer
    before = source.reshape(19, -1)[:, cells].astype(np.float64)
    after = np.where(flags & OBSTACLE, before[OPPOSITES], _collide(before, flags))
    result = target.reshape(19, -1).copy()
    shifts = VELOCITIES @ np.array([1, nx, layer])
    for q, shift in enumerate(shifts):
        result[q, cells + shift] = after[q]
    return {2: result.reshape(-1)}


def _collide(before: Array, flags: Array) -> Array:
    density = before.sum(axis=0)
    velocity = VELOCITIES.T @ before / density
    velocity[:, (flags & DRIVEN) > 0] = np.array([[0.005], [0.002], [0.0]])
    along = VELOCITIES @ velocity
    speed2 = (velocity**2).sum(axis=0)
    wanted = WEIGHTS[:, None] * density * (1 + 3 * along + 4.5 * along**2 - 1.5 * speed2)
    relaxed: Array = (1 - OMEGA) * before + OMEGA * wanted
    return relaxed


RELAXATION, INTERFACE_WIDTH = 1.25, 4.0
SENDING = np.array([
    (0, 0, 0), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1),
    (1, 1, 1), (-1, -1, -1), (1, 1, -1), (-1, -1, 1), (1, -1, 1), (-1, 1, -1),
    (-1, 1, 1), (1, -1, -1),
])  # fmt: skip
SHARES = np.array([2 / 9, 1 / 9, 0, 1 / 72])[np.abs(SENDING).sum(axis=1)]


def track_interface(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return distributions and phase field after the step; margins are as before."""
    source, field, target, new_field = (np.asarray(value) for value in values[:4])
    velocity = np.asarray(values[7:10], dtype=np.float64)
    nx, layer = parameters["NX"], parameters["NX"] * parameters["NY"]
    cells = np.arange(layer * parameters["NZ"]) + 2 * layer
    steps = np.array([1, nx, layer])
    before = np.stack(
        [
            one[cells - shift]
            for one, shift in zip(source.reshape(15, -1), SENDING @ steps, strict=True)
        ]
    )
    gradient = np.stack([0.5 * (field[cells + by] - field[cells - by]) for by in steps])
    normal = gradient / (np.sqrt((gradient**2).sum(axis=0)) + 1e-12)
    sharpening = (1 - 4 * (field[cells] - 0.5) ** 2) / INTERFACE_WIDTH
    moved = before.sum(axis=0) * (1 + 3 * (SENDING @ velocity))[:, np.newaxis]
    wanted = SHARES[:, np.newaxis] * (moved + sharpening * (SENDING @ normal))
    after = before + RELAXATION * (wanted - before)
    result, phase = target.reshape(15, -1).copy(), new_field.copy()
    result[:, cells], phase[cells] = after, after.sum(axis=0)
    return {2: result.reshape(-1), 3: phase}


REFERENCES = {
    "stream_collide": Reference(expected=expected, small={"NZ": 2}, tolerance=1e-4),
    "track_interface": Reference(expected=track_interface, small={"NZ": 2}, tolerance=1e-10),
}
