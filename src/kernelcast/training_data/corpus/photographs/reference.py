"""The same images with SciPy's filters, and with NumPy on whole images."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import ndimage

from kernelcast.training_data.reference import Array, Reference, Value

_SMALL = {"HEIGHT": 64, "WIDTH": 192}


def find_colours(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the image in colours."""
    raw = _shape(values[0], parameters)
    odd_y, odd_x = (axis % 2 for axis in np.indices(raw.shape))
    masks = ((odd_y == 0) & (odd_x == 0), odd_y != odd_x, (odd_y == 1) & (odd_x == 1))
    image = np.full((*raw.shape, 4), 255, dtype=np.uint8)
    for channel, is_known in enumerate(masks):
        total, count = (
            ndimage.convolve(field, np.ones((3, 3), dtype=np.int64), mode="mirror")
            for field in (raw * is_known, is_known.astype(np.int64))
        )
        if channel == 1:
            # green's diagonal neighbours are further away than those beside and do not count
            cross = ndimage.generate_binary_structure(2, 1).astype(np.int64)
            total = ndimage.convolve(raw * is_known, cross, mode="mirror")
            count = ndimage.convolve(is_known.astype(np.int64), cross, mode="mirror")
        count = np.maximum(count, 1)
        image[..., channel] = np.where(is_known, raw, (total + count // 2) // count)
    return {1: image}


def convolve(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the image under the weights."""
    image = np.asarray(values[0]).astype(np.int64).reshape(parameters["HEIGHT"], -1, 4)
    weights = np.asarray(values[2]).astype(np.int64).reshape(7, 7, 1)
    sums = ndimage.correlate(image, weights, mode="nearest")
    return {1: np.clip((sums + 128) // 256, 0, 255).astype(np.uint8)}


def erode(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the least value of each disc."""
    y, x = np.indices((7, 7)) - 3
    image = np.asarray(values[0]).reshape(parameters["HEIGHT"], -1)
    return {1: ndimage.minimum_filter(image, footprint=x**2 + y**2 < 3.5**2, mode="nearest")}


def rotate(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the image rotated and scaled."""
    image = np.asarray(values[0], dtype=np.float64).reshape(parameters["HEIGHT"], -1)
    cosine, sine = (float(np.asarray(value)) for value in values[2:4])
    matrix = np.array([[cosine, sine], [-sine, cosine]])
    middle = (np.array(image.shape) - 1) / 2.0
    # a black margin, between whose pixels and the image's own SciPy interpolates too
    turned = ndimage.affine_transform(
        np.pad(image, 2),
        matrix,
        offset=middle + 2.0 - matrix @ middle,
        output_shape=image.shape,
        order=1,
    )
    return {1: turned.astype(np.float32)}


def halve(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the smaller image."""
    image = np.asarray(values[0]).astype(np.int64).reshape(2 * parameters["HEIGHT"], -1)
    for axis in (0, 1):
        image = ndimage.correlate1d(image, [1, 4, 6, 4, 1], axis=axis, mode="nearest")
    return {1: ((image[::2, ::2] + 128) // 256).astype(np.uint8)}


def count(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return how often each value stands in each tile."""
    tiles = _cut(values[0], parameters, 4)
    return {1: np.stack([np.bincount(one, minlength=256) for one in tiles]).astype(np.uint32)}


def add_up(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the integral image of each tile."""
    high, wide = parameters["LOCAL1"], parameters["LOCAL0"]
    image = _shape(values[0], parameters)
    tiles = image.reshape(image.shape[0] // high, high, image.shape[1] // wide, wide)
    return {1: tiles.cumsum(axis=1).cumsum(axis=3).astype(np.uint32)}


def find_video_colours(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the three planes."""
    image = np.asarray(values[0]).astype(np.int64).reshape(parameters["HEIGHT"], -1, 4)[..., :3]
    squares = image.reshape(image.shape[0] // 2, 2, -1, 2, 3)
    mean = (squares.sum(axis=(1, 3)) + 2) // 4
    return {
        1: ((image @ [66, 129, 25] + 128) // 256 + 16).astype(np.uint8),
        2: ((mean @ [-38, -74, 112] + 128) // 256 + 128).astype(np.uint8),
        3: ((mean @ [112, -94, -18] + 128) // 256 + 128).astype(np.uint8),
    }


def _cut(value: Value, parameters: Mapping[str, int], repeat: int) -> Array:
    """Give the tiles of an image as rows, each `repeat` times as wide and high as a work-group."""
    wide, high = repeat * parameters["LOCAL0"], repeat * parameters["LOCAL1"]
    image = _shape(value, parameters)
    tiles = image.reshape(image.shape[0] // high, high, image.shape[1] // wide, wide)
    return tiles.transpose(0, 2, 1, 3).reshape(-1, high * wide)


def _shape(value: Value, parameters: Mapping[str, int]) -> Array:
    return np.asarray(value).astype(np.int64).reshape(parameters["HEIGHT"], -1)


REFERENCES = {
    "demosaic": Reference(expected=find_colours, small=_SMALL),
    "convolve_colour": Reference(expected=convolve, small=_SMALL),
    "erosion": Reference(expected=erode, small=_SMALL),
    "rotate": Reference(expected=rotate, small=_SMALL, tolerance=1e-4),
    "pyramid_down": Reference(expected=halve, small=_SMALL),
    "tile_histogram": Reference(expected=count, small={"HEIGHT": 128, "WIDTH": 384}),
    "integral_tiles": Reference(expected=add_up, small=_SMALL),
    "yuv420": Reference(expected=find_video_colours, small={"HEIGHT": 64, "WIDTH": 256}),
}
