"""Features of timed launches, and of the line through them."""

import math
from dataclasses import dataclass
from statistics import fmean, pstdev

from kernelcast.features.vector.definitions import Feature, divide
from kernelcast.records.samples import PILOT_WINDOW, SampleRun, TimedLaunch


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledSource:
    """What sampled features are made of."""

    run: SampleRun
    """The timed launches."""
    linear_s: float
    """The linear model's time of the whole launch, in seconds."""
    compute_units: int
    issued_per_work_item: float | None = None
    """Instructions issued per work-item, by software counters; None without them."""
    touched: tuple[float, float] | None = None
    """Of the largest launch, see `kernelcast.features.counting.touched_bytes.compare_touched`."""


def _windows(source: SampledSource) -> list[TimedLaunch]:
    """Give the launches that count: pilots only where there is nothing else."""
    launches = source.run.launches
    return [one for one in launches if one.window != PILOT_WINDOW] or list(launches)


def find_longest(run: SampleRun) -> TimedLaunch:
    """Find the launch at the second sampling point: the one with the most work-groups."""
    launches = [one for one in run.launches if one.window != PILOT_WINDOW] or list(run.launches)
    return max(launches, key=lambda one: one.box.work_group_count)


def _work_items(source: SampledSource) -> float:
    ndrange = source.run.ndrange
    return sum(math.prod(ndrange.work_items_of(one.box)[1]) for one in _windows(source))


def _spread(source: SampledSource) -> float | None:
    rates = [one.duration_s / one.box.work_group_count for one in _windows(source)]
    return pstdev(rates) / fmean(rates) if len(rates) > 1 else None


def _issue_rate(source: SampledSource) -> float | None:
    if source.issued_per_work_item is None:
        return None
    return source.issued_per_work_item * source.run.ndrange.work_item_count / source.linear_s


def _issue_rate_per_unit(source: SampledSource) -> float | None:
    rate = _issue_rate(source)
    return None if rate is None else rate / source.compute_units


FEATURES: tuple[Feature[SampledSource], ...] = (
    Feature("sampled.run_s", "device time of the largest sampled launch",
            lambda s: find_longest(s.run).duration_s, table_1="execution time"),
    Feature("sampled.run_work_groups_count", "work-groups of the largest sampled launch (P2)",
            lambda s: find_longest(s.run).box.work_group_count),
    Feature("sampled.work_items_count", "work-items of all sampled launches, pilots aside",
            _work_items, table_1="work-items"),
    Feature("sampled.work_groups_count", "work-groups of all sampled launches, pilots aside",
            lambda s: sum(one.box.work_group_count for one in _windows(s))),
    Feature("sampled.total_s", "device time of all sampled launches, pilots aside",
            lambda s: sum(one.duration_s for one in _windows(s))),
    Feature("sampled.linear_s", "the linear model's time of the whole launch",
            lambda s: s.linear_s),
    Feature("sampled.linear_s_per_work_group",
            "the linear model's time over the work-groups of the launch",
            lambda s: divide(s.linear_s, s.run.ndrange.work_group_count)),
    Feature("sampled.issued_instructions_per_s",
            "instructions issued by the whole launch, by software counters, over the linear "
            "model's time", _issue_rate, table_1="IPS"),
    Feature("sampled.issued_instructions_per_s_per_compute_unit",
            "the same per compute unit: what the learned model corrects", _issue_rate_per_unit),
    Feature("sampled.spread_ratio",
            "standard deviation of the time per work-group over the launches, over its mean; "
            "absent with one launch", _spread),
    Feature("sampled.even_flag", "1 if work-groups of different places take about the same time",
            lambda s: s.run.is_even),
    Feature("sampled.launch_overhead_s", "time of a launch that does nothing",
            lambda s: s.run.launch_overhead_s),
    Feature("sampled.lines_per_work_group_ratio",
            "cache lines that the largest sampled launch touches per work-group, over those of the "
            "whole launch; absent where addresses depend on data",
            lambda s: None if s.touched is None else s.touched[0]),
    Feature("sampled.pages_per_work_group_ratio", "the same of pages of 4 KiB",
            lambda s: None if s.touched is None else s.touched[1]),
)  # fmt: skip
"""In the order of the schema."""
