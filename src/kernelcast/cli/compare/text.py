"""What ``kernelcast compare`` prints: tables, and sentences that its page shares."""

from collections.abc import Sequence

from rich.table import Table

from kernelcast.cli.terminal import make_table
from kernelcast.cli.train.tables import list_errors
from kernelcast.models.validation.comparison import (
    ComparedKernel,
    Comparison,
    DeviceComparison,
    ExplainedError,
)
from kernelcast.reports.numbers import format_class, format_error

_MOST_WON = 3


def make_error_table(comparison: Comparison, device: DeviceComparison) -> Table:
    """Make a table with a line per model."""
    rows = (
        (comparison.first, device.first_errors),
        (comparison.second, device.second_errors),
    )
    return _make_table(
        ["error", "mean", "median", "90th", "worst"],
        [[name, *list_errors(errors)] for name, errors in rows],
    )


def list_classes(device: DeviceComparison) -> list[list[str]]:
    """Give the cells of the error classes."""
    return [
        [
            format_class(one.low, one.high), str(one.groups), format_error(one.first_error),
            format_error(one.second_error),
        ]
        for one in device.classes
    ]  # fmt: skip


def make_class_table(comparison: Comparison, device: DeviceComparison) -> Table:
    """Make a table of error classes."""
    columns = ["error of linear", f"{comparison.split}s", comparison.first, comparison.second]
    return _make_table(columns, list_classes(device))


def tell_difference(comparison: Comparison, device: DeviceComparison) -> str:
    """Say by how much the models differ, and how sure that is.

    Percentage points, so that nobody takes them for a relative change.
    """
    if device.difference is None:
        return ""
    told = (
        f"{comparison.second} less {comparison.first}: {device.difference * 100:+.2f} points of "
        "mean error"
    )
    if device.low is None or device.high is None:
        return told + ", no interval of a single kernel"
    return (
        f"{told}, {comparison.confidence * 100:g} % interval {device.low * 100:+.2f} to "
        f"{device.high * 100:+.2f} ({comparison.method} bootstrap over {comparison.resampled}s)"
    )


def tell_wins(comparison: Comparison, device: DeviceComparison) -> str:
    """Say how many kernels each model wins."""
    total = max(len(device.kernels), 1)
    parts = [
        f"{who} {count} ({count / total * 100:.0f} %)"
        for who, count in (
            (f"{comparison.first} better on", device.count_wins(comparison.first)),
            (f"{comparison.second} better on", device.count_wins(comparison.second)),
            ("within noise", device.count_wins(None)),
        )
    ]
    return f"of {len(device.kernels)} kernels: {', '.join(parts)}"


def tell_noise(device: DeviceComparison) -> str:
    """Say how much the measured times themselves vary."""
    return "" if device.noise is None else f"noise floor: {format_error(device.noise)}"


def tell_explanation(one: ExplainedError) -> list[str]:
    """Say what pushed the correction of a kernel."""
    found = one.attribution
    groups = ", ".join(f"{each.group} {each.contribution * 100:+.1f}" for each in found.groups)
    columns = ", ".join(f"{each.name} {each.effect * 100:+.1f}" for each in found.columns)
    lines = [
        f"{one.kernel}: error {format_error(one.error)}, {format_error(one.reference_error)} "
        f"uncorrected; corrected by {found.correction * 100:+.1f} %, needed were "
        f"{one.needed * 100:+.1f} %",
        f"groups, in points: {groups}, all medians {found.base * 100:+.1f}",
    ]
    return [*lines, f"columns, one at a time: {columns}"] if columns else lines


def list_lines(comparison: Comparison, device: DeviceComparison) -> tuple[list[str], list[str]]:
    """Give the lines before and after the table of classes."""
    before = [
        line
        for line in (
            tell_difference(comparison, device),
            tell_noise(device),
            tell_wins(comparison, device),
        )
        if line
    ]
    after = []
    for model in (comparison.first, comparison.second):
        won = device.list_wins(model, _MOST_WON)
        if won:
            after.append(f"{model} is most ahead on")
            after += [f"  {_tell_kernel(comparison, one)}" for one in won]
    explained = [one for one in comparison.explained if one.device == device.device]
    if explained:
        after.append(f"where {explained[0].attribution.model} errs most, and why")
        after += [line for one in explained for line in _indent(tell_explanation(one))]
    if device.unpaired:
        after.append(f"left out: {device.unpaired} rows that one of the models did not answer")
    return before, after


def _tell_kernel(comparison: Comparison, one: ComparedKernel) -> str:
    return (
        f"{one.kernel}: {comparison.first} {format_error(one.first_error)}, "
        f"{comparison.second} {format_error(one.second_error)} ({one.rows} rows)"
    )


def _indent(lines: Sequence[str]) -> list[str]:
    return [f"  {lines[0]}", *(f"    {line}" for line in lines[1:])]


def _make_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = make_table(*columns, right=columns[1:])
    for row in rows:
        table.add_row(*row)
    return table
