"""What corrects an analytic time by what source and analytic model tell of a launch.

``log t = log t_analytic + g(k) c(x)``, with columns x that do not change when a launch does more of
the same, and a gate g for its kind of work. `kernelcast.models.static.fitting` makes models.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from kernelcast.models.static.describing import (
    ESTIMATE,
    NAMES,
    OF_TIMES,
    Workload,
    classify,
    classify_by_times,
    describe,
    describe_times,
)
from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Interval
from kernelcast.records.training_table import Numbers

# Widths of 0.15 to 0.6 came out within 1 point of each other on two devices, kernels held out.
WIDTH = 0.3
_NARROWNESS = WIDTH / len(NAMES)
_ANALYTIC, _LIMITER = "analytic.", "_limiter_s"
_LARGEST_CORRECTION = math.log(30.0)
ANY = "any"
"""Name of the model that serves devices of other runtimes: it corrects nothing."""
COVERAGE = 0.9
"""Of the interval that an answer carries."""
_NORMAL_HALF_WIDTH = NormalDist().inv_cdf((1.0 + COVERAGE) / 2.0)
_LEAST_DEVIATION = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticAnswer:
    """What is known of a launch's time before anything ran.

    Parameters
    ----------
    log_seconds : float
        Natural logarithm of the time in seconds.
    correction : float
        Natural logarithm of it over the analytic time.
    half_width : float
        Of the 90 % interval's logarithm.
    workload : Workload
        What kind of work it is.
    """

    log_seconds: float
    correction: float
    half_width: float
    workload: Workload

    @property
    def variance(self) -> float:
        """Of the logarithm: that of normal errors with the same 90 % interval."""
        return max(self.half_width / _NORMAL_HALF_WIDTH, _LEAST_DEVIATION) ** 2

    def surround(self) -> Interval:
        """Give the time with its interval."""
        seconds, factor = math.exp(self.log_seconds), math.exp(self.half_width)
        return Interval(
            seconds=seconds, low=seconds / factor, high=seconds * factor, coverage=COVERAGE
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StaticModel:
    """A fitted model; see `kernelcast.models.static.fitting.fit_static`.

    Parameters
    ----------
    centre, scale : ndarray, shape (names,)
        Of columns.
    points : ndarray, shape (points, names)
        Support vectors, scaled.
    weights : ndarray, shape (points,)
        Of the points.
    intercept : float
        Added to the sum of kernels.
    gates : mapping of str to float
        Share of the correction that counts, by kind of work; none of it counts for other kinds.
    half_width : float
        Of 90 % intervals of the logarithm.
    facts : mapping of str to float
        Rows and kernels behind it.
    """

    centre: Numbers
    scale: Numbers
    points: Numbers
    weights: Numbers
    intercept: float
    gates: Mapping[str, float]
    half_width: float
    facts: Mapping[str, float]

    def predict(self, features: Mapping[str, float]) -> StaticAnswer:
        """Answer one launch.

        Parameters
        ----------
        features : mapping of str to float
            Of the feature vector, samples not among them.

        Raises
        ------
        InputError
            If there is no analytic time to correct.
        """
        estimate_s = features.get(ESTIMATE, math.nan)
        if not (estimate_s > 0 and math.isfinite(estimate_s)):
            msg = (
                f"static model: {ESTIMATE} is {estimate_s}; calibrate the device, so that the "
                "analytic model has an answer"
            )
            raise InputError(msg)
        read = {
            name.removeprefix(_ANALYTIC).removesuffix(_LIMITER): value
            for name, value in features.items()
            if name.startswith(_ANALYTIC) and name.endswith(_LIMITER) and math.isfinite(value)
        }
        ratio = features.get(f"{_ANALYTIC}largest_limiter_ratio", 0.0)
        return self.prepare(features).answer(estimate_s, read, ratio)

    def prepare(self, features: Mapping[str, float]) -> "PreparedWork":
        """Prepare answers for launches that differ in their analytic times only."""
        columns = (describe(features) - self.centre) / self.scale
        times = [*OF_TIMES]
        columns[times] = 0.0
        # Squares of the points' columns of times are in, their products with the launch's are not.
        distances = _square(self) + columns @ columns - 2.0 * (self.points @ columns)
        return PreparedWork(
            model=self,
            rest=-_NARROWNESS * distances,
            points=2.0 * _NARROWNESS * self.points[:, times],
            centre=self.centre[times],
            scale=self.scale[times],
            workload=classify({
                name: one for name, one in features.items() if not name.startswith(_ANALYTIC)
            }),
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedWork:
    """What a model knows of launches that do the same work, but for their analytic times.

    Parameters
    ----------
    model : StaticModel
        The model.
    rest : ndarray, shape (points,)
        Logarithms of kernels, as far as times do not decide them.
    points : ndarray, shape (points, times)
        What columns of times add to them.
    centre, scale : ndarray, shape (times,)
        Of these columns.
    workload : Workload
        The kind of work without regard to times.
    """

    model: StaticModel
    rest: Numbers
    points: Numbers
    centre: Numbers
    scale: Numbers
    workload: Workload

    def answer(
        self,
        estimate_s: float,
        limiters: Mapping[str, float],
        largest_ratio: float,
        doubt: float = 0.0,
    ) -> StaticAnswer:
        """Answer one launch.

        Parameters
        ----------
        estimate_s, limiters, largest_ratio
            As of `describe_times`.
        doubt : float
            By how much more the logarithm of its time may be off.
        """
        workload = classify_by_times(self.workload, estimate_s, limiters)
        gate = self.model.gates.get(workload.value, 0.0)
        correction = 0.0
        if gate:
            times = np.array(describe_times(estimate_s, limiters, largest_ratio))
            correction = gate * self._correct((times - self.centre) / self.scale)
        return StaticAnswer(
            log_seconds=math.log(estimate_s) + correction,
            correction=correction,
            half_width=self.model.half_width + doubt,
            workload=workload,
        )

    def _correct(self, times: Numbers) -> float:
        """Give the ungated correction by scaled columns of times."""
        kernel = self.points @ times
        kernel += self.rest
        kernel -= _NARROWNESS * (times @ times)
        found = float(np.exp(kernel, out=kernel) @ self.model.weights) + self.model.intercept
        return min(max(found, -_LARGEST_CORRECTION), _LARGEST_CORRECTION)


@lru_cache(maxsize=256)
def _square(model: StaticModel) -> Numbers:
    """Give the squared distances of a model's points from its centre."""
    found: Numbers = np.einsum("ij,ij->i", model.points, model.points)
    return found
