"""The Coulomb potential of a slice in NumPy."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the earlier energies plus every atom's."""
    _, _, spacing, energy, atoms = (np.asarray(value) for value in values)
    ticks = float(spacing) * np.arange(parameters["N"])
    total = energy.reshape(ticks.size, ticks.size).astype(np.float64)
    for x, y, beside, charge in atoms.astype(np.float64):
        total += charge / np.sqrt((ticks - x) ** 2 + ((ticks - y) ** 2)[:, None] + beside)
    return {3: total.reshape(-1).astype(energy.dtype)}


REFERENCES = {"cp": Reference(expected=expected, small={"N": 128, "ATOMS": 40}, tolerance=1e-4)}
