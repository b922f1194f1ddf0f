"""The row filter by differences of running sums."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the filtered image."""
    width, radius = parameters["WIDTH"], parameters["RADIUS"]
    image = np.asarray(values[0]).reshape(-1, width, 4).astype(np.int64)
    padded = np.pad(image, ((0, 0), (radius + 1, radius), (0, 0)))
    running = np.cumsum(padded, axis=1)
    sums = running[:, 2 * radius + 1 :] - running[:, : -2 * radius - 1]
    scaled = np.rint(sums * float(np.asarray(values[4])))
    return {1: np.minimum(scaled, 255).astype(np.uint8)}


REFERENCES = {"box_rows_lmem": Reference(expected=expected, small={"WIDTH": 300, "HEIGHT": 64})}
