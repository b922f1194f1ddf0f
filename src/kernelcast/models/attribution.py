"""Where a learned correction comes from: feature groups by Shapley values, single columns by turn.

The worth of a set of feature groups is the correction that the model gives where the columns of
the other groups are absent, which stand at the training's medians. A group's contribution is its
Shapley value: what it adds on average over all orders in which groups may come (Shapley, "A value
for n-person games", 1953). All sets are computed, so that contributions add up to the correction
less its base, the correction without any group.

Single columns are left out one at a time. These effects do not add up: columns that say the same
stand in for each other.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import numpy as np

from kernelcast.models.time_models import FittedModel
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import group_of
from kernelcast.records.training_table import TrainingTable

TOP = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """A correction and where it comes from; the mean of several launches' where rows says so."""

    model: str
    rows: int
    correction: float
    """Predicted over reference time, less 1: after the gate, as estimates use it."""
    base: float
    """The same where every column is the training's median."""
    groups: tuple[Mapping[str, Any], ...]
    """Each ``group`` and its ``contribution``, largest first, as a share of the reference time: 0.1
    makes it 10 % longer. They add up to `correction` less `base`."""
    columns: tuple[Mapping[str, Any], ...]
    """The largest effects, largest first: ``name`` of a feature, or of a ratio that the model makes
    of features; its ``value``, the mean over several launches, None where it is absent; the
    training's ``median``; ``effect``, correction less the correction without it."""


def attribute(fitted: FittedModel, table: TrainingTable) -> Attribution:
    """Take the mean correction of launches apart, such as all of a kernel."""
    learned = fitted.correction
    if not len(table) or learned is None:
        raise InputError(
            f"attribution: {len(table)} launches, by {fitted.name}; give some, and a learned model"
        )
    columns = fitted.model.make_columns(table, fitted.model.refer(table))
    distances = learned.predict(columns)[1]
    owners = {name: str(group_of(name)) for name in learned.names}

    def predict(kept: Collection[str]) -> float:
        """Return the mean correction with some columns; the gate sees the launches as they are."""
        shown = {name: columns.get(name, np.full(len(table), np.nan)) for name in learned.names}
        shown |= {name: np.full(len(table), np.nan) for name in {*learned.names} - {*kept}}
        corrections, apart = learned.predict(shown)
        if learned.is_gated:
            corrections = corrections * np.exp(
                np.maximum(apart - 1.0, 0.0) - np.maximum(distances - 1.0, 0.0)
            )
        return float(np.expm1(corrections).mean())

    groups = [one for one in fitted.model.feature_groups if one in owners.values()]
    worth = {
        kept: predict([name for name, owner in owners.items() if owner in kept])
        for size in range(len(groups) + 1)
        for kept in map(frozenset, combinations(groups, size))
    }
    shares = dict.fromkeys(groups, 0.0)
    for order in permutations(groups):
        for place, one in enumerate(order):
            added = worth[frozenset(order[: place + 1])] - worth[frozenset(order[:place])]
            shares[one] += added / math.factorial(len(groups))
    correction = worth[frozenset(groups)]
    effects = {name: correction - predict([*({*learned.names} - {name})]) for name in learned.names}
    medians = np.copysign(np.expm1(np.abs(learned.fill)), learned.fill)
    by_name = dict(zip(learned.names, medians.tolist(), strict=True))
    means = {
        name: float(known.mean())
        for name, column in columns.items()
        if (known := column[np.isfinite(column)]).size
    }
    largest = sorted(effects, key=lambda name: -abs(effects[name]))[:TOP]
    return Attribution(
        model=fitted.name,
        rows=len(table),
        correction=correction,
        base=worth[frozenset()],
        groups=tuple(
            {"group": name, "contribution": shares[name]}
            for name in sorted(shares, key=lambda name: -abs(shares[name]))
        ),
        columns=tuple(
            {
                "name": name, "value": means.get(name), "median": by_name[name],
                "effect": effects[name],
            }
            for name in largest
            # A smaller effect is rounding.
            if abs(effects[name]) > 1e-9
        ),
    )  # fmt: skip
