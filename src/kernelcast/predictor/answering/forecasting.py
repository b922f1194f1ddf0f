"""Asks learned models about launches, all of one model at once."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kernelcast.models.protocol import FittedModel, Forecast
from kernelcast.predictor.answering.asking import LaunchRow
from kernelcast.records.errors import KernelcastError
from kernelcast.records.estimates import Interval
from kernelcast.records.explanation import Influence
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.training_table import TrainingTable, make_table

_PEAKS = ("cache_bytes", "bandwidth_bytes_per_s", "flops_per_s")
_PLAIN = ("linear_s", "linear_error", "two_point_s", "sampling_s", "work_groups", "compute_units")
# Smaller changes are rounding, or a gate that lets nothing through.
_LEAST_EFFECT = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class RowForecast:
    """A learned model's answer to one launch.

    Parameters
    ----------
    interval : Interval
        In seconds.
    in_domain : bool
        Whether the launch resembles those the model has learned from.
    """

    interval: Interval
    in_domain: bool


def tabulate(rows: Sequence[LaunchRow], schema: FeatureSchema) -> TrainingTable:
    """Make the table that models take, one row per launch.

    Parameters
    ----------
    rows : sequence of LaunchRow
        Launches.
    schema : FeatureSchema
        Of the models; what a launch has beyond it is left out, what it lacks is NaN.
    """
    # `FeatureVector.align` checks every name: 0.7 ms a row of 260 features.
    places = {name: place for place, name in enumerate(schema.names)}
    features = np.full((len(rows), len(places)), np.nan)
    for row, one in enumerate(rows):
        pairs = zip(one.vector.names, one.vector.values, strict=True)
        for name, value in pairs:
            if name in places:
                features[row, places[name]] = value
    columns: dict[str, list[float]] = {
        name: [_number(getattr(one, name)) for one in rows] for name in _PLAIN
    }
    columns |= {name: [_number(getattr(one.peaks, name)) for one in rows] for name in _PEAKS}
    return make_table(schema, features, columns)


def forecast_rows(
    model: FittedModel, rows: Sequence[LaunchRow], schema: FeatureSchema, coverage: float
) -> list[RowForecast | str]:
    """Ask a model about launches at once; where one has no answer, the text says why."""
    try:
        found = model.forecast(tabulate(rows, schema), coverage)
        return [_read(found, place) for place in range(len(rows))]
    except KernelcastError as error:
        if len(rows) == 1:
            return [str(error)]
    except (ValueError, ArithmeticError, IndexError) as error:
        if len(rows) == 1:
            return [f"the model failed on this launch: {error!r}"]
    return [forecast_rows(model, [one], schema, coverage)[0] for one in rows]


def find_influences(
    model: FittedModel, row: LaunchRow, schema: FeatureSchema, most: int = 5
) -> tuple[Influence, ...]:
    """Find the features without which the answer would differ most.

    Each feature in turn is taken as not known, in one batch.
    """
    table = tabulate([row], schema)
    present = np.flatnonzero(np.isfinite(table.features[0]))
    varied = table.take(np.zeros(len(present) + 1, dtype=np.intp))
    features = varied.features.copy()
    features[np.arange(1, len(features)), present] = np.nan
    try:
        seconds = model.predict(replace(varied, features=features))
    except (KernelcastError, ValueError, ArithmeticError, IndexError):
        return ()
    factors = seconds[0] / seconds[1:]
    effects = np.abs(np.log(factors))
    order = [place for place in np.argsort(-effects)[:most] if effects[place] > _LEAST_EFFECT]
    return tuple(
        Influence(feature=schema.names[present[place]], factor=float(factors[place]))
        for place in order
    )


def forecast_methods(
    models: Mapping[str, FittedModel], row: LaunchRow, schema: FeatureSchema
) -> dict[str, float]:
    """Give the times of several models side by side; those without an answer are left out."""
    found = {}
    for name, model in models.items():
        try:
            seconds = float(model.predict(tabulate([row], schema))[0])
        except (KernelcastError, ValueError, ArithmeticError, IndexError):
            continue
        if math.isfinite(seconds) and seconds > 0:
            found[name] = seconds
    return found


def _read(found: Forecast, place: int) -> RowForecast:
    interval = Interval(
        seconds=float(found.seconds[place]),
        low=float(found.low[place]),
        high=float(found.high[place]),
        coverage=found.coverage,
    )
    return RowForecast(interval=interval, in_domain=bool(found.in_domain[place]))


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
