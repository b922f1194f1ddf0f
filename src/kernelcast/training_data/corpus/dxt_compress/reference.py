"""The compressor for all blocks and cuts at once, step by step in the kernel's precision."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.corpus.dxt_compress.inputs import WEIGHTS, list_cuts
from kernelcast.training_data.reference import Array, Reference, Value

_MOST = np.array([31, 63, 31], dtype=np.float32)


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the compressed blocks."""
    colours = np.asarray(values[0]).reshape(parameters["BLOCKS"], 16, 4)[:, :, :3].astype(np.int64)
    factors = np.asarray(values[2])
    along = _project(colours)
    order = np.argsort(along, axis=1, kind="stable")
    ranks = np.argsort(order, axis=1)
    ordered = np.take_along_axis(colours, order[:, :, np.newaxis], axis=1)
    cuts = list_cuts()
    first, last, errors = _try_cuts(ordered, cuts, factors)
    best = np.argmin(errors, axis=1)
    blocks = np.arange(len(colours))
    a, b = _pack(first[blocks, best]), _pack(last[blocks, best])
    classes = np.take_along_axis(cuts[best].astype(np.uint32), ranks, axis=1)
    classes = np.where((a < b)[:, np.newaxis], classes ^ 1, classes)
    indices = (classes << (2 * np.arange(16, dtype=np.uint32))).sum(axis=1, dtype=np.uint32)
    ends = np.maximum(a, b) | np.minimum(a, b) << np.uint32(16)
    return {3: np.stack([ends, np.where(a == b, np.uint32(0), indices)], axis=1)}


def _project(colours: Array) -> Array:
    """Give each colour's place on its block's axis of greatest spread."""
    deviation = 16 * colours - colours.sum(axis=1, keepdims=True)
    covariance = np.einsum("bpi,bpj->bij", deviation, deviation)
    trace = np.trace(covariance, axis1=1, axis2=2).astype(np.float32)
    shift = np.where(trace > 0, 1 - np.frexp(trace)[1], 0)
    matrix = np.ldexp(covariance.astype(np.float32), shift[:, np.newaxis, np.newaxis])
    axis = np.ones((len(colours), 3), dtype=np.float32)
    for _ in range(8):
        axis = _dot(axis[:, np.newaxis, :], matrix)
    return _dot(axis[:, np.newaxis, :], colours.astype(np.float32))


def _dot(left: Array, right: Array) -> Array:
    products: Array = left * right
    found: Array = products[..., 0] + products[..., 1] + products[..., 2]
    return found


def _try_cuts(ordered: Array, cuts: Array, factors: Array) -> tuple[Array, Array, Array]:
    """Give end colours in 5, 6 and 5 bits and errors; the first axes are block and cut."""
    weights = WEIGHTS[cuts]
    first_sum = np.einsum("cp,bpi->bci", weights, ordered)
    last_sum = 3 * ordered.sum(axis=1)[:, np.newaxis] - first_sum
    ww, vv, wv = (
        products.sum(axis=1)[:, np.newaxis]
        for products in (weights**2, (3 - weights) ** 2, weights * (3 - weights))
    )
    scale = factors[:, np.newaxis]
    first = _quantise((first_sum * vv - last_sum * wv).astype(np.float32) * scale)
    last = _quantise((last_sum * ww - first_sum * wv).astype(np.float32) * scale)
    a, b = _expand(first), _expand(last)
    ww, vv, wv, first_sum, last_sum = (
        one.astype(np.float32) for one in (ww, vv, wv, first_sum, last_sum)
    )
    mixed = a * b * wv - np.float32(3) * (a * first_sum + b * last_sum)
    error = a * a * ww + b * b * vv + np.float32(2) * mixed
    return first, last, error[..., 0] + error[..., 1] + error[..., 2]


def _quantise(colour: Array) -> Array:
    scaled = np.clip(colour, np.float32(0), np.float32(255)) * (_MOST / np.float32(255))
    bits: Array = np.floor(scaled + np.float32(0.5)).astype(np.int32)
    return bits


def _expand(bits: Array) -> Array:
    red, green, blue = np.moveaxis(bits, -1, 0)
    expanded = [red << 3 | red >> 2, green << 2 | green >> 4, blue << 3 | blue >> 2]
    return np.stack(expanded, axis=-1).astype(np.float32)


def _pack(bits: Array) -> Array:
    return (bits[:, 0] << 11 | bits[:, 1] << 5 | bits[:, 2]).astype(np.uint32)


REFERENCES = {"compress": Reference(expected=expected, small={"BLOCKS": 64})}
