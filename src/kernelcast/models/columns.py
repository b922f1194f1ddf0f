"""Columns that learned models see: features, and dimensionless ratios made of them.

Two variants. `Variant.DEVICE` takes features as they are, for models of one device.
`Variant.POOLED` takes only what means the same on every device: ratios, counts of the source,
rates over calibrated peaks, volumes over cache sizes, times over the linear model's time. It
serves a device that was calibrated but never seen.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from kernelcast.records.feature_vector import FeatureSchema, group_of
from kernelcast.records.training_table import Numbers, TrainingTable


class Variant(StrEnum):
    """Which columns a model takes."""

    DEVICE = "device"
    """Features with their units."""
    POOLED = "pooled"
    """Only numbers without a unit."""


FIGURES = (
    "linear_s", "linear_error", "sampling_s", "work_groups", "compute_units", "cache_bytes",
    "bandwidth_bytes_per_s", "flops_per_s",
)  # fmt: skip
"""Columns of a table that ratios are made of, beside its features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A product over a product."""

    above: tuple[str, ...]
    below: tuple[str, ...] = ()
    """Features, or figures of the table."""
    is_log: bool = False
    """Whether the logarithm is taken: how two estimates differ has a sign."""


_ITEMS = "static.work_items_count"
_ISSUED = "counters.issued_instructions_per_work_item"
_ESTIMATE = "analytic.estimate_s"
# Answers of rivals: to be compared with, not to be learned from.
_RIVALS = frozenset({"analytic.mwp_cwp_s"})
_TRAFFIC = ("linear_s", "bandwidth_bytes_per_s")
# What the linear model's own numbers say of its error, and how estimates differ.
_RATIOS: Mapping[str, Ratio] = {
    "sampled.linear_error_ratio": Ratio(above=("linear_error",)),
    "sampled.sampled_time_ratio": Ratio(above=("sampling_s",), below=("linear_s",)),
    "sampled.sampled_work_groups_ratio": Ratio(
        above=("sampled.work_groups_count",), below=("work_groups",)
    ),
    "sampled.pooled_over_linear_ratio": Ratio(
        above=("sampled.total_s", "work_groups"),
        below=("sampled.work_groups_count", "linear_s"),
        is_log=True,
    ),
    "sampled.overhead_of_run_ratio": Ratio(
        above=("sampled.launch_overhead_s",), below=("sampled.run_s",)
    ),
    "sampled.overhead_of_linear_ratio": Ratio(
        above=("sampled.launch_overhead_s",), below=("linear_s",)
    ),
    "static.work_groups_per_compute_unit": Ratio(above=("work_groups",), below=("compute_units",)),
    "static.buffers_over_cache_ratio": Ratio(
        above=("static.buffer_bytes",), below=("cache_bytes",)
    ),
    "counters.flops_over_peak_ratio": Ratio(
        above=("counters.flops_per_work_item", _ITEMS), below=("linear_s", "flops_per_s")
    ),
    "counters.loads_over_peak_ratio": Ratio(
        above=("counters.global_load_bytes_per_work_item", _ITEMS), below=_TRAFFIC
    ),
    "counters.stores_over_peak_ratio": Ratio(
        above=("counters.global_store_bytes_per_work_item", _ITEMS), below=_TRAFFIC
    ),
    "analytic.estimate_over_linear_ratio": Ratio(
        above=(_ESTIMATE,), below=("linear_s",), is_log=True
    ),
}
_WITH_UNIT = ("_s", "_bytes", "_per_s", "_per_compute_unit")
_FACTORS = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnPlan:
    """How columns are made of a schema's features and a table's figures."""

    names: tuple[str, ...]
    """``group.what_unit``, as features are called."""
    first: npt.NDArray[np.intp]
    """Shape (names,). Place of what a column begins with among features, figures and a one."""
    ratios: npt.NDArray[np.intp]
    """Shape (ratios,). Columns that are more than a copy."""
    second: npt.NDArray[np.intp]
    """Shape (ratios,). Place of the other factor."""
    below: npt.NDArray[np.intp]
    """Shape (ratios, 2). Places of the divisors."""
    logs: npt.NDArray[np.intp]
    """Shape (logs,). Columns of which the logarithm is taken."""

    def compute(self, base: Numbers) -> Numbers:
        """Make the columns.

        Parameters
        ----------
        base : ndarray, shape (n, features + figures + 1)
            See `gather_base`.

        Returns
        -------
        ndarray, shape (n, names)
            NaN where one is absent.
        """
        values = base[:, self.first]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            values[:, self.ratios] *= base[:, self.second]
            values[:, self.ratios] /= base[:, self.below[:, 0]] * base[:, self.below[:, 1]]
            values[:, self.logs] = np.log(values[:, self.logs])
        values[np.isinf(values)] = np.nan
        return values


def gather_base(table: TrainingTable) -> Numbers:
    """Put features, figures and a one side by side, shape (n, features + figures + 1)."""
    return join_base(table.features, np.column_stack([getattr(table, name) for name in FIGURES]))


def join_base(features: Numbers, figures: Numbers) -> Numbers:
    """Do so with ready arrays, figures in the order of `FIGURES`."""
    return np.hstack([features, figures, np.ones((len(features), 1))])


@lru_cache(maxsize=32)
def plan_columns(schema: FeatureSchema, groups: tuple[str, ...], variant: Variant) -> ColumnPlan:
    """Plan the columns of some feature groups.

    Returns
    -------
    ColumnPlan
        Ratios whose parts the schema lacks are left out.
    """
    known = (*schema.names, *FIGURES)
    found = {**dict(_list_plain(schema, variant)), **dict(_list_shares(schema, variant)), **_RATIOS}
    kept = {
        name: one for name, one in found.items()
        if group_of(name) in groups and {*one.above, *one.below} <= {*known}
    }  # fmt: skip
    place_of = {name: place for place, name in enumerate(known)}
    parts = [*kept.values()]
    ratios = [place for place, one in enumerate(parts) if len(one.above) > 1 or one.below]
    return ColumnPlan(
        names=tuple(kept),
        first=np.array([place_of[one.above[0]] for one in parts], dtype=np.intp),
        ratios=np.array(ratios, dtype=np.intp),
        second=np.array(
            [_fill(parts[place].above[1:], place_of, 1)[0] for place in ratios], dtype=np.intp
        ),
        below=np.array(
            [_fill(parts[place].below, place_of, _FACTORS) for place in ratios], dtype=np.intp
        ).reshape(-1, _FACTORS),
        logs=np.array([place for place, one in enumerate(parts) if one.is_log], dtype=np.intp),
    )


def _fill(names: Collection[str], place_of: Mapping[str, int], count: int) -> list[int]:
    """Give places of factors, and of the one for factors there are not."""
    places = [place_of[name] for name in names]
    return places + [len(place_of)] * (count - len(places))


def _list_learned(schema: FeatureSchema) -> tuple[str, ...]:
    return tuple(name for name in schema.names if name not in _RIVALS)


def _list_plain(schema: FeatureSchema, variant: Variant) -> Iterator[tuple[str, Ratio]]:
    for name in _list_learned(schema):
        if variant is Variant.DEVICE or not _has_unit(name):
            yield name, Ratio(above=(name,))


def _has_unit(name: str) -> bool:
    return name.endswith(_WITH_UNIT) or "_bytes_per_" in name or "_s_per_" in name


def _is_time(name: str) -> bool:
    return name.endswith("_s") and not name.endswith("_per_s")


def _list_shares(schema: FeatureSchema, variant: Variant) -> Iterator[tuple[str, Ratio]]:
    """Give limiters as shares of the analytic time, and operations as shares of all issued."""
    for name in _list_learned(schema):
        group, _, rest = name.partition(".")
        if group == "analytic" and _is_time(name) and name != _ESTIMATE:
            ratio = Ratio(above=(name,), below=(_ESTIMATE,))
            yield f"{group}.{rest.removesuffix('_s')}_of_estimate_ratio", ratio
        elif (
            variant is Variant.POOLED and group == "counters" and name != _ISSUED
            and rest.endswith("_per_work_item")
        ):  # fmt: skip
            ratio = Ratio(above=(name,), below=(_ISSUED,))
            yield f"{group}.{rest.removesuffix('_per_work_item')}_of_issued_ratio", ratio
