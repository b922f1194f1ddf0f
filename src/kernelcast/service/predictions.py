"""What was answered, to be compared with what is observed."""

import math
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import NormalDist
from typing import Final

from cachetools import FIFOCache

from kernelcast.records.estimates import Estimate, Interval
from kernelcast.records.explanation import Tier
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.service.metrics import Metrics

_MOST: Final = 10_000
# Runs of one launch differ by at least so much.
_LEAST_DEVIATION: Final = 0.01
_MOST_COMPARED: Final = 2000
_MOST_ANSWERED: Final = 200
# Half the smallest shift that matters, evidence that suffices, and the most that one observation
# may count for, so that no single one raises an alarm: all in deviations.
_ALLOWANCE: Final = 0.5
_THRESHOLD: Final = 8.0
_LIMIT: Final = 4.0


@dataclass(slots=True)
class Drift:
    """Evidence that times move away from what was answered: a two-sided CUSUM on logarithms.

    E. S. Page, "Continuous inspection schemes", Biometrika 41, 1954. By Siegmund's approximation it
    raises a false alarm once in about 9,500 observations of normal noise, and a lasting shift of
    two deviations is seen after about six.

    Examples
    --------
    >>> drift = Drift()
    >>> [drift.add(1.3, 1.0, 0.05) for _ in range(3)]
    [False, False, True]
    """

    up: float = 0.0
    down: float = 0.0

    def add(self, measured_s: float, predicted_s: float, deviation: float) -> bool:
        """Take an observation; tell whether times have shifted, and begin anew then."""
        x = math.log(measured_s / predicted_s) / deviation
        x = min(max(x, -_LIMIT), _LIMIT)
        self.up = max(0.0, self.up + x - _ALLOWANCE)
        self.down = max(0.0, self.down - x - _ALLOWANCE)
        if max(self.up, self.down) <= _THRESHOLD:
            return False
        self.up = self.down = 0.0
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """An answer, and what was observed then."""

    when: datetime
    launch_key: str
    device_id: str
    kernel: str
    """What ran where."""
    tier: Tier
    interval: Interval
    """The answer, in seconds."""
    measured_s: float
    """What was observed, in seconds."""
    has_shifted: bool
    """Whether it made certain that the launch takes another time than was answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer of this process, and the problem that it was asked for."""

    when: datetime
    digest: str
    estimate: Estimate


@dataclass(slots=True)
class _Prediction:
    interval: Interval
    tier: Tier
    deviation: float
    drift: Drift = field(default_factory=Drift)


class Predictions:
    """The last answer of each launch in this process."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._known: FIFOCache[str, _Prediction] = FIFOCache(_MOST)
        self._compared: deque[Compared] = deque(maxlen=_MOST_COMPARED)
        self._answered: deque[Answered] = deque(maxlen=_MOST_ANSWERED)

    def list_compared(self) -> tuple[Compared, ...]:
        """Give the last answers that were observed since, oldest first."""
        return tuple(self._compared)

    def list_answered(self) -> tuple[Answered, ...]:
        """Give the last answers, newest first."""
        return tuple(reversed(self._answered))

    def remember(self, estimate: Estimate, digest: str = "") -> None:
        """Remember an answer; `digest` is of its problem."""
        self._answered.append(Answered(when=datetime.now(UTC), digest=digest, estimate=estimate))
        if estimate.identity is None:
            return
        self._known[estimate.identity.key] = _Prediction(
            estimate.expected, estimate.tier, _find_deviation(estimate.expected)
        )

    def compare(self, launch: LaunchIdentity, measured_s: float) -> None:
        """Compare an observed time with what was answered."""
        one = self._known.get(launch.key)
        if one is None:
            return
        error = abs(one.interval.seconds - measured_s) / measured_s
        self._metrics.prediction_error.labels(one.tier).observe(error)
        has_shifted = one.drift.add(measured_s, one.interval.seconds, one.deviation)
        if has_shifted:
            self._metrics.drifts.labels(launch.device.id).inc()
        self._compared.append(
            Compared(
                when=datetime.now(UTC),
                launch_key=launch.key,
                device_id=launch.device.id,
                kernel=launch.kernel.name,
                tier=one.tier,
                interval=one.interval,
                measured_s=measured_s,
                has_shifted=has_shifted,
            )
        )


def _find_deviation(interval: Interval) -> float:
    """Give the deviation of the logarithm that an interval stands for, if it is normal."""
    width = math.log(interval.high / interval.low) / 2
    return max(width / NormalDist().inv_cdf((1 + interval.coverage) / 2), _LEAST_DEVIATION)
