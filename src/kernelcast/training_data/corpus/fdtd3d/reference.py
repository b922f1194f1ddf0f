"""The stencil by shifted copies of the volume."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the volume after a step; the padding keeps what was there."""
    edge, depth, radius = (parameters[name] for name in ("EDGE", "DEPTH", "RADIUS"))
    shape = tuple(extent + 2 * radius for extent in (depth, edge, edge))
    output, volume = (np.array(value).reshape(shape) for value in values[:2])
    weights = np.asarray(values[2], dtype=np.float64)
    inner = tuple(slice(radius, radius + extent) for extent in (depth, edge, edge))
    result = weights[0] * volume[inner]
    for axis in range(3):
        for distance in range(1, radius + 1):
            for shift in (-distance, distance):
                result += weights[distance] * np.roll(volume, shift, axis)[inner]
    output[inner] = result
    return {0: output}


REFERENCES = {
    "finite_differences": Reference(
        expected=expected, small={"EDGE": 64, "DEPTH": 10}, tolerance=1e-5
    )
}
