"""Answers that a scheduler compares: one launch on one device, with all that it costs."""

import math
from dataclasses import dataclass
from statistics import NormalDist

from kernelcast.records.errors import KernelcastError
from kernelcast.records.estimates import Estimate, Interval

_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchEstimate:
    """One launch on one device.

    Parameters
    ----------
    problem, device_id : str
        Name of the problem, id of the device.
    estimate : Estimate or None
        How long the kernel takes; None where the device has no answer.
    error : KernelcastError or None
        Why it has none.
    compile_s : float or None
        Host time of building the kernel, in seconds; None where nobody has built it for an answer.
    launch_s : float or None
        Time of a launch that does nothing, in seconds; part of the kernel's time already.
    to_device_s, from_device_s : float or None
        Time of moving buffers that the kernel may read to the device, and those it may write back,
        in seconds; None without a calibrated description of the device.
    """

    problem: str
    device_id: str
    estimate: Estimate | None = None
    error: KernelcastError | None = None
    compile_s: float | None = None
    launch_s: float | None = None
    to_device_s: float | None = None
    from_device_s: float | None = None

    @property
    def kernel_s(self) -> float | None:
        """Time of the whole launch, in seconds; None where the device has no answer."""
        return None if self.estimate is None else self.estimate.seconds

    @property
    def total_s(self) -> float | None:
        """Kernel and transfers, as far as they are known, in seconds; what a repeat costs.

        Building is done once, and is not in it.
        """
        if self.kernel_s is None:
            return None
        return self.kernel_s + (self.to_device_s or 0.0) + (self.from_device_s or 0.0)


def compare_estimates(one: Estimate | Interval, other: Estimate | Interval) -> float:
    """Give the probability that the first takes less time than the second.

    Each time is taken as log-normal with its estimate as the median and the interval's ends as
    quantiles, and both as independent; intervals are symmetric factors, so that
    ``sigma = log(high / low) / (2 z)`` with the normal quantile z of the coverage, and
    ``P = Phi((log b - log a) / sqrt(sigma_a^2 + sigma_b^2))``.

    Examples
    --------
    >>> a = Interval(seconds=1.0, low=0.8, high=1.25, coverage=0.9)
    >>> b = Interval(seconds=2.0, low=1.6, high=2.5, coverage=0.9)
    >>> compare_estimates(a, a), compare_estimates(a, b) > 0.99
    (0.5, True)
    """
    spread = math.hypot(_deviation(one), _deviation(other))
    gap = math.log(other.seconds / one.seconds)
    if spread == 0:
        return 0.5 if gap == 0 else float(gap > 0)
    return _NORMAL.cdf(gap / spread)


def _deviation(one: Estimate | Interval) -> float:
    z = _NORMAL.inv_cdf((1 + one.coverage) / 2)
    return math.log(one.high / one.low) / (2 * z)
