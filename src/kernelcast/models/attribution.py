"""Where a learned correction comes from: feature groups by Shapley values, single columns by turn.

The worth of a set of feature groups is the correction that the model gives where the other groups
are replaced by the training's medians. A group's contribution is its Shapley value: what it adds,
on average over all orders in which groups may come (Shapley, "A value for n-person games", 1953).
With five groups all 32 sets are computed, so that nothing is sampled, and contributions add up to
the correction less its base, the correction at the medians, but for rounding.

Single columns are replaced by their medians one at a time. These effects do not add up: columns
that say the same stand in for each other.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.models.columns import gather_base, plan_columns
from kernelcast.models.correction import FittedCorrection
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import group_of
from kernelcast.records.training_table import Numbers, TrainingTable

TOP = 5
"""Columns that are named unless more are asked for."""
# Below it an effect is rounding.
_LEAST_EFFECT = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupShare:
    """What a feature group contributes."""

    group: str
    """See `kernelcast.records.feature_vector.FeatureGroup`."""
    contribution: float
    """Its part of the correction, as a share of the reference time: 0.1 makes it 10 % longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnEffect:
    """What one column does."""

    name: str
    """A feature, or a ratio of features that the model makes of them."""
    value: float | None
    """The launch's own; the mean over several launches; None where it is absent."""
    median: float
    """The training's."""
    effect: float
    """Correction less the correction with the median in its place, as a share of the reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """A correction and where it comes from; the mean of several launches' where rows says so."""

    model: str
    """Whose correction."""
    rows: int
    """Launches."""
    correction: float
    """Predicted over reference time, less 1: after the gate, as estimates use it."""
    base: float
    """The same where every column is the training's median."""
    groups: tuple[GroupShare, ...]
    """Largest first; contributions add up to `correction` less `base`."""
    columns: tuple[ColumnEffect, ...]
    """The largest effects, largest first; those without any are left out."""


def attribute(fitted: FittedCorrection, table: TrainingTable) -> Attribution:
    """Take the mean correction of launches apart, such as all of a kernel.

    Shapley values stay exact, since means add up as well.
    """
    if not len(table):
        msg = "attribution: no launches; give at least one"
        raise InputError(msg)
    domain_distance = fitted.space.measure_domain_distance(fitted.place(table))
    model = fitted.model
    plan = plan_columns(table.schema, model.feature_groups, model.variant)
    values = plan.compute(gather_base(table))
    medians = _find_medians(fitted)
    owners = np.array([str(group_of(name)) for name in plan.names])
    groups = tuple(one for one in model.feature_groups if (owners == one).any())
    members = np.array([owners == one for one in groups])
    found = [
        _take_row_apart(fitted, row, medians, members, far)
        for row, far in zip(values, domain_distance.tolist(), strict=True)
    ]
    correction, base, contributions, effects = (
        np.mean(part, axis=0) for part in zip(*found, strict=True)
    )
    by_size = np.argsort(-np.abs(contributions), kind="stable")
    largest = np.argsort(-np.abs(effects), kind="stable")[:TOP]
    return Attribution(
        model=fitted.name,
        rows=len(table),
        correction=float(correction),
        base=float(base),
        groups=tuple(
            GroupShare(group=groups[place], contribution=float(contributions[place]))
            for place in by_size
        ),
        columns=tuple(
            ColumnEffect(
                name=plan.names[place],
                value=_average(values[:, place]),
                median=float(medians[place]),
                effect=float(effects[place]),
            )
            for place in largest
            if abs(effects[place]) > _LEAST_EFFECT
        ),
    )


def _take_row_apart(
    fitted: FittedCorrection,
    row: Numbers,
    medians: Numbers,
    members: npt.NDArray[np.bool_],
    domain_distance: float,
) -> tuple[float, float, Numbers, Numbers]:
    """Give correction, base, contributions of groups and effects of columns of one launch."""
    kept = _list_sets(len(members))
    of_sets = np.where(kept @ members, row, medians)
    of_columns = np.where(np.eye(len(row), dtype=np.bool_), medians, row)
    worth = _correct(fitted, np.vstack([of_sets, of_columns]), domain_distance)
    sets, columns = worth[: len(kept)], worth[len(kept) :]
    return float(sets[-1]), float(sets[0]), _share_out(sets, kept), sets[-1] - columns


def _correct(fitted: FittedCorrection, values: Numbers, domain_distance: float) -> Numbers:
    """Give gated corrections of columns, as shares.

    The gate sees the launch's own distance to the training throughout: launches put together from
    two would be far from it, and what is asked is what the features say and not that such a
    launch is strange.
    """
    corrections = fitted.learned.predict(fitted.space.place(values))
    gated = fitted.gate.apply(corrections, np.full(len(values), domain_distance))
    found: Numbers = np.expm1(gated)
    return found


def _list_sets(count: int) -> npt.NDArray[np.bool_]:
    """Give all sets of so many things, shape (2^count, count): bit i of a set's number is thing i.

    Examples
    --------
    >>> _list_sets(2).astype(int).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    numbers = np.arange(2**count)[:, None]
    found: npt.NDArray[np.bool_] = (numbers >> np.arange(count)) % 2 == 1
    return found


def _share_out(worth: Numbers, sets: npt.NDArray[np.bool_]) -> Numbers:
    """Give Shapley values.

    Parameters
    ----------
    worth : ndarray, shape (2^k,)
        Of each set.
    sets : ndarray of bool, shape (2^k, k)
        See `_list_sets`.

    Returns
    -------
    ndarray, shape (k,)
        They add up to the worth of all less that of none.
    """
    count = sets.shape[1]
    factorial = math.factorial
    weights = np.array([
        factorial(size) * factorial(count - size - 1) / factorial(count) for size in range(count)
    ])  # fmt: skip
    shares = np.empty(count)
    for place in range(count):
        without = np.flatnonzero(~sets[:, place])
        gains = worth[without | (1 << place)] - worth[without]
        shares[place] = weights[sets[without].sum(axis=1)] @ gains
    return shares


def _find_medians(fitted: FittedCorrection) -> Numbers:
    """Give the training's medians in the columns' own units; 0 where it knew no value."""
    prepared = fitted.space.preparation
    found: Numbers = np.copysign(np.expm1(np.abs(prepared.fill)), prepared.fill) / prepared.factors
    return found


def _average(values: Numbers) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else None
