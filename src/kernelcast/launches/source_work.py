"""How many instructions a launch executes by its source, where its sizes decide that."""

import numpy as np

from kernelcast.expressions.symbols import SymbolKind
from kernelcast.features.analysis import read_facts, remember_by_code
from kernelcast.features.counting.static import bind_scalars, choose_work_groups, count_statically
from kernelcast.features.counting.summary import count_blocks, count_instructions
from kernelcast.records.errors import KernelcastError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem

Scalars = tuple[tuple[str, int], ...]
_OF_SIZES = frozenset({SymbolKind.SCALAR, SymbolKind.GLOBAL_SIZE, SymbolKind.GROUP_COUNT,
                       SymbolKind.GLOBAL_OFFSET})  # fmt: skip
_OF_LAUNCHES = _OF_SIZES | {SymbolKind.GLOBAL_ID, SymbolKind.GROUP_ID}


def count_work(problem: Problem, ndrange: NDRange) -> float | None:
    """Count the instructions of a launch; None where data decide what is executed."""
    items = float(ndrange.work_item_count)
    try:
        kernel = problem.kernel
        if not depends_on_sizes(kernel):
            return items
        if ndrange.local_size is None:
            return None
        scalars = bind_scalars(read_facts(kernel), problem.arguments)
        counted = count_by_work_groups(kernel, ndrange, tuple(scalars.items()))
        return None if counted is None else items * counted
    except KernelcastError:
        return None


def count_problem(problem: Problem, _: object) -> tuple[float, ...]:
    """Count the instructions of a problem's launch; what a child process is asked. None: empty."""
    found = count_work(problem, problem.ndrange)
    return () if found is None else (found,)


@remember_by_code(256)
def depends_on_sizes(kernel: Kernel) -> bool:
    """Tell whether a scalar or the index space decides how often loops run or what is skipped."""
    facts = read_facts(kernel)
    turns = (loop.condition if loop.trip_count is None else loop.trip_count for loop in facts.loops)
    guards = ({symbol.kind for symbol in reach.guard.symbols()} for reach in facts.reaches)
    return any(
        not _OF_LAUNCHES.isdisjoint(symbol.kind for symbol in turn.symbols()) for turn in turns
    ) or any(guard and guard <= _OF_SIZES for guard in guards)


@remember_by_code(4096)
def count_by_work_groups(kernel: Kernel, ndrange: NDRange, scalars: Scalars) -> float | None:
    """Give the instructions of a work-item, in the mean of some; None where they are guessed."""
    facts = read_facts(kernel)
    sample = count_statically(facts, ndrange, dict(scalars), choose_work_groups(ndrange))
    if not all(sample.is_exact):
        return None
    sizes = np.array([count_instructions(block.operations) for block in facts.blocks])
    return max(1.0, float((count_blocks(facts, sample) @ sizes)[sample.is_present].mean()))
