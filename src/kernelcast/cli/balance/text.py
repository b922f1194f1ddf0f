"""Tables and the timeline that ``kernelcast balance`` prints."""

from collections.abc import Iterable, Sequence

from rich.table import Table

from kernelcast.cli import terminal
from kernelcast.records.balance import Activity, BalanceReport, Bar, DeviceShare
from kernelcast.reports.numbers import format_range, format_seconds, format_share

_SIGNS = {
    Activity.PREPARE: ".",
    Activity.SAMPLE: "s",
    Activity.RUN: "#",
    Activity.COLLECT: "=",
    Activity.MERGE: "m",
}
_WORDS = {
    Activity.PREPARE: "prepares",
    Activity.SAMPLE: "samples (done work)",
    Activity.RUN: "runs",
    Activity.COLLECT: "hands over",
    Activity.MERGE: "merges",
}
_WIDTH = 72
_HOST = "host"


def make_table(report: BalanceReport) -> Table:
    """Lay out what each device was expected to do and did, one per row."""
    numbers = ("alone, estimated", "interval", "share, estimated", "share", "busy")
    table = terminal.make_table("device", "cores", *numbers, right=numbers)
    for share in report.shares:
        table.add_row(*_cells(share))
    return table


def draw_timeline(report: BalanceReport, width: int = _WIDTH) -> list[str]:
    """Draw who was busy when, one line per device and one for the host."""
    names = [*_number_names(one.device_id for one in report.shares), _HOST]
    margin = max(len(name) for name in names)
    end_s = max((bar.end_s for bar in report.bars), default=0.0) or 1.0
    lines = []
    for place, name in enumerate(names):
        own = [bar for bar in report.bars if bar.device == place]
        lines.append(f"{name:<{margin}} |{_draw(own, end_s, width)}|")
    scale = f"{'':<{margin}} 0{format_seconds(end_s):>{width}}"
    used = dict.fromkeys(bar.activity for bar in report.bars)
    key = ", ".join(f"{_SIGNS[one]} {_WORDS[one]}" for one in Activity if one in used)
    return [*lines, scale, key]


def list_lines(report: BalanceReport) -> list[str]:
    """Say how estimated and real times compare, and what there is to know."""
    estimated = (
        ""
        if report.estimated_s is None
        else f" (estimated {format_seconds(report.estimated_s)}, "
        f"{format_share(report.estimated_s / report.real_s - 1, signed=True)})"
        if report.real_s > 0
        else ""
    )
    merges = ", ".join(f"{name} by {rule}" for name, rule in report.merges.items()
                       if rule != "read")  # fmt: skip
    return [
        f"all work: {format_seconds(report.real_s)}{estimated}; prepared in "
        f"{format_seconds(report.prepare_s)}, merged in {format_seconds(report.merge_s)}; "
        f"everything: {format_seconds(report.total_s)}",
        f"cut across dimension {report.space.axis} into {report.space.count:,} parts; merged: "
        f"{merges or 'nothing'}",
        *(f"note: {one}" for one in report.notes),
    ]


def _cells(share: DeviceShare) -> Sequence[str]:
    cores = ", ".join(str(core) for core in share.cores) or "any"
    if share.failure:
        return share.device_id, cores, "failed", "", "", format_share(share.share), ""
    known = share.estimated_s is not None
    has_interval = share.low_s is not None and share.high_s is not None
    return (
        share.device_id,
        cores,
        format_seconds(share.estimated_s) if share.estimated_s is not None else "",
        format_range(share.low_s or 0.0, share.high_s or 0.0) if has_interval else "",
        format_share(share.estimated_share) if known else "",
        format_share(share.share),
        format_seconds(share.real_s) if share.real_s else "",
    )


def _number_names(names: Iterable[str]) -> list[str]:
    """Tell devices apart that are used twice."""
    found: list[str] = []
    for name in names:
        times = sum(one == name or one.startswith(f"{name} (") for one in found)
        found.append(f"{name} ({times + 1})" if times else name)
    return found


def _draw(bars: Iterable[Bar], end_s: float, width: int) -> str:
    line = [" "] * width
    for bar in sorted(bars, key=lambda one: one.start_s):
        first = min(int(bar.start_s / end_s * width), width - 1)
        stop = max(first + 1, round(bar.end_s / end_s * width))
        line[first:stop] = _SIGNS[bar.activity] * (min(stop, width) - first)
    return "".join(line)
