"""How many moments of samples a launch is worth where other sizes of its kernel were observed.

The rule: a moment is taken if it is expected to take less time than the interval becomes narrower
by, in seconds of the launch. A launch of a second whose interval would shrink by 5 % is worth 50 ms
of sampling; one of a millisecond is answered by what is known. How much narrower an interval
becomes follows from variances: that of the sizes' answer, as calibrated, and the usual one of
samples on the device, whose moments share a part of their error. Where sizes were only estimated,
or few were observed, one moment is always taken: theirs are the others.
"""

import math
from dataclasses import dataclass

from kernelcast.launches.estimation import MOMENTS_APART_S
from kernelcast.launches.settings import EstimateSettings
from kernelcast.models.evidence.fusion import fuse
from kernelcast.models.evidence.model import EvidenceModel
from kernelcast.models.evidence.moments import MOMENT_FORM
from kernelcast.models.evidence.piece import Piece

FEWEST_SIZES = 3
"""Observed sizes without which a launch is always sampled: of fewer, none tells which is wrong."""
USUAL_OVERHEAD_S = 0.05
"""Host time of a sampling beside its samples, in seconds, before one was seen on the device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTime:
    """What is known of a launch before it is sampled.

    Parameters
    ----------
    seconds : float
        Its time.
    width : float
        Half the interval around it, of the logarithm.
    variance : float
        Of the logarithm.
    """

    seconds: float
    width: float
    variance: float

    def narrow(self, variance: float) -> float:
        """Give half the interval in seconds where the variance is another."""
        width = self.width * math.sqrt(variance / self.variance)
        return self.seconds * math.sinh(min(width, 20.0))


def read_known(piece: Piece, model: EvidenceModel, coverage: float) -> KnownTime:
    """Give what a piece of evidence alone would answer."""
    interval = model.surround(fuse([piece]), coverage)
    return KnownTime(
        seconds=interval.seconds,
        width=math.log(interval.high / interval.low) / 2,
        variance=piece.variance,
    )


def choose_moments(
    known: KnownTime, model: EvidenceModel, settings: EstimateSettings, overhead_s: float
) -> int:
    """Choose the moments that are worth their time; 0 where a launch is answered without any.

    Parameters
    ----------
    known : KnownTime
        What is known without samples.
    model : EvidenceModel
        How much samples scatter on the device.
    settings : EstimateSettings
        Budget, moments at most, and what each has to gain.
    overhead_s : float
        Host time of a sampling beside its samples, in seconds.

    Examples
    --------
    >>> from kernelcast.models.evidence.built_in import BUILT_IN
    >>> def ask(seconds):
    ...     known = KnownTime(seconds=seconds, width=0.3, variance=0.03)
    ...     return choose_moments(known, BUILT_IN, EstimateSettings(), 0.05)
    >>> ask(0.01), ask(1.0), ask(100.0)
    (0, 1, 2)
    """
    plan = settings.plan
    sampled_s = plan.budget / plan.moments * known.seconds
    before_s = known.narrow(known.variance)
    for count in range(plan.moments):
        after_s = known.narrow(_expect_variance(known.variance, model, count + 1))
        cost_s = sampled_s + (MOMENTS_APART_S if count else overhead_s)
        if before_s - after_s < settings.least_gain * cost_s:
            return count
        before_s = after_s
    return plan.moments


def _expect_variance(known: float, model: EvidenceModel, moments: int) -> float:
    """Give the variance of what is known and so many moments of usual samples together."""
    shared = model.shared.launch
    sampled = model.expect_variance(MOMENT_FORM) * (shared + (1.0 - shared) / moments)
    return 1.0 / (1.0 / known + 1.0 / sampled)
