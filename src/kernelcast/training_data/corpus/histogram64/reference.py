"""The histograms of all work-groups by one bincount."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return a histogram per work-group."""
    data = np.asarray(values[1])
    group_bytes = 16 * 15 * parameters["LOCAL0"]
    classes = data.view(np.uint8).reshape(-1, group_bytes) >> 2
    groups = len(classes)
    bins = classes.astype(np.int64) + 64 * np.arange(groups)[:, np.newaxis]
    return {0: np.bincount(bins.ravel(), minlength=64 * groups).astype(np.uint32)}


REFERENCES = {"histogram64": Reference(expected=expected, small={"VECTORS": 38_400})}
