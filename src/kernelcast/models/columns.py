"""Columns that learned models see: numbers without a unit, which mean the same on every device.

Ratios, counts of the source, rates over calibrated peaks, volumes over cache sizes, and times over
the time that a model corrects. What carries a unit is left out: it would tell devices apart instead
of launches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kernelcast.records.feature_vector import FeatureGroup, group_of
from kernelcast.records.training_table import Numbers, TrainingTable

ALL_GROUPS: Final = tuple(str(one) for one in FeatureGroup)
FIGURES: Final = (
    "linear_s", "linear_error", "sampling_s", "work_groups", "compute_units", "cache_bytes",
    "bandwidth_bytes_per_s", "flops_per_s",
)  # fmt: skip
"""Columns of a table that ratios are made of, beside its features. `linear_s` is the time that is
corrected, and `linear_error` its standard error as a share of it."""


@dataclass(frozen=True, slots=True)
class _Ratio:
    """A product over a product; its logarithm where it tells how two times differ."""

    above: tuple[str, ...]
    below: tuple[str, ...] = ()
    is_log: bool = False


_ITEMS = "static.work_items_count"
_ISSUED = "counters.issued_instructions_per_work_item"
_ESTIMATE = "analytic.estimate_s"
_PEAK = ("linear_s", "bandwidth_bytes_per_s")
_RATIOS: Final[Mapping[str, _Ratio]] = {
    "sampled.linear_error_ratio": _Ratio(("linear_error",)),
    "sampled.sampled_time_ratio": _Ratio(("sampling_s",), ("linear_s",)),
    "sampled.sampled_work_groups_ratio": _Ratio(("sampled.work_groups_count",), ("work_groups",)),
    "sampled.pooled_over_linear_ratio": _Ratio(
        ("sampled.total_s", "work_groups"), ("sampled.work_groups_count", "linear_s"), is_log=True
    ),
    "sampled.overhead_of_run_ratio": _Ratio(("sampled.launch_overhead_s",), ("sampled.run_s",)),
    "sampled.overhead_of_linear_ratio": _Ratio(("sampled.launch_overhead_s",), ("linear_s",)),
    "static.work_groups_per_compute_unit": _Ratio(("work_groups",), ("compute_units",)),
    "static.buffers_over_cache_ratio": _Ratio(("static.buffer_bytes",), ("cache_bytes",)),
    "counters.flops_over_peak_ratio": _Ratio(
        ("counters.flops_per_work_item", _ITEMS), ("linear_s", "flops_per_s")
    ),
    "counters.loads_over_peak_ratio": _Ratio(
        ("counters.global_load_bytes_per_work_item", _ITEMS), _PEAK
    ),
    "counters.stores_over_peak_ratio": _Ratio(
        ("counters.global_store_bytes_per_work_item", _ITEMS), _PEAK
    ),
    "analytic.estimate_over_linear_ratio": _Ratio((_ESTIMATE,), ("linear_s",), is_log=True),
}
# An answer of a rival is to be compared with, not to be learned from.
_LEFT_OUT = frozenset({"analytic.mwp_cwp_s"})
_WITH_UNIT = ("_s", "_bytes", "_per_s", "_per_compute_unit")


def make_columns(
    values: Mapping[str, Numbers], groups: Sequence[str] = ALL_GROUPS
) -> dict[str, Numbers]:
    plans = dict(_RATIOS)
    for name in values:
        if name in FIGURES or name in _LEFT_OUT:
            continue
        group, _, rest = name.partition(".")
        if not (name.endswith(_WITH_UNIT) or "_bytes_per_" in name or "_s_per_" in name):
            plans[name] = _Ratio((name,))
        elif group == "analytic" and rest.endswith("_s") and name != _ESTIMATE:
            share = f"{group}.{rest.removesuffix('_s')}_of_estimate_ratio"
            plans[share] = _Ratio((name,), (_ESTIMATE,))
        if group == "counters" and name != _ISSUED and rest.endswith("_per_work_item"):
            share = f"{group}.{rest.removesuffix('_per_work_item')}_of_issued_ratio"
            plans[share] = _Ratio((name,), (_ISSUED,))
    found = {}
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for name, one in sorted(plans.items()):
            if group_of(name) in groups and values.keys() >= {*one.above, *one.below}:
                column = np.prod([values[part] for part in one.above], axis=0)
                if one.below:
                    column = column / np.prod([values[part] for part in one.below], axis=0)
                column = np.log(column) if one.is_log else column
                found[name] = np.where(np.isfinite(column), column, np.nan)
    return found


def list_values(table: TrainingTable) -> dict[str, Numbers]:
    features = table.features
    found = {name: features[:, place] for place, name in enumerate(table.schema.names)}
    return found | {name: getattr(table, name) for name in FIGURES}
