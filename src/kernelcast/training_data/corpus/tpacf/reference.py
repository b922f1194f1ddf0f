"""Histograms of angles between points in NumPy."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.corpus.tpacf.inputs import BINS, SETS
from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the earlier counts plus those of all pairs."""
    points, limits, histograms = (np.asarray(value) for value in values[:3])
    sets = points[:, :3].reshape(SETS + 1, parameters["POINTS"], 3)
    upper = np.triu_indices(parameters["POINTS"], k=1)
    rows = [_count((one @ one.T)[upper], limits) for one in sets]
    rows += [_count((sets[0] @ one.T).reshape(-1), limits) for one in sets[1:]]
    return {2: (histograms + np.concatenate(rows)).astype(histograms.dtype)}


def _count(cosines: Array, limits: Array) -> Array:
    """Count how many limits after the first each cosine stays below."""
    rising = limits[:0:-1]
    bins = rising.size - np.searchsorted(rising, cosines, side="right")
    return np.bincount(bins, minlength=BINS)


REFERENCES = {"gen_hists": Reference(expected=expected, small={"POINTS": 128})}
