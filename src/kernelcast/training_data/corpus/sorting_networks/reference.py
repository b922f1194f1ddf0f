"""What the networks do, by sorting where they sort."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value


def _sort(values: Sequence[Value], length: int, is_upwards: Array) -> dict[int, Array]:
    """Sort parts of a length, each upwards or downwards."""
    keys, companions = (np.asarray(value).reshape(-1, length) for value in values[2:4])
    order = np.argsort(keys, axis=1)
    order = np.where(is_upwards[:, None], order, order[:, ::-1])
    sorted_pairs = (
        np.take_along_axis(one, order, axis=1).reshape(-1) for one in (keys, companions)
    )
    return dict(enumerate(sorted_pairs))


def sort_arrays(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return every array sorted upwards."""
    return _sort(values, parameters["LENGTH"], np.ones(parameters["UNITS"], dtype=bool))


def sort_parts(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return parts of two pairs a work-item sorted, every other one downwards."""
    length = 2 * parameters["LOCAL0"]
    parts = np.arange(np.asarray(values[2]).size // length)
    return _sort(values, length, parts % 2 == 0)


def _step(pairs: Array, stride: int, is_upwards: Array) -> Array:
    """Put partners into order; pairs have the key in their upper half and compare as it does."""
    first, second = np.moveaxis(pairs.reshape(-1, 2, stride), 1, 0)
    turned = is_upwards.reshape(-1, 2, stride)[:, 0]
    low, high = np.minimum(first, second), np.maximum(first, second)
    ordered = [np.where(turned, low, high), np.where(turned, high, low)]
    return np.stack(ordered, axis=1).reshape(-1)


def _merge(
    values: Sequence[Value], parameters: Mapping[str, int], strides: Sequence[int]
) -> dict[int, Array]:
    keys, companions = (np.asarray(value).astype(np.uint64) for value in values[2:4])
    pairs = (keys << np.uint64(32)) | companions
    place = np.arange(keys.size) % parameters["LENGTH"]
    is_upwards = place // parameters["SIZE"] % 2 == 0
    for stride in strides:
        pairs = _step(pairs, stride, is_upwards)
    low = (pairs & np.uint64(2**32 - 1)).astype(np.uint32)
    return {0: (pairs >> np.uint64(32)).astype(np.uint32), 1: low}


def merge_once(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the pairs after one step."""
    return _merge(values, parameters, [parameters["STRIDE"]])


def merge_rest(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the pairs after all steps from the local size's stride on."""
    strides = [2**k for k in range(parameters["LOCAL0"].bit_length())]
    return _merge(values, parameters, strides[::-1])


_SMALL = {"ARRAYS": 2, "LENGTH": 8192, "SIZE": 4096}
REFERENCES = {
    "sort_local": Reference(expected=sort_arrays, small={"UNITS": 16}),
    "sort_local1": Reference(expected=sort_parts, small={"UNITS": 16}),
    "merge_global": Reference(expected=merge_once, small=_SMALL | {"STRIDE": 1024}),
    "merge_local": Reference(expected=merge_rest, small=_SMALL),
}
