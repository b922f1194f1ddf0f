"""How many moments of samples a launch is worth where something is known of it.

The rule: a moment is taken if it is expected to take less time than the interval becomes narrower
by, in seconds of the launch. A launch of a second whose interval would shrink by 5 % is worth 50 ms
of sampling; one of a millisecond is answered by what is known. How much narrower an interval
becomes follows from variances: that of what is known, as calibrated, and the usual one of samples
on the device, whose moments share a part of their error. Where sizes were only estimated, or few
were observed, one moment is always taken: theirs are the others. Where earlier samples of the
launch itself are known, they are what is known; once time has made their interval twice as wide,
they are taken anew.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelcast.launches.estimation import MOMENTS_APART_S
from kernelcast.launches.settings import EstimateSettings
from kernelcast.models.evidence.fusion import fuse
from kernelcast.models.evidence.model import SAMPLER, EvidenceModel, find_uncalibrated
from kernelcast.models.evidence.moments import MOMENT_FORM
from kernelcast.models.evidence.piece import FusedEstimate, Kind, Piece

FEWEST_SIZES = 3
"""Observed sizes without which a launch is always sampled: of fewer, none tells which is wrong."""
USUAL_OVERHEAD_S = 0.05
"""Host time of a sampling beside its samples, in seconds, before one was seen on the device."""
_FADED = 4.0  # of the variance: an interval twice as wide


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


def _read_known(fused: FusedEstimate, model: EvidenceModel, coverage: float) -> KnownTime:
    """Give what pieces of evidence alone would answer."""
    interval = model.surround(fused, coverage)
    return KnownTime(
        seconds=interval.seconds,
        width=math.log(interval.high / interval.low) / 2,
        variance=fused.variance,
    )


def have_faded(pieces: Sequence[Piece]) -> bool:
    """Tell whether the time since samples were taken has made what they say twice as unsure."""
    fresh = [
        replace(
            one,
            variance=one.variance - one.age_variance,
            basis_variance=one.basis_variance - one.age_variance,
        )
        for one in pieces
    ]
    return fuse(pieces).variance > _FADED * fuse(fresh).variance


def choose_moments(
    pieces: Sequence[Piece], model: EvidenceModel, settings: EstimateSettings, overhead_s: float
) -> int:
    """Choose the moments that are worth their time; 0 where a launch is answered without any.

    Parameters
    ----------
    pieces : sequence of Piece
        What is known of the launch.
    model : EvidenceModel
        How much samples scatter on the device.
    settings : EstimateSettings
        Budget, moments at most, and what each has to gain.
    overhead_s : float
        Host time of a sampling beside its samples, in seconds.

    Examples
    --------
    >>> from kernelcast.models.evidence.model import BUILT_IN
    >>> def ask(seconds):
    ...     known = Piece(
    ...         kind=Kind.OTHER_SIZES, log_seconds=math.log(seconds), variance=0.03
    ...     )
    ...     return choose_moments([known], BUILT_IN, EstimateSettings(), 0.05)
    >>> ask(0.01), ask(1.0), ask(100.0)
    (0, 1, 1)
    """
    plan, fused = settings.plan, fuse(pieces)
    known = _read_known(fused, model, settings.coverage)
    sampled_s = plan.budget / plan.moments * known.seconds
    before_s = known.narrow(known.variance)
    for count in range(plan.moments):
        expected = (_expect(fused, model, number) for number in range(count + 1))
        after_s = known.narrow(fuse([*pieces, *expected]).variance)
        cost_s = sampled_s + (MOMENTS_APART_S if count else overhead_s)
        if before_s - after_s < settings.least_gain * cost_s:
            return count
        before_s = after_s
    return plan.moments


def _expect(fused: FusedEstimate, model: EvidenceModel, number: int) -> Piece:
    """Give usual samples of a moment that was not taken yet."""
    variance = model.expect_variance(MOMENT_FORM)
    unseen = find_uncalibrated(fused.log_seconds)
    return Piece(
        kind=Kind.SAMPLES,
        log_seconds=fused.log_seconds,
        variance=variance + unseen,
        moment=f"expected {number}",
        basis=SAMPLER,
        basis_variance=model.shared.launch * variance + unseen,
    )
