"""Tables of ``kernelcast model gpu``."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kernelcast.cli.terminal import make_table
from kernelcast.launches.modelling.comparison import Comparison
from kernelcast.launches.modelling.gpu_estimates import Configuration
from kernelcast.launches.modelling.gpu_sweeps import Sweep
from kernelcast.launches.modelling.transitions import Transition
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.reports.numbers import format_bytes, format_count, format_seconds, format_share

_BOUNDARIES = {
    "L2_to_L1": "L2 to L1 (loads)",
    "L1_to_L2": "L1 to L2 (stores)",
    "DRAM_to_L2": "DRAM to L2 (loads)",
    "L2_to_DRAM": "L2 to DRAM (stores)",
}
_NUMBERS = (
    "time", "updates/s", "limited by", "B/update\nL2 to L1", "B/update\nDRAM to L2",
    "B/update\nL2 to DRAM",
)  # fmt: skip
_RIGHT = (*_NUMBERS[:2], *_NUMBERS[3:])
_BAR = 20
_SHORT = ("L2_to_L1", "DRAM_to_L2", "L2_to_DRAM")


def make_report(name: str, found: Configuration) -> Iterator[RenderableType]:
    """Lay out one answer: volumes, limiters, what would help."""
    estimate = found.estimate
    yield Text(f"{name} on {estimate.machine}: {describe(found)}", style="bold")
    yield Text("\nVolumes", style="bold")
    yield _make_volumes(found)
    yield Text("\nLimiters", style="bold")
    yield _make_limiters(estimate)
    help_text = advise(estimate)
    if help_text:
        yield Text(f"\n{help_text}")
    yield from (Text(f"note: {note}") for note in estimate.notes)


def describe(found: Configuration) -> str:
    """Say in one line how long it takes, and what bounds it."""
    estimate = found.estimate
    rate = format_count(found.updates / estimate.seconds)
    return (
        f"{format_seconds(estimate.seconds)}, {rate} updates/s, limited by {estimate.limiter} "
        f"(local size {found.label})"
    )


def advise(estimate: AnalyticEstimate) -> str:
    """Say which limiter's removal would help most; empty if the model does not tell.

    Examples
    --------
    >>> found = AnalyticEstimate(
    ...     model="gpu", machine="a100", seconds=2e-3, limiter="DRAM",
    ...     limiters={"DRAM": 2e-3, "L1": 1e-3}, quantities={"without_dram_s": 1e-3},
    ... )
    >>> advise(found)
    'What would help most: less DRAM; without any it would take 1.00 ms, -50.0 %.'
    """
    without = _list_without(estimate)
    if not without:
        return ""
    name = min(without, key=lambda one: without[one])
    gain = without[name] / estimate.seconds - 1
    if gain > -0.005:
        return "What would help most: nothing alone; several limiters take equally long."
    return (
        f"What would help most: less {name}; without any it would take "
        f"{format_seconds(without[name])}, {format_share(gain, signed=True)}."
    )


def make_machine_table(name: str, found: Sequence[Configuration]) -> Table:
    """Lay out one kernel's answers of several machines, a row each."""
    table = make_table("machine", "local size", *_NUMBERS, right=_RIGHT, title=name)
    for one in found:
        table.add_row(one.estimate.machine, one.label, *_list_numbers(one))
    return table


def make_sweep_table(sweep: Sweep, shown: int) -> Table:
    """Lay out the fastest configurations, and the slowest one for comparison."""
    table = make_table("rank", "local size", "fold", *_NUMBERS, right=("rank", *_RIGHT))
    ranked = list(enumerate(sweep.configurations, start=1))
    rows = ranked if len(ranked) <= shown + 1 else [*ranked[:shown], ranked[-1]]
    for number, (rank, one) in enumerate(rows):
        if number and rank > rows[number - 1][0] + 1:
            table.add_section()
        size = "x".join(str(side) for side in one.local_size)
        table.add_row(str(rank), size, one.fold_text or "-", *_list_numbers(one))
    return table


def make_size_table(name: str, rows: Sequence[tuple[int, Configuration]]) -> Table:
    """Lay out a sweep over sizes, a row each."""
    table = make_table(name, "local size", *_NUMBERS, right=(name, *_RIGHT))
    for value, one in rows:
        table.add_row(str(value), one.label, *_list_numbers(one))
    return table


def describe_transition(name: str, label: str, found: Transition | None) -> str:
    """Say where the DRAM volume climbs."""
    if found is None:
        return f"{label}: no layer-condition transition, DRAM loads stay as they are"
    return (
        f"{label}: DRAM loads climb from {found.low:.1f} to {found.high:.1f} B/update, beginning "
        f"at {name} = {found.begins:.0f}, half way at {found.middle:.0f}"
    )


def make_comparison_table(found: Sequence[Comparison]) -> Table:
    """Lay out how far predictions are from measurements, a row per quantity."""
    titles = ("quantity", "launches", "mean error", "bias", "Kendall's tau")
    table = make_table(*titles, right=titles[1:])
    for one in found:
        tau = one.rank_correlation
        table.add_row(
            one.quantity, str(len(one.measured)), format_share(one.mean_error),
            format_share(one.bias, signed=True), "-" if tau is None else f"{tau:.2f}",
        )  # fmt: skip
    return table


def _list_without(estimate: AnalyticEstimate) -> dict[str, float]:
    """Give the time without each limiter."""
    return {
        name: estimate.quantities[key]
        for name in estimate.limiters
        if (key := f"without_{name.lower()}_s") in estimate.quantities
    }


def _list_numbers(found: Configuration) -> list[str]:
    estimate = found.estimate
    volumes = [
        f"{estimate.volumes[key] / found.updates:.2f}" if key in estimate.volumes else "-"
        for key in _SHORT
    ]
    return [
        format_seconds(estimate.seconds),
        format_count(found.updates / estimate.seconds),
        estimate.limiter,
        *volumes,
    ]


def _make_volumes(found: Configuration) -> Table:
    table = make_table(
        "between", "whole launch", "B/update", "at this time", right=["whole launch", "B/update",
        "at this time"],
    )  # fmt: skip
    for key, volume in found.estimate.volumes.items():
        rate = volume / found.estimate.seconds / 1e9
        table.add_row(
            _BOUNDARIES.get(key, key),
            format_bytes(round(volume)),
            f"{volume / found.updates:.2f}",
            f"{rate:,.0f} GB/s",
        )
    return table


def _make_limiters(estimate: AnalyticEstimate) -> Table:
    without = _list_without(estimate)
    titles = ["limiter", "time alone", "of the time", "", "without it"]
    table = make_table(*titles[: 5 if without else 4], right=["time alone", "of the time",
                                                              "without it"])  # fmt: skip
    ordered = sorted(estimate.limiters.items(), key=lambda one: -one[1])
    for name, seconds in ordered:
        if not seconds:
            continue
        share = seconds / estimate.seconds
        row = [
            name,
            format_seconds(seconds),
            format_share(share),
            "#" * round(_BAR * min(share, 1)),
        ]
        table.add_row(*row, *([format_seconds(without.get(name))] if without else []))
    return table
