"""The table that ``kernelcast estimate`` prints."""

from collections.abc import Sequence
from datetime import datetime

from rich.table import Table

from kernelcast.cli import terminal
from kernelcast.records.device import SaturationPoint
from kernelcast.records.estimates import DeviceAnswer, Estimate
from kernelcast.reports.numbers import format_duration, format_range, format_seconds, format_share

_COLUMNS = (
    "problem", "device", "predicted", "interval", "now", "now, interval", "tier", "P_sat",
    "work-groups\nsampled", "sampling", "build", "rest",
    "measured", "noise", "error", "one run\noff others",
)  # fmt: skip
# On a narrow terminal those of a group stand above each other: device ids are never broken.
_NARROW_GROUPS: tuple[tuple[str, ...], ...] = (
    ("problem", "device", "tier", "P_sat"), ("predicted", "interval", "now", "now, interval"),
    ("work-groups\nsampled", "sampling", "build", "rest"),
    ("measured", "noise", "error", "one run\noff others"),
)  # fmt: skip
_NARROW_TITLES = {
    "now, interval": "now, from - to", "work-groups\nsampled": "work-groups sampled",
    "one run\noff others": "one run off",
}  # fmt: skip
_ONLY_BUSY = frozenset({"now", "now, interval"})
"""Columns of a machine where other programs are at work."""
_ONLY_MEASURED = frozenset(_NARROW_GROUPS[-1])
_TEXTS = frozenset({"problem", "device", "tier", "P_sat"})


def make_table(
    answers: Sequence[DeviceAnswer], *, coverage: float, is_measured: bool, is_narrow: bool = False
) -> Table:
    """Lay answers out, one per row; a device that failed says so, its error goes elsewhere."""
    is_busy = any(one.estimate is not None and one.estimate.now is not None for one in answers)
    left_out = (frozenset() if is_busy else _ONLY_BUSY) | (
        frozenset() if is_measured else _ONLY_MEASURED
    )
    groups = [
        shown
        for group in (_NARROW_GROUPS if is_narrow else [(name,) for name in _COLUMNS])
        if (shown := [name for name in group if name not in left_out])
    ]
    lines = max(map(len, groups)) if is_narrow else 0
    titles = [
        "\n".join([*(_NARROW_TITLES.get(name, name) for name in group), *[""] * lines][:lines])
        or group[0]
        for group in groups
    ]
    titles = [one.replace("interval", f"{coverage * 100:g} % interval") for one in titles]
    numbers = [title for title, group in zip(titles, groups, strict=True) if group[0] not in _TEXTS]
    table = terminal.make_table(*titles, right=numbers)
    table.show_lines = is_narrow
    table.columns[0].no_wrap = True
    for answer in answers:
        cells = _describe(answer)
        table.add_row(*("\n".join(cells.get(name, "") for name in group) for group in groups))
    return table


def list_warnings(answers: Sequence[DeviceAnswer]) -> list[str]:
    """Write each warning once, with the problems and devices it is about."""
    places: dict[str, list[str]] = {}
    for answer in answers:
        for warning in answer.estimate.warnings if answer.estimate else ():
            places.setdefault(warning, []).append(f"{answer.problem} on {answer.device_id}")
    return [f"{', '.join(where)}: {warning}" for warning, where in places.items()]


def list_kept_samples(answers: Sequence[DeviceAnswer], began: datetime) -> list[str]:
    """Say which answers rest on samples that were there before they were asked for, and since when.

    Parameters
    ----------
    began : datetime
        When answers were asked for.
    """
    lines = []
    for answer in answers:
        pieces = () if answer.estimate is None else answer.estimate.list_pieces()
        times = [one.measured_at for one in pieces if one.measured_at and one.measured_at < began]
        if times:
            last = max(times)
            age_s = (began - last).total_seconds()
            lines.append(
                f"{answer.problem} on {answer.device_id}: rests on samples taken "
                f"{format_duration(age_s)} ago, at {last:%Y-%m-%d %H:%M:%S} UTC; "
                "--no-history samples anew"
            )
    return lines


def _describe(answer: DeviceAnswer) -> dict[str, str]:
    """Give the cells of a row by the name of their column."""
    cells = {"problem": answer.problem, "device": answer.device_id}
    estimate = answer.estimate
    if estimate is None:
        return cells | {"predicted": "failed"}
    sampled, total = estimate.sampled_work_groups, estimate.ndrange.work_group_count
    cells |= {
        "predicted": format_seconds(estimate.seconds),
        "interval": format_range(estimate.low, estimate.high),
        "tier": str(estimate.tier),
        "P_sat": _describe_saturation(estimate.saturation),
        "work-groups\nsampled": f"{sampled:,} of {total:,}",
        **_describe_cost(estimate),
    }
    if estimate.now is not None:
        cells["now"] = format_seconds(estimate.now.seconds)
        cells["now, interval"] = format_range(estimate.now.low, estimate.now.high)
    return cells | _describe_measurement(estimate)


def _describe_cost(estimate: Estimate) -> dict[str, str]:
    """Show what the answer took, and as a share of what the kernel itself takes."""
    cost = estimate.cost
    parts_s = {"sampling": cost.sampling_s, "build": cost.build_s, "rest": cost.rest_s}
    return {
        name: f"{format_seconds(one)}, {_describe_ratio(one / estimate.seconds)}" if one else "-"
        for name, one in parts_s.items()
    }


def _describe_ratio(ratio: float) -> str:
    """Show shares as such, and what takes longer than the kernel as its multiple."""
    return (
        format_share(ratio) if ratio < 1 else f"{ratio:.2g} x" if ratio < 10 else f"{ratio:,.0f} x"
    )


def _describe_measurement(estimate: Estimate) -> dict[str, str]:
    measurement = estimate.measurement
    if measurement is None:
        return {}
    one_run = measurement.one_run_error
    return {
        "measured": format_seconds(measurement.seconds) + _describe_slowdown(measurement.slowdown),
        "noise": format_share(measurement.noise),
        "error": format_share(measurement.error_of(estimate.seconds), signed=True),
        "one run\noff others": "-" if one_run is None else format_share(one_run),
    }


def _describe_slowdown(slowdown: float) -> str:
    """Say how many times as long as alone runs took; nothing of those that were alone."""
    return f", {slowdown:.2g} x" if slowdown > 1 else ""


def _describe_saturation(saturation: SaturationPoint | None) -> str:
    """Show the value in use, and the other where rules and measurement disagree."""
    if saturation is None:
        return ""
    used = saturation.p_sat
    text = f"{used.value} {used.source}"
    if saturation.disagreement is None:
        return text
    others = {"computed": saturation.computed, "measured": saturation.measured}
    return ", ".join([text, *(f"{n} {how}" for how, n in others.items() if how != used.source)])
