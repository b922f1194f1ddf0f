"""epsilon-SVR on what source and analytic model tell; corrects the analytic time.

``log t = log t_analytic + c(x)``, with columns x that do not change when a launch does more of the
same. Intervals are conformal on kernels that the regressor has not seen. Rows of a kernel weigh
alike together, however many there are.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from kernelcast.models.conformal import Calibration, calibrate
from kernelcast.models.grouping import divide_groups, number_groups
from kernelcast.models.learned.learner import Part
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

FOLDS = 5
_COSTS = (0.2, 2.0)
"""Of errors beyond epsilon; a fit takes the one that errs least on kernels it has not seen: the
less certain the rows, the more a correction must be held back."""
_EPSILON = 0.05
# Chosen, as the costs were, on two devices with kernels held out: widths of 0.15 to 0.6 come out
# within 1 point of each other, a cost of 2 at 4 points more than one of 0.2.
_WIDTH = 0.3
_ANALYTIC, _LIMITER = "analytic.", "_limiter_s"
_SCALE_FLOOR = 1e-6
_MOST_SCORES = 200
_LARGEST_CORRECTION = math.log(30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticRow:
    """A launch that was measured.

    Parameters
    ----------
    kernel : str
        Held out together.
    features : mapping of str to float
        Of its source, compiler, counts and analytic model.
    seconds : float
        Measured.
    """

    kernel: str
    features: Mapping[str, float]
    seconds: float


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
    """A fitted model; see `fit_static`.

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
    calibration : Calibration
        Of intervals.
    facts : mapping of str to float
        Rows and kernels behind it.
    """

    centre: Numbers
    scale: Numbers
    points: Numbers
    weights: Numbers
    intercept: float
    calibration: Calibration
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
        columns = _scale(describe(features), self.centre, self.scale)
        times = [*OF_TIMES]
        columns[times] = 0.0
        points = self.points.copy()
        nearest = points[:, times].copy()
        points[:, times] = 0.0
        return PreparedWork(
            model=self,
            rest=((points - columns) ** 2).sum(axis=1) + (nearest**2).sum(axis=1),
            points=nearest,
            centre=self.centre[times],
            scale=self.scale[times],
            workload=classify({
                name: one for name, one in features.items() if not name.startswith(_ANALYTIC)
            }),
        )  # fmt: skip

    def correct(self, columns: Numbers) -> Numbers:
        """Give corrections of launches whose columns `describe` gave, shape (n,)."""
        scaled = _scale(columns, self.centre, self.scale)
        squares = (self.points**2).sum(axis=1)
        distances = (scaled**2).sum(axis=1)[:, None] + squares - 2.0 * scaled @ self.points.T
        return self.weigh(distances)

    def weigh(self, distances: Numbers) -> Numbers:
        """Give corrections by squared distances to the points, shape (..., points)."""
        kernel = np.exp(-_WIDTH / len(NAMES) * np.maximum(distances, 0.0))
        found: Numbers = kernel @ self.weights + self.intercept
        return np.clip(found, -_LARGEST_CORRECTION, _LARGEST_CORRECTION)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedWork:
    """What a model knows of launches that do the same work, but for their analytic times.

    Parameters
    ----------
    model : StaticModel
        The model.
    rest : ndarray, shape (points,)
        Squared distances to its points that times do not decide.
    points : ndarray, shape (points, times)
        The points' columns of times.
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
        self, estimate_s: float, limiters: Mapping[str, float], largest_ratio: float
    ) -> StaticAnswer:
        """Answer one launch; arguments as of `describe_times`."""
        times = np.array(describe_times(estimate_s, limiters, largest_ratio))
        scaled = (times - self.centre) / self.scale
        distances = self.rest + (scaled @ scaled - 2.0 * (self.points @ scaled))
        correction = float(self.model.weigh(distances))
        sign = math.log(abs(correction) + _EPSILON)
        return StaticAnswer(
            log_seconds=math.log(estimate_s) + correction,
            correction=correction,
            half_width=self.model.calibration.half_width_alone([sign], COVERAGE),
            workload=classify_by_times(self.workload, estimate_s, limiters),
        )


def fit_static(rows: Sequence[StaticRow]) -> StaticModel:
    """Learn from measured launches.

    Parameters
    ----------
    rows : sequence of StaticRow
        Of one runtime's devices, or of all.

    Raises
    ------
    InputError
        If there are fewer than two kernels.
    """
    columns, targets, groups = _arrange(rows)
    tried = {cost: _correct_unseen(columns, targets, groups, cost) for cost in _COSTS}
    cost = min(_COSTS, key=lambda one: float(np.abs(targets - tried[one]).mean()))
    corrections = tried[cost]
    whole = _fit(columns, targets, groups, cost)
    residuals = targets - corrections
    calibration = calibrate(residuals, _sign(corrections), np.ones(len(rows)), groups)
    return replace(
        whole,
        calibration=_thin(calibration),
        facts={"rows": len(rows), "kernels": int(groups.max()) + 1},
    )


def _correct_unseen(
    columns: Numbers, targets: Numbers, groups: npt.NDArray[np.intp], cost: float
) -> Numbers:
    """Correct each row by a model that has not seen its kernel."""
    corrections = np.zeros(len(targets))
    for part in divide_groups(groups, FOLDS):
        inner = _fit(columns[part.train], targets[part.train], groups[part.train], cost)
        corrections[part.test] = inner.correct(columns[part.test])
    return corrections


def hold_out(rows: Sequence[StaticRow], folds: int = FOLDS) -> list[Part]:
    """Divide rows by kernel, as a fit's own calibration does."""
    return divide_groups(_number(rows), folds)


def _number(rows: Sequence[StaticRow]) -> npt.NDArray[np.intp]:
    return number_groups(np.array([one.kernel for one in rows], dtype=np.object_))


def _arrange(rows: Sequence[StaticRow]) -> tuple[Numbers, Numbers, npt.NDArray[np.intp]]:
    columns = np.array([describe(one.features) for one in rows])
    targets = np.array([math.log(one.seconds / one.features[ESTIMATE]) for one in rows])
    return columns, targets, _number(rows)


_NO_CALIBRATION = Calibration(
    centre=np.zeros(1), slopes=np.zeros(1), level=0.0, scores=np.ones(1), shares=np.ones(1)
)


def _fit(
    columns: Numbers, targets: Numbers, groups: npt.NDArray[np.intp], cost: float
) -> StaticModel:
    from sklearn.svm import SVR

    known = np.isfinite(columns)
    counts = np.maximum(known.sum(axis=0), 1)
    centre = np.where(known, columns, 0.0).sum(axis=0) / counts
    scale = np.sqrt((np.where(known, columns - centre, 0.0) ** 2).sum(axis=0) / counts)
    scale = np.where(scale > _SCALE_FLOOR, scale, 1.0)
    sizes = np.bincount(groups)
    weights = 1.0 / sizes[groups]
    fitted = SVR(C=cost, epsilon=_EPSILON, gamma=_WIDTH / columns.shape[1]).fit(
        _scale(columns, centre, scale), targets, sample_weight=weights / weights.mean()
    )
    return StaticModel(
        centre=centre,
        scale=scale,
        points=fitted.support_vectors_,
        weights=fitted.dual_coef_[0],
        intercept=float(fitted.intercept_[0]),
        calibration=_NO_CALIBRATION,
        facts={},
    )


def _scale(columns: Numbers, centre: Numbers, scale: Numbers) -> Numbers:
    """Scale columns; what is not known counts as usual."""
    found: Numbers = np.nan_to_num((columns - centre) / scale)
    return found


def _sign(corrections: Numbers) -> Numbers:
    """Give what intervals may widen with: the size of the correction."""
    found: Numbers = np.log(np.abs(corrections) + _EPSILON)[:, None]
    return found


def _thin(calibration: Calibration) -> Calibration:
    """Keep quantiles of the scores."""
    if len(calibration.scores) <= _MOST_SCORES:
        return calibration
    shares = np.linspace(0.0, calibration.shares[-1], _MOST_SCORES)
    kept = np.unique(np.searchsorted(calibration.shares, shares))
    kept = np.minimum(kept, len(calibration.scores) - 1)
    return replace(calibration, scores=calibration.scores[kept], shares=calibration.shares[kept])
