"""Points from SciPy's Sobol engine, quantiles from its special functions."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import special, stats

from kernelcast.training_data.corpus.quasi_random.inputs import BITS
from kernelcast.training_data.reference import Array, Reference, Value


def make_points(_values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return all first coordinates, then all second ones, then all third ones."""
    engine = stats.qmc.Sobol(d=3, scramble=False, bits=BITS)
    points = engine.random(parameters["POINTS"])
    return {0: points.T.reshape(-1).astype(np.float32)}


def find_quantiles(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the quantile of every number, taken as a share of all."""
    shares = (np.asarray(values[1]).astype(np.float64) + 0.5) / 2.0**32
    return {0: special.ndtri(shares).astype(np.float32)}


REFERENCES = {
    "quasi": Reference(expected=make_points, small={"POINTS": 16384}, tolerance=1e-6),
    "inv_cnd": Reference(expected=find_quantiles, small={"COUNT": 65536}, tolerance=1e-4),
}
