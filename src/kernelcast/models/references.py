"""Times that need no learning, which learned models correct and are compared with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kernelcast.models.learned.learner import Part
from kernelcast.records.errors import InputError
from kernelcast.records.training_table import Numbers, TrainingTable


class FittedReference(Protocol):
    """A reference that is ready."""

    def seconds(self, table: TrainingTable) -> Numbers:
        """Give times of whole launches in seconds, NaN where there is none."""
        ...


class Reference(Protocol):
    """Times to correct."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def knows(self, table: TrainingTable) -> npt.NDArray[np.bool_]:
        """Tell of each row whether it has what a time can be made of."""
        ...

    def fit(self, table: TrainingTable) -> FittedReference:
        """Get ready, from measured launches where something is to be learned."""
        ...

    def cross_seconds(self, table: TrainingTable, parts: Sequence[Part]) -> Numbers:
        """Give times of launches whose groups were not learned from."""
        ...


def _linear(table: TrainingTable) -> Numbers:
    return table.linear_s


def _two_point(table: TrainingTable) -> Numbers:
    return np.where(np.isnan(table.two_point_s), table.linear_s, table.two_point_s)


def _pooled(table: TrainingTable) -> Numbers:
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = table.column("sampled.total_s") / table.column("sampled.work_groups_count")
        found: Numbers = rate * table.work_groups
    return found


def _analytic(table: TrainingTable) -> Numbers:
    return table.column("analytic.estimate_s")


def _mwp_cwp(table: TrainingTable) -> Numbers:
    return table.column("analytic.mwp_cwp_s")


def _work(table: TrainingTable) -> Numbers:
    """Give a nanosecond per unit of work; what a unit really takes is learned."""
    items = table.column("static.work_items_count")
    issued = table.column("counters.issued_instructions_per_work_item")
    found: Numbers = 1e-9 * items * np.where(np.isfinite(issued), issued, 1.0)
    sizes = [one for one in table.schema.names if one.startswith("static.size_")]
    product = np.prod([table.column(one) for one in sizes], axis=0) if sizes else np.nan
    return np.where(np.isfinite(found), found, 1e-9 * product)


_COLUMNS: Mapping[str, Callable[[TrainingTable], Numbers]] = {
    "linear": _linear,
    "two_point": _two_point,
    "pooled": _pooled,
    "analytic": _analytic,
    "mwp_cwp": _mwp_cwp,
    "work": _work,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnReference:
    """A time that is in the table: nothing is learned."""

    name: str = "linear"
    """``linear``: the linear model's; ``two_point``: the paper's formula, or the linear model's
    where there are no two sizes; ``pooled``: work-groups over all samples' work-groups per second;
    ``analytic``: the analytic model's, without samples; ``mwp_cwp``: Hong and Kim's, likewise."""

    def seconds(self, table: TrainingTable) -> Numbers:
        """Give the column; NaN where it holds no positive number."""
        found = _COLUMNS[self.name](table)
        return np.where((found > 0) & np.isfinite(found), found, np.nan)

    def knows(self, table: TrainingTable) -> npt.NDArray[np.bool_]:
        """Tell of each row whether it has a time."""
        return ~np.isnan(self.seconds(table))

    def fit(self, table: TrainingTable) -> FittedReference:
        """Be ready."""
        del table
        return self

    def cross_seconds(self, table: TrainingTable, parts: Sequence[Part]) -> Numbers:
        """Give the column."""
        del parts
        return self.seconds(table)


LINEAR = ColumnReference(name="linear")
"""The reference of every learned model unless another is given."""


def require_seconds(name: str, reference: FittedReference, table: TrainingTable) -> Numbers:
    """Give a reference's times, or say which row has none."""
    found = reference.seconds(table)
    missing = np.isnan(found)
    if missing.any():
        first = int(np.argmax(missing))
        msg = (
            f"model {name}: {int(missing.sum())} of {len(table)} rows have no time to start from, "
            f"the first is row {first} ({table.kernels[first]}); sample them, or take a model "
            "that needs no samples"
        )
        raise InputError(msg)
    return found
