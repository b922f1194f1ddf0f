"""The filters with SciPy's, and with whole images shifted."""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from scipy import ndimage

from kernelcast.training_data.reference import Array, Reference, Value


def blur(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the image filtered along both axes."""
    image = np.asarray(values[0], dtype=np.float64).reshape(parameters["HEIGHT"], -1)
    weights = np.asarray(values[2], dtype=np.float64)
    for axis in (0, 1):
        image = ndimage.correlate1d(image, weights, axis=axis, mode="nearest")
    return {1: image.astype(np.float32)}


def smooth(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the weighted mean of shifted images."""
    image = np.asarray(values[0], dtype=np.float64).reshape(parameters["HEIGHT"], -1)
    near, alike = (float(np.asarray(value)) for value in values[4:6])
    padded = np.pad(image, 3, mode="edge")
    height, width = image.shape
    total = np.zeros_like(image)
    mixed = np.zeros_like(image)
    for y, x in product(range(7), repeat=2):
        shifted = padded[y : y + height, x : x + width]
        weight = np.exp(-near * ((x - 3) ** 2 + (y - 3) ** 2)) * np.exp(
            -alike * (shifted - image) ** 2
        )
        total += weight
        mixed += weight * shifted
    return {1: (mixed / total).astype(np.float32)}


def find_edges(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the strengths that are greatest along their gradient."""
    image = np.asarray(values[0]).astype(np.int64).reshape(parameters["HEIGHT"], -1)
    # the gradient around the image is that of the image continued by its last pixels
    padded = np.pad(image, 1, mode="edge")
    along_x, along_y = (ndimage.sobel(padded, axis=axis, mode="nearest") for axis in (1, 0))
    strength = np.abs(along_x) + np.abs(along_y)
    across, down = np.abs(along_x[1:-1, 1:-1]), np.abs(along_y[1:-1, 1:-1])
    is_flat = 12 * down <= 5 * across
    is_steep = ~is_flat & (12 * across <= 5 * down)
    is_falling = (along_x > 0)[1:-1, 1:-1] == (along_y > 0)[1:-1, 1:-1]
    step_y = np.where(is_flat, 0, 1)
    step_x = np.where(is_flat, 1, np.where(is_steep, 0, np.where(is_falling, 1, -1)))
    y, x = np.indices(image.shape) + 1
    mine = strength[1:-1, 1:-1]
    is_kept = mine >= int(np.asarray(values[4]))
    is_kept &= mine > strength[y - step_y, x - step_x]
    is_kept &= mine >= strength[y + step_y, x + step_x]
    return {1: np.where(is_kept, mine, 0).astype(np.uint16)}


def map_contrast(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the new values, a mean of four tables."""
    image = np.asarray(values[0]).reshape(parameters["HEIGHT"], -1)
    tables = np.asarray(values[1]).astype(np.int64)
    tables = tables.reshape(image.shape[0] // 64, image.shape[1] // 64, 256)
    sums = np.zeros(image.shape, dtype=np.int64)
    for (row, row_weight), (column, column_weight) in product(
        _find_neighbours(image.shape[0]), _find_neighbours(image.shape[1])
    ):
        looked_up = tables[row[:, np.newaxis], column, image]
        sums += looked_up * row_weight[:, np.newaxis] * column_weight
    return {2: ((sums + 2048) // 4096).astype(np.uint8)}


def _find_neighbours(length: int) -> list[tuple[Array, Array]]:
    """Give the tiles before and after each place, and how many 64ths they weigh."""
    first, weight = np.divmod(np.arange(length) - 32, 64)
    last = length // 64 - 1
    return [(np.clip(first, 0, last), 64 - weight), (np.clip(first + 1, 0, last), weight)]


def add_up_rows(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the running sums."""
    rows = np.asarray(values[0]).reshape(parameters["HEIGHT"], -1)
    return {1: np.cumsum(rows, axis=1, dtype=np.uint32)}


def enlarge(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the image at the places of the larger one."""
    width, height = parameters["SOURCE_WIDTH"], parameters["SOURCE_HEIGHT"]
    image = np.asarray(values[0]).astype(np.int64).reshape(height, width, 4)
    step = int(np.asarray(values[4]))
    for axis, length in ((0, parameters["HEIGHT"]), (1, parameters["WIDTH"])):
        places = np.maximum(np.arange(length) * step + step // 2 - 32768, 0)
        first = places >> 16
        second = np.minimum(first + 1, image.shape[axis] - 1)
        shape = (-1, 1, 1) if axis == 0 else (1, -1, 1)
        weight = ((places & 65535) >> 5).reshape(shape)
        image = image.take(first, axis) * (2048 - weight) + image.take(second, axis) * weight
    return {1: ((image + 2**21) >> 22).astype(np.uint8)}


REFERENCES = {
    "gaussian": Reference(expected=blur, small={"HEIGHT": 80, "WIDTH": 96}, tolerance=1e-5),
    "bilateral": Reference(expected=smooth, small={"HEIGHT": 48, "WIDTH": 64}, tolerance=1e-5),
    "canny_edges": Reference(expected=find_edges, small={"HEIGHT": 80, "WIDTH": 96}),
    "clahe_map": Reference(expected=map_contrast, small={"HEIGHT": 192, "WIDTH": 128}),
    "integral_rows": Reference(expected=add_up_rows, small={"HEIGHT": 7}),
    "resize_bilinear": Reference(expected=enlarge, small={"HEIGHT": 80, "WIDTH": 192}),
}
