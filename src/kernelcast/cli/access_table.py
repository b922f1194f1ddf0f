"""The table of memory accesses that ``kernelcast features`` shows, wide or narrow."""

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table

from kernelcast.cli.terminal import make_table
from kernelcast.expressions.accesses import AddressPattern, MemoryAccess
from kernelcast.launches.features import KernelFeatures
from kernelcast.records.operations import MemorySpace
from kernelcast.records.software_counters import RequestPattern
from kernelcast.reports.numbers import format_count
from kernelcast.reports.source.expressions import (
    describe_request,
    write_address,
    write_guard,
)

_WIDE = (
    "line", "source", "does", "space", "address", "if", "pattern", "requests\nper warp",
    "sectors\n/request", "ideal",
)  # fmt: skip
_NARROW = ("line", "does", "where", "touches")
_NUMBERS = ("line", "requests\nper warp", "sectors\n/request", "ideal")


class _AccessTable:
    """A table that folds into four columns where the terminal is too narrow for ten."""

    def __init__(self, wide: Table, narrow: Table) -> None:
        self._wide = wide
        self._narrow = narrow

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wanted = Measurement.get(console, options.update(width=10_000), self._wide).maximum
        yield self._wide if wanted <= options.max_width else self._narrow

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._wide)


def make_access_table(features: KernelFeatures) -> _AccessTable | None:
    """Lay out where a kernel touches memory, the same place on two call paths twice."""
    requests = {one.site: one for one in features.best_counters.patterns}
    wide, narrow = make_table(*_WIDE, right=_NUMBERS), make_table(*_NARROW, right=["line"])
    rows: dict[tuple[str, ...], tuple[str, ...]] = {}
    for access in features.facts.accesses:
        address, guard = write_address(access, features.facts), write_guard(access)
        request = requests.get(access.site)
        place = (str(access.line), access.text, str(access.kind), str(access.space), address, guard)
        rows.setdefault(
            (*place, str(access.pattern), *_list_requests(request)),
            (
                str(access.line),
                f"{access.kind} {access.space}",
                _join_place(access, address, guard),
                "" if request is None else describe_request(request),
            ),
        )
    for row, short in rows.items():
        wide.add_row(*row)
        narrow.add_row(*short)
    return _AccessTable(wide, narrow) if rows else None


def _join_place(access: MemoryAccess, address: str, guard: str) -> str:
    text = f"{address} if {guard}" if guard else address
    is_usual = access.pattern is AddressPattern.QUASI_AFFINE
    return text if is_usual else f"{text} ({access.pattern})"


def _list_requests(request: RequestPattern | None) -> tuple[str, str, str]:
    if request is None:
        return ("", "", "")
    if request.space is MemorySpace.LOCAL:
        conflicts = format_count(request.bank_conflicts_per_request)
        return (format_count(request.requests), f"{conflicts} conflicts", "")
    return (
        format_count(request.requests),
        format_count(request.sectors_per_request),
        format_count(request.ideal_sectors_per_request),
    )
