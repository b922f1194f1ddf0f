"""What sizes decide of a kernel's launches, as one Python function that is written once."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias

from kernelcast.expressions.interval_code import Bound, IntervalCode
from kernelcast.expressions.kernel_facts import ONCE, CounterReach, KernelFacts
from kernelcast.expressions.symbols import Symbol, SymbolKind
from kernelcast.features.analysis import analyse
from kernelcast.features.counting.instructions import count_instructions
from kernelcast.features.counting.trips import find_loops
from kernelcast.features.overruns import OverrunCheck
from kernelcast.launches.reach_code import ReachWriter, is_guessed, split_guard
from kernelcast.records.arguments import Argument, ScalarArgument
from kernelcast.records.errors import KernelcastError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import MAX_DIMENSIONS, NDRange
from kernelcast.records.operations import MemorySpace

_OF_SIZES = frozenset({SymbolKind.SCALAR, SymbolKind.GLOBAL_SIZE, SymbolKind.GROUP_COUNT,
                       SymbolKind.GLOBAL_OFFSET})  # fmt: skip
_OF_LAUNCHES = _OF_SIZES | {SymbolKind.GLOBAL_ID, SymbolKind.GROUP_ID}
SizeProgram: TypeAlias = Callable[[Sequence[int], Sequence[float]], float | None]
"""Takes global sizes that the local size divides, and a number per argument: bytes of a buffer,
value of a scalar. Gives instructions of a work-item, as `count_work` counts them; NaN where nobody
knows them; None where that takes a closer look, or the launch may leave a buffer."""


@lru_cache(maxsize=256)
def write_program(
    kernel: Kernel,
    local_size: tuple[int, ...],
    offset: tuple[int, ...],
    scalars: frozenset[int],
    *,
    checks_bounds: bool = True,
) -> SizeProgram | None:
    """Write the function of a kernel's launches.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    local_size, offset : tuple of int
        Of the launches, in each of their dimensions.
    scalars : frozenset of int
        As of `find_scalars`.
    checks_bounds : bool
        Whether launches that may leave a buffer take a closer look.

    Returns
    -------
    callable or None
        None where the source cannot be followed.
    """
    try:
        facts = analyse(kernel).facts
        code = begin_code(facts, local_size, offset, scalars)
        buffers = {one.name: f"v{place}" for place, one in enumerate(facts.parameters)
                   if one.is_pointer and one.space is not MemorySpace.LOCAL}  # fmt: skip
        if checks_bounds:
            OverrunCheck(facts).write(code, buffers)
        if depends_on_sizes(kernel):
            _write_work(code, facts, ReachWriter(facts=facts, local_size=local_size, offset=offset))
        else:
            code.write("return 1.0")
        tell = code.make("tell", "sizes, values")
    except (KernelcastError, RecursionError):
        return None

    def run(sizes: Sequence[int], values: Sequence[float]) -> float | None:
        try:
            found: float | None = tell(sizes, values)
        except (ValueError, ZeroDivisionError):  # of EvaluationError, and of too few arguments
            return None
        return found

    return run


def ask_program(
    kernel: Kernel, ndrange: NDRange, arguments: Sequence[Argument], *, checks_bounds: bool
) -> float | None:
    """Ask the function of a kernel about one launch; see `SizeProgram`."""
    if ndrange.local_size is None or not ndrange.is_uniform:
        return None
    program = write_program(
        kernel, ndrange.local_size, ndrange.global_offset, find_scalars(arguments),
        checks_bounds=checks_bounds,
    )  # fmt: skip
    return None if program is None else program(ndrange.global_size, list_numbers(arguments))


def list_numbers(arguments: Sequence[Argument]) -> list[float]:
    """Give a number per argument, as a `SizeProgram` takes them."""
    return [one.values[0] if isinstance(one, ScalarArgument) else one.bytes for one in arguments]


def find_scalars(arguments: Sequence[Argument]) -> frozenset[int]:
    """Find the arguments that are one whole number, by position."""
    return frozenset(
        place for place, one in enumerate(arguments)
        if isinstance(one, ScalarArgument)
        and one.element.lanes == 1
        and one.element.dtype.kind in "iu"
    )  # fmt: skip


@lru_cache(maxsize=256)
def depends_on_sizes(kernel: Kernel) -> bool:
    """Tell whether a scalar or the index space decides how often loops run or what is skipped."""
    facts = analyse(kernel).facts
    turns = (one.condition if one.trip_count is None else one.trip_count for one in facts.loops)
    guards = (one.guard.symbols() for one in facts.reaches)
    return any(not _OF_LAUNCHES.isdisjoint(_kinds(one.symbols())) for one in turns) or any(
        one and _kinds(one) <= _OF_SIZES for one in guards
    )


def _kinds(symbols: Iterable[Symbol]) -> set[SymbolKind]:
    return {one.kind for one in symbols}


def begin_code(
    facts: KernelFacts,
    local_size: tuple[int, ...],
    offset: tuple[int, ...],
    scalars: frozenset[int],
) -> IntervalCode:
    """Name ids, sizes and scalars."""
    code = IntervalCode(known={})
    code.write("".join(f"s{axis}, " for axis in range(len(local_size))) + "= sizes")
    code.write("".join(f"v{place}, " for place in range(len(facts.parameters))) + "= values")
    for axis in range(MAX_DIMENSIONS):
        local, begin, size = 1, 0, "1"
        if axis < len(local_size):
            local, begin, size = local_size[axis], offset[axis], f"s{axis}"
        code.write(
            f"c{axis} = {size} // {local}; g{axis} = c{axis} - 1; e{axis} = {size} + {begin - 1}"
        )
        for kind, low, high in (
            (SymbolKind.LOCAL_ID, "0", str(local - 1)),
            (SymbolKind.GROUP_ID, "0", f"g{axis}"),
            (SymbolKind.GLOBAL_ID, str(begin), f"e{axis}"),
            (SymbolKind.LOCAL_SIZE, str(local), str(local)),
            (SymbolKind.GLOBAL_SIZE, size, size),
            (SymbolKind.GROUP_COUNT, f"c{axis}", f"c{axis}"),
            (SymbolKind.GLOBAL_OFFSET, str(begin), str(begin)),
        ):
            code.known[Symbol(kind, axis=axis)] = Bound(low, high)
    for place, one in enumerate(facts.parameters):
        if place in scalars and not one.is_pointer:
            code.known[Symbol(SymbolKind.SCALAR, one.name)] = Bound(f"v{place}", f"v{place}")
            code.write(f"if v{place} < 0: return None")
    return code


def _write_work(code: IntervalCode, facts: KernelFacts, writer: ReachWriter) -> None:
    """Write what counts the instructions of sampled work-items."""
    counters = range(facts.counter_count)
    if facts.gaps and {one.counter for one in facts.reaches} != {*counters}:
        code.write("return nan")
        return
    writer.begin(code)
    code.write("; ".join([f"n{one} = 0" for one in counters] or ["pass"]))
    for reach in facts.reaches:
        write_guess(code, facts, reach)
    for reach in facts.reaches:
        writer.write(code, reach)
    sizes: dict[tuple[tuple[int, int], ...], float] = defaultdict(float)
    for block in facts.blocks:
        sizes[block.count] += count_instructions(block.operations)
    parts = []
    for count, size in sizes.items():
        terms = [f"{factor}*n" if one == ONCE else f"{factor}*n{one}" for one, factor in count]
        parts.append(f"{size}*max({' + '.join(terms) or 0}, 0)")
    code.write(f"return max(1.0, ({' + '.join(parts) or 0}) / n)")


def write_guess(code: IntervalCode, facts: KernelFacts, reach: CounterReach) -> None:
    """Write where data decide whether some work-item reaches a counter, whatever others do."""
    for loop in find_loops(facts, reach.loops):
        trips = loop.facts.trip_count
        if is_guessed(loop):
            code.write("return nan")
            return
        if trips is None:
            return
        code = code.open_block(f"if {code.bound(trips).low} > 0")
        code.write("pass")
    known, is_counted = split_guard(reach.guard)
    is_of_loops = any(one.kind is SymbolKind.LOOP for one in reach.guard.symbols())
    if not (is_counted or is_of_loops):
        code.write(f"if {code.decide(known)[0]}: return nan")
