"""One launch at a time, compiled: a scheduler that asks for each launch pays microseconds.

scikit-learn checks its input at every call, NumPy allocates at every step; for one row both cost
more than the arithmetic. The results are those of `FittedCorrection` up to the order of sums. Of
many launches at once NumPy is the faster one: `RowPredictor.forecast_many` compiles nothing.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcast.models.columns import FIGURES, plan_columns
from kernelcast.models.conformal import (
    LARGEST_RATIO,
    NEAREST,
    SMALLEST_CORRECTION,
    SPREAD,
    WIDEST,
    take_logs,
)
from kernelcast.models.correction import FittedCorrection
from kernelcast.models.learned.compiling import compiled
from kernelcast.models.learned.svr import FittedSvr
from kernelcast.models.preparation import LIMIT
from kernelcast.models.protocol import COVERAGE, Forecast, check_coverage
from kernelcast.models.row_batches import RowBatches
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.training_table import Numbers

_Places = npt.NDArray[np.int64]
_Steps = tuple[
    Callable[[Numbers, Numbers, _Places, _Places, _Places], Numbers],
    Callable[[Numbers, Numbers, _Places, Numbers], Numbers],
    Callable[[Numbers, Numbers, Numbers, Numbers, Numbers], tuple[float, float]],
]
_ERROR = FIGURES.index("linear_error")
_LIMIT = math.log(LARGEST_RATIO)


class RowForecast(NamedTuple):
    """A prediction with its interval; a tuple, since a record takes as long as the arithmetic.

    Parameters
    ----------
    seconds, low, high : float
        Predicted time of the whole launch and ends of the interval, in seconds.
    in_domain : bool
        Whether the launch resembles those that the model has learned from.
    """

    seconds: float
    low: float
    high: float
    in_domain: bool


class RowPredictor:
    """Predicts launches of ready vectors; threads may share one."""

    def __init__(self, fitted: FittedCorrection, schema: FeatureSchema) -> None:
        learned = fitted.learned
        if not isinstance(learned, FittedSvr) or fitted.model.reference.name != "linear":
            msg = f"model {fitted.name}: only an SVR that corrects the linear model is compiled"
            raise InputError(msg)
        if schema.id != fitted.schema_id:
            msg = f"model {fitted.name}: trained on schema {fitted.schema_id}, not {schema.id}"
            raise InputError(msg)
        prepared = fitted.space.preparation
        self._fitted = fitted
        self._plan = plan_columns(schema, fitted.model.feature_groups, fitted.model.variant)
        self._gate, self._reach = fitted.gate, fitted.space.reach
        self._batches = RowBatches(fitted.space, learned, self._plan, len(schema.names))
        self._spread = schema.names.index(SPREAD) if SPREAD in schema.names else -1
        self._ratios = np.vstack([self._plan.ratios, self._plan.second, self._plan.below.T])
        self._scaling = np.vstack(
            [prepared.factors, prepared.fill, prepared.centre, prepared.scale]
        )
        self._indicators = prepared.indicators
        rates = np.zeros(len(prepared.weights))
        rates[len(self._plan.names) :] = prepared.absence_rates
        self._weights = np.vstack([prepared.weights, rates])
        self._components = np.ascontiguousarray(prepared.components)
        self._points = np.ascontiguousarray(fitted.space.points)
        self._coefficients = learned.weights
        self._kernel = np.array([learned.gamma, learned.intercept])
        self._centre = [float(one) for one in fitted.calibration.centre]
        self._slopes = [float(one) for one in fitted.calibration.slopes]
        self._level = fitted.calibration.level
        self._scores: dict[float, float] = {}
        self._steps: _Steps | None = None

    def predict(self, features: Numbers, figures: Numbers) -> tuple[float, float]:
        """Give seconds and distance to the domain of one launch.

        Parameters
        ----------
        features : ndarray of float64, shape (features,)
            In the order of the schema, NaN where one is absent.
        figures : ndarray of float64, shape (figures,)
            In the order of `kernelcast.models.columns.FIGURES`; the first is the linear model's
            time in seconds.

        Returns
        -------
        seconds : float
            Predicted time of the whole launch.
        domain_distance : float
            Distance to the training over its reach: above 1 is outside the domain.
        """
        correction, domain_distance = self._correct(features, figures)
        return float(figures[0]) * math.exp(correction), domain_distance

    def forecast(
        self, features: Numbers, figures: Numbers, coverage: float = COVERAGE
    ) -> RowForecast:
        """Give the time of one launch with its interval, as `FittedCorrection.forecast` does.

        Parameters
        ----------
        features, figures : ndarray
            As `predict` takes them.
        coverage : float
            Share of true times that intervals shall hold.
        """
        score = self._find_score(coverage)
        linear_s = float(figures[0])
        if not 0.0 < linear_s < math.inf:
            raise InputError(self._explain_absence(linear_s))
        correction, domain_distance = self._correct(features, figures)
        signs = (
            float(figures[_ERROR]),
            float(features[self._spread]) if self._spread >= 0 else math.nan,
            abs(correction) + SMALLEST_CORRECTION,
            max(domain_distance, NEAREST),
        )
        moved = 0.0
        for sign, centre, slope in zip(signs, self._centre, self._slopes, strict=True):
            if 0.0 < sign < math.inf:
                moved += (math.log(sign) - centre) * slope
        usual = math.exp(self._level + min(max(moved, -_LIMIT), _LIMIT)) * max(domain_distance, 1.0)
        factor = math.exp(min(score * usual, WIDEST))
        seconds = linear_s * math.exp(correction)
        return RowForecast(seconds, seconds / factor, seconds * factor, domain_distance <= 1.0)

    def forecast_many(
        self, features: Numbers, figures: Numbers, coverage: float = COVERAGE
    ) -> Forecast:
        """Give times of launches with their intervals, without a table around them.

        Parameters
        ----------
        features : ndarray of float64, shape (n, features)
            In the order of the schema, NaN where one is absent.
        figures : ndarray of float64, shape (n, figures)
            In the order of `kernelcast.models.columns.FIGURES`.
        coverage : float
            Share of true times that intervals shall hold.
        """
        check_coverage(coverage)
        linear_s = figures[:, 0]
        is_known = (linear_s > 0) & (linear_s < np.inf)
        if not is_known.all():
            raise InputError(self._explain_absence(float(linear_s[int(np.argmin(is_known))])))
        raw, domain_distance = self._batches.correct(features, figures)
        corrections = self._gate.apply(raw, domain_distance)
        spread = features[:, self._spread] if self._spread >= 0 else np.full(len(features), np.nan)
        signs = take_logs(figures[:, _ERROR], spread, corrections, domain_distance)
        return self._fitted.surround(
            linear_s * np.exp(corrections), signs, domain_distance, coverage
        )

    def _correct(self, features: Numbers, figures: Numbers) -> tuple[float, float]:
        """Give the gated correction and the distance to the domain of one launch."""
        if self._steps is None:
            self._steps = (_derive.fast, _weigh.fast, _expand.fast)
        derive, weigh, expand = self._steps
        plan = self._plan
        columns = derive(features, figures, plan.first, self._ratios, plan.logs)
        weighted = weigh(columns, self._scaling, self._indicators, self._weights)
        raw, nearest = expand(
            weighted, self._components, self._points, self._coefficients, self._kernel
        )
        domain_distance = math.sqrt(nearest) / self._reach
        kept = max(abs(raw) - self._gate.threshold, 0.0) * self._gate.share
        kept *= math.exp(-self._gate.fade * max(domain_distance - 1.0, 0.0))
        return math.copysign(kept, raw), domain_distance

    def _find_score(self, coverage: float) -> float:
        score = self._scores.get(coverage)
        if score is None:
            check_coverage(coverage)
            score = self._scores[coverage] = self._fitted.calibration.find_score(coverage)
        return score

    def _explain_absence(self, linear_s: float) -> str:
        return (
            f"model {self._fitted.name}: a linear time of {linear_s} s to start from; sample the "
            "launch, or take a model that needs no samples"
        )


@compiled
def _derive(
    features: Numbers, figures: Numbers, first: _Places, ratios: _Places, logs: _Places
) -> Numbers:
    base = np.ones(features.size + figures.size + 1)
    base[: features.size] = features
    base[features.size : features.size + figures.size] = figures
    columns = np.empty(first.size)
    for place in range(first.size):
        columns[place] = base[first[place]]
    for number in range(ratios.shape[1]):
        place = ratios[0, number]
        divisor = base[ratios[2, number]] * base[ratios[3, number]]
        product = columns[place] * base[ratios[1, number]]
        columns[place] = product / divisor if divisor else np.nan
    for place in logs:
        columns[place] = np.log(columns[place]) if columns[place] > 0 else np.nan
    return columns


@compiled
def _weigh(columns: Numbers, scaling: Numbers, indicators: _Places, weights: Numbers) -> Numbers:
    weighted = np.empty(weights.shape[1])
    for place in range(columns.size):
        value = columns[place] * scaling[0, place]
        log = scaling[1, place]
        if np.isfinite(value):
            log = np.copysign(np.log1p(abs(value)), value)
        standardised = (log - scaling[2, place]) / scaling[3, place]
        weighted[place] = min(max(standardised, -LIMIT), LIMIT) * weights[0, place]
    for number in range(indicators.size):
        place = columns.size + number
        absent = 0.0 if np.isfinite(columns[indicators[number]]) else 1.0
        weighted[place] = (absent - weights[1, place]) * weights[0, place]
    return weighted


@compiled
def _expand(
    weighted: Numbers, components: Numbers, points: Numbers, coefficients: Numbers,
    kernel: Numbers,
) -> tuple[float, float]:  # fmt: skip
    dimensions = components.shape[1]
    coordinates = np.zeros(dimensions)
    remainder = 0.0
    for place in range(weighted.size):
        value = weighted[place]
        remainder += value * value
        for axis in range(dimensions):
            coordinates[axis] += value * components[place, axis]
    for axis in range(dimensions):
        remainder -= coordinates[axis] ** 2
    total, nearest = kernel[1], np.inf
    for point in range(coefficients.size):
        distance = 0.0
        for axis in range(dimensions):
            gap = coordinates[axis] - points[point, axis]
            distance += gap * gap
        nearest = min(nearest, distance)
        if coefficients[point]:
            total += coefficients[point] * np.exp(-kernel[0] * distance)
    return total, nearest + max(remainder, 0.0)
