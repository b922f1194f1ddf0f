"""The evidence model of devices that nothing was calibrated for."""

import math
from statistics import NormalDist

from kernelcast.models.evidence.model import ANY_FORM, EvidenceModel, PlainVariance
from kernelcast.models.evidence.moments import SIGNS, FormVariance
from kernelcast.models.evidence.piece import Kind
from kernelcast.models.linear import BEYOND_SPREAD

ASSUMED_FACTOR = 3.0
"""Between a time of the analytic model and the ends of its 90 % interval, where no error of it is
known: the worst of the CPU model's answers to 18 examples on two devices was off by a factor of 2.8
(``benchmarks/results/cpu_model``)."""
# The sign of a line without any error of its own, see `read_moment`; where the line is less sure,
# samples are worse, by a factor of 1.9 where its standard error is 10 %.
_NO_ERROR, _SLOPE = math.log(0.005), 0.2
_Z90 = NormalDist().inv_cdf(0.95)

ASSUMED_ERRORS = PlainVariance(bias=0.0, variance=(math.log(ASSUMED_FACTOR) / _Z90) ** 2)
"""Of the analytic model's time."""
BUILT_IN = EvidenceModel(
    forms={
        ANY_FORM: FormVariance(
            bias=0.0,
            level=math.log(BEYOND_SPREAD),
            centre=(_NO_ERROR, *(0.0 for _ in SIGNS[1:])),
            slopes=(_SLOPE, *(0.0 for _ in SIGNS[1:])),
        )
    },
    plain={Kind.ANALYTIC: ASSUMED_ERRORS},
)
"""Spreads as they were found over devices, no biases, and intervals of normal errors."""
