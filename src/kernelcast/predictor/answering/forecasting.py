"""Asks learned models about launches, all of one model at once."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
import numpy.typing as npt

from kernelcast.models.columns import FIGURES
from kernelcast.models.correction import FittedCorrection
from kernelcast.models.evidence.piece import FusedEstimate
from kernelcast.models.protocol import FittedModel, Forecast
from kernelcast.models.references import LINEAR
from kernelcast.predictor.answering.tasks import LaunchRow
from kernelcast.records.errors import KernelcastError
from kernelcast.records.estimates import Interval
from kernelcast.records.explanation import Influence
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.training_table import Numbers, TrainingTable, make_table

if TYPE_CHECKING:
    from kernelcast.models.persistence import StoredModel

Places = npt.NDArray[np.intp]

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
    features = _align(rows, schema)
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
        found = _forecast(model, rows, schema, coverage)
        return [_read(found, place) for place in range(len(rows))]
    except KernelcastError as error:
        if len(rows) == 1:
            return [str(error)]
    except (ValueError, ArithmeticError, IndexError) as error:
        if len(rows) == 1:
            return [f"the model failed on this launch: {error!r}"]
    return [forecast_rows(model, [one], schema, coverage)[0] for one in rows]


def start_from(row: LaunchRow, fused: FusedEstimate) -> LaunchRow:
    """Put a fused value in the place of the linear model's time, as models have learned it."""
    return replace(row, linear_s=fused.seconds, linear_error=math.sqrt(fused.variance))


def find_influences(
    model: FittedModel, row: LaunchRow, schema: FeatureSchema, most: int = 5
) -> tuple[Influence, ...]:
    """Find the features without which the answer would differ most.

    Each feature in turn is taken as not known, in one batch.
    """
    known = _align([row], schema)
    present = np.flatnonzero(np.isfinite(known[0]))
    features = np.repeat(known, len(present) + 1, axis=0)
    features[np.arange(1, len(features)), present] = np.nan
    try:
        if _needs_no_table(model):
            figures = np.repeat(_list_figures([row]), len(features), axis=0)
            seconds = model.forecast_arrays(schema, features, figures).seconds
        else:
            places = np.zeros(len(features), dtype=np.intp)
            table = tabulate([row], schema).take(places).with_features(schema, features)
            seconds = model.predict(table)
    except (KernelcastError, ValueError, ArithmeticError, IndexError):
        return ()
    factors = seconds[0] / seconds[1:]
    effects = np.abs(np.log(factors))
    order = [place for place in np.argsort(-effects)[:most] if effects[place] > _LEAST_EFFECT]
    return tuple(
        Influence(feature=schema.names[present[place]], factor=float(factors[place]))
        for place in order
    )


def forecast_methods(models: Mapping[str, "StoredModel"], row: LaunchRow) -> dict[str, float]:
    """Give the times of several models side by side; those without an answer are left out."""
    found = {}
    for name, one in models.items():
        try:
            seconds = float(one.model.predict(tabulate([row], one.schema))[0])
        except (KernelcastError, ValueError, ArithmeticError, IndexError):
            continue
        if math.isfinite(seconds) and seconds > 0:
            found[name] = seconds
    return found


def _forecast(
    model: FittedModel, rows: Sequence[LaunchRow], schema: FeatureSchema, coverage: float
) -> Forecast:
    """Ask a model, without a table where it needs none: that takes longer than the answer."""
    if _needs_no_table(model):
        features, figures = _align(rows, schema), _list_figures(rows)
        return model.forecast_arrays(schema, features, figures, coverage)
    return model.forecast(tabulate(rows, schema), coverage)


def _list_figures(rows: Sequence[LaunchRow]) -> Numbers:
    return np.array(
        [
            [_number(getattr(one.peaks if name in _PEAKS else one, name)) for name in FIGURES]
            for one in rows
        ]
    ).reshape(-1, len(FIGURES))


def _needs_no_table(model: FittedModel) -> TypeGuard[FittedCorrection]:
    return isinstance(model, FittedCorrection) and model.model.reference == LINEAR


def _align(rows: Sequence[LaunchRow], schema: FeatureSchema) -> Numbers:
    """Put vectors into the order of a schema; `FeatureVector.align` would check every name."""
    features = np.full((len(rows), len(schema.names)), np.nan)
    for row, one in enumerate(rows):
        theirs, ours = _find_places(one.vector.names, schema)
        features[row, ours] = np.array(one.vector.values)[theirs]
    return features


@lru_cache(maxsize=256)
def _find_places(names: tuple[str, ...], schema: FeatureSchema) -> tuple[Places, Places]:
    """Give places of those names that a schema has, and their places there."""
    there = {name: place for place, name in enumerate(schema.names)}
    pairs = [(place, there[name]) for place, name in enumerate(names) if name in there]
    found = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    return found[:, 0], found[:, 1]


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
