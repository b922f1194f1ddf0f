"""One launch at a time, compiled: a scheduler that asks for each launch pays microseconds.

scikit-learn checks its input at every call, NumPy allocates at every step; for one row both cost
more than the arithmetic. The result is that of `FittedCorrection.predict` up to the order of
sums.
"""

import math

import numpy as np
import numpy.typing as npt

from kernelcast.models.columns import FIGURES, plan_columns
from kernelcast.models.correction import FittedCorrection
from kernelcast.models.learned.compiling import compiled
from kernelcast.models.learned.svr import FittedSvr
from kernelcast.models.preparation import LIMIT
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.training_table import Numbers

_Places = npt.NDArray[np.int64]


class RowPredictor:
    """Predicts one launch of a ready vector.

    Parameters
    ----------
    fitted : FittedCorrection
        With an SVR that corrects the linear model.
    schema : FeatureSchema
        Of the vectors.

    Raises
    ------
    InputError
        If the model is another, or was trained on another schema.
    """

    def __init__(self, fitted: FittedCorrection, schema: FeatureSchema) -> None:
        learned = fitted.learned
        if not isinstance(learned, FittedSvr) or fitted.model.reference.name != "linear":
            msg = f"model {fitted.name}: only an SVR that corrects the linear model is compiled"
            raise InputError(msg)
        if schema.id != fitted.schema_id:
            msg = f"model {fitted.name}: trained on schema {fitted.schema_id}, not {schema.id}"
            raise InputError(msg)
        model = fitted.model
        plan = plan_columns(schema, model.feature_groups, model.variant)
        prepared = fitted.space.preparation
        self._gate, self._reach = fitted.gate, fitted.space.reach
        self._base = np.ones(len(schema.names) + len(FIGURES) + 1)
        self._features = len(schema.names)
        self._first, self._logs = plan.first, plan.logs
        self._ratios = np.vstack([plan.ratios, plan.second, plan.below.T])
        self._columns = np.empty(len(plan.names))
        self._scaling = np.vstack(
            [prepared.factors, prepared.fill, prepared.centre, prepared.scale]
        )
        self._indicators = prepared.indicators
        self._weighted = np.empty(len(prepared.weights))
        rates = np.zeros(len(prepared.weights))
        rates[len(plan.names) :] = prepared.absence_rates
        self._weights = np.vstack([prepared.weights, rates])
        self._components = np.ascontiguousarray(prepared.components)
        self._points = np.ascontiguousarray(fitted.space.points)
        self._coefficients = learned.weights
        self._kernel = np.array([learned.gamma, learned.intercept])

    def predict(self, features: Numbers, figures: Numbers) -> tuple[float, float]:
        """Give seconds and strangeness of one launch; not for several threads at once.

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
        strangeness : float
            Distance to the training over its reach: above 1 is outside the domain.
        """
        base = self._base
        base[: self._features] = features
        base[self._features : -1] = figures
        _derive(base, self._columns, self._first, self._ratios, self._logs)
        _weigh(self._columns, self._weighted, self._scaling, self._indicators, self._weights)
        correction, nearest = _expand(
            self._weighted, self._components, self._points, self._coefficients, self._kernel
        )
        strangeness = math.sqrt(nearest) / self._reach
        kept = max(abs(correction) - self._gate.threshold, 0.0) * self._gate.share
        kept *= math.exp(-self._gate.fade * max(strangeness - 1.0, 0.0))
        return float(figures[0]) * math.exp(math.copysign(kept, correction)), strangeness


@compiled
def _derive(
    base: Numbers, columns: Numbers, first: _Places, ratios: _Places, logs: _Places
) -> None:
    for place in range(first.size):
        columns[place] = base[first[place]]
    for number in range(ratios.shape[1]):
        place = ratios[0, number]
        divisor = base[ratios[2, number]] * base[ratios[3, number]]
        product = columns[place] * base[ratios[1, number]]
        columns[place] = product / divisor if divisor else np.nan
    for place in logs:
        columns[place] = np.log(columns[place]) if columns[place] > 0 else np.nan


@compiled
def _weigh(
    columns: Numbers, weighted: Numbers, scaling: Numbers, indicators: _Places, weights: Numbers
) -> None:
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
