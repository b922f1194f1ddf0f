"""What ``kernelcast features`` shows of a kernel: tables of what is known, and the vector."""

import re
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from kernelcast.cli.terminal import make_table
from kernelcast.expressions.accesses import AddressPattern, MemoryAccess
from kernelcast.expressions.kernel_facts import ParameterFacts
from kernelcast.launches.features import KernelFeatures
from kernelcast.records.arguments import Argument, BufferArgument, LocalArgument
from kernelcast.records.feature_vector import FeatureGroup, group_of
from kernelcast.records.operations import MemorySpace, NumberClass, OperationCounts, OperationKind
from kernelcast.records.software_counters import RequestPattern
from kernelcast.reports.numbers import (
    format_bytes,
    format_count,
    format_seconds,
    format_share,
    format_value,
)
from kernelcast.reports.source.expressions import (
    describe_request,
    shorten,
    write_address,
    write_guard,
)

_K = OperationKind
_WIDTHS = tuple((NumberClass.FLOAT, bits) for bits in (16, 32, 64)) + tuple(
    (NumberClass.INTEGER, bits) for bits in (8, 16, 32, 64)
)
_SHORT = {NumberClass.FLOAT: "fp", NumberClass.INTEGER: "int"}
_PLAIN_KINDS = (_K.ADDRESS, _K.BRANCH, _K.JUMP, _K.BARRIER, _K.CALL, _K.COPY)
_QUALIFIERS = re.compile(
    r"\b(?:const|restrict|volatile|__global|__constant|__local|__private|__generic)\b\s*"
)
_WIDE = (
    "line", "source", "does", "space", "address", "if", "pattern", "requests\nper warp",
    "sectors\n/request", "ideal",
)  # fmt: skip
_NARROW = ("line", "does", "where", "touches")
_NUMBERS = ("line", "requests\nper warp", "sectors\n/request", "ideal")


def make_report(features: KernelFeatures) -> Iterator[RenderableType]:
    """Lay out what is known of a launch, part by part."""
    yield Text(_describe_launch(features), style="bold")
    for note in features.notes:
        yield Text(f"note: {note}")
    yield from _with_title("Parameters", _make_parameters(features))
    yield from _with_title("Loops", _make_loops(features))
    how = "measured" if features.best_counters.instrumented_s else "from the source"
    yield from _with_title(f"Operations per work-item, {how}", _make_operations(features))
    yield from _with_title("Memory accesses", make_access_table(features))
    yield from _with_title("Divergence", _make_warps(features))
    yield Text("\nUnderstood", style="bold")
    yield Text("\n".join(_describe_gaps(features)))
    yield from _with_title("Features", make_vector_table(features))
    yield Text("\n".join(_describe_costs(features)), style="dim")


def make_vector_table(features: KernelFeatures) -> Table:
    """Lay the vector out by group, one column per device; what is 0 everywhere in one line."""
    answered = [one for one in features.devices if one.vector is not None]
    columns = [one.device_id for one in answered] or ["without a device"]
    values = [one.vector.as_dict() for one in answered if one.vector is not None]
    values = values or [features.vector.as_dict()]
    table = make_table("feature", *columns, right=columns)
    for group in FeatureGroup:
        names = [name for name in features.vector.schema.names if group_of(name) is group]
        known = [name for name in names if any(name in one for one in values)]
        if not known:
            continue
        shown = [name for name in known if any(one.get(name) for one in values)]
        for name in shown:
            table.add_row(name, *(format_value(one.get(name)) for one in values))
        if len(shown) < len(known):
            table.add_row(Text(f"{group}: {len(known) - len(shown)} more are 0", style="dim"))
        table.add_section()
    return table


def _describe_launch(features: KernelFeatures) -> str:
    problem, facts = features.problem, features.facts
    sizes = " x ".join(f"{size:,}" for size in problem.ndrange.global_size)
    text = (
        f"{problem.name}: kernel {facts.kernel}, {problem.kernel.source_name}:{facts.line}; "
        f"{sizes} work-items"
    )
    if problem.ndrange.local_size is None:
        return text
    local = " x ".join(str(size) for size in problem.ndrange.local_size)
    return f"{text} in {problem.ndrange.work_group_count:,} work-groups of {local}"


def _make_parameters(features: KernelFeatures) -> Table | None:
    arguments: list[Argument | None] = list(features.problem.arguments)
    parameters = features.facts.parameters
    arguments += [None] * (len(parameters) - len(arguments))
    table = make_table("parameter", "type", "space", "qualifiers", "use", "launch")
    for parameter, argument in zip(parameters, arguments, strict=False):
        table.add_row(
            parameter.name,
            _QUALIFIERS.sub("", parameter.type_name).strip(),
            str(parameter.space) if parameter.is_pointer else "",
            " ".join(_list_qualifiers(parameter)),
            _describe_use(parameter),
            _describe_argument(argument),
        )
    for array in features.facts.local_arrays:
        table.add_row(array.name, "array", "local", "", "", format_bytes(array.bytes))
    return table if table.row_count else None


def _list_qualifiers(parameter: ParameterFacts) -> Iterator[str]:
    for word, holds in (
        ("const", parameter.is_const), ("restrict", parameter.is_restrict),
        ("volatile", parameter.is_volatile),
    ):  # fmt: skip
        if holds:
            yield word


def _describe_use(parameter: ParameterFacts) -> str:
    if not parameter.is_pointer:
        return "value"
    words = [word for word, holds in (("read", parameter.is_read),
                                      ("written", parameter.is_written)) if holds]  # fmt: skip
    return ", ".join(words) or "unused"


def _describe_argument(argument: Argument | None) -> str:
    if argument is None:
        return ""
    if isinstance(argument, BufferArgument):
        return f"{argument.count:,} {argument.element}, {format_bytes(argument.bytes)}"
    if isinstance(argument, LocalArgument):
        return format_bytes(argument.bytes)
    return ", ".join(f"{value:g}" if isinstance(value, float) else f"{value:,}"
                     for value in argument.values)  # fmt: skip


def _make_loops(features: KernelFeatures) -> Table | None:
    table = make_table(
        "line", "trip count", "mean", "least", "most", "", right=["line", "mean", "least", "most"]
    )
    trips = {one.line: one for one in features.best_counters.loops}
    is_measured = features.best_counters.instrumented_s is not None
    for loop in dict.fromkeys(features.facts.loops):
        found = trips.get(loop.line)
        numbers = (found.mean, found.least, found.most) if found else ()
        formula = "depends on data" if loop.trip_count is None else shorten(str(loop.trip_count))
        table.add_row(
            str(loop.line),
            formula,
            *([format_count(one) for one in numbers] or [""] * 3),
            ""
            if loop.is_exact or is_measured
            else "may end early"
            if loop.trip_count
            else "guessed",
        )
    return table if table.row_count else None


def _make_operations(features: KernelFeatures) -> Table | None:
    counts = features.best_counters.executed
    widths = [one for one in _WIDTHS if any(
        operation.number is one[0] and operation.bits == one[1] for operation in counts.operations
    )]  # fmt: skip
    titles = [f"{_SHORT[number]}{bits}" for number, bits in widths]
    table = make_table("operation", *titles, "each", right=[*titles, "each"])
    for kind in OperationKind:
        if kind in _PLAIN_KINDS or not counts.count(kind):
            continue
        cells = [counts.count(kind, number=n, bits=b, per_lane=True) for n, b in widths]
        table.add_row(str(kind), *(format_count(one) if one else "" for one in cells), "")
    for kind in _PLAIN_KINDS:
        times = counts.count(kind)
        if times:
            table.add_row(str(kind), *[""] * len(widths), format_count(times))
    for text, amount in _list_memory(counts):
        table.add_row(text, *[""] * len(widths), amount)
    return table if table.row_count else None


def _list_memory(counts: OperationCounts) -> Iterator[tuple[str, str]]:
    found: dict[str, tuple[float, float]] = {}
    for operation, times in counts.memory.items():
        name = f"{'store' if operation.is_store else 'load'} {operation.space}"
        before = found.get(name, (0.0, 0.0))
        found[name] = (before[0] + times, before[1] + times * operation.bytes)
    for name, (times, total) in sorted(found.items()):
        yield name, f"{format_count(times)} ({format_count(total)} B)"


def _make_warps(features: KernelFeatures) -> Table | None:
    titles = ("warp width", "issued", "executed per lane", "lanes in use", "branches", "divergent")
    table = make_table(*titles, right=titles)
    for warp in features.best_counters.warps:
        table.add_row(
            str(warp.width),
            format_count(warp.issued),
            format_count(warp.executed / warp.width),
            format_share(warp.lane_efficiency),
            format_count(warp.branches),
            format_count(warp.divergent_branches),
        )
    return table if table.row_count else None


def _describe_gaps(features: KernelFeatures) -> Iterator[str]:
    facts, counters = features.facts, features.best_counters
    gaps = facts.told_gaps
    yield (
        f"{format_share(facts.coverage)} of {len(facts.accesses)} accesses; "
        f"{len(gaps) or 'no'} gap{'' if len(gaps) == 1 else 's'}"
    )
    for gap in gaps:
        yield f"line {gap.line}: {gap.reason}" if gap.line else gap.reason
    blurred = [one for one in facts.accesses if one.pattern is not AddressPattern.UNKNOWN]
    for line, reason in dict.fromkeys((one.line, one.reason) for one in blurred if one.reason):
        yield f"line {line}: {reason}"
    if not counters.is_exact:
        yield "counts are estimates: what depends on data is guessed; on a device it is counted"


def _describe_costs(features: KernelFeatures) -> Iterator[str]:
    yield f"cost without a device: {_list_costs(features.costs_s)}"
    for one in features.devices:
        if one.findings is not None:
            yield f"cost on {one.device_id}: {_list_costs(one.findings.costs_s)}"
            yield from (f"{one.device_id}: {note}" for note in one.findings.notes)


def _list_costs(costs_s: dict[str, float]) -> str:
    return ", ".join(f"{name} {format_seconds(cost)}" for name, cost in costs_s.items())


def _with_title(title: str, table: RenderableType | None) -> Iterator[RenderableType]:
    if table is not None:
        yield Text(f"\n{title}", style="bold")
        yield table


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
