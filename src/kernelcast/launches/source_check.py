"""What a problem's source alone tells, before any device is opened: what is wrong, and the work."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from kernelcast.expressions.symbols import SymbolKind
from kernelcast.features.analysis import compile_program, find_kernel, read_facts, remember_by_code
from kernelcast.features.counting.static import bind_scalars, choose_work_groups, count_statically
from kernelcast.features.counting.summary import count_blocks, count_instructions
from kernelcast.features.file_reach import check_reach as check_reach
from kernelcast.features.touched_ranges import find_overruns
from kernelcast.features.work_queues import find_work_queue
from kernelcast.records.arguments import BufferArgument, LocalArgument, Parameter
from kernelcast.records.errors import (
    InputError,
    KernelcastError,
    KernelNotFoundError,
    OverrunError,
    PersistentKernelError,
)
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.sampling.arguments import check_arguments, check_file


def refuse_misfits(problem: Problem) -> None:
    """Refuse a problem that does not fit its files, or its source where that can be read."""
    parameters = list_parameters(problem.kernel)
    if parameters is not None:
        check_arguments(problem.kernel.name, parameters, problem.arguments)
    for argument in problem.arguments:
        if isinstance(argument, BufferArgument):
            check_file(argument)


def list_parameters(kernel: Kernel) -> tuple[Parameter, ...] | None:
    """Give a kernel's signature by its source; None where that cannot be read without errors."""
    try:
        return None if compile_program(kernel).gaps else find_kernel(kernel).parameters
    except KernelNotFoundError:
        raise
    except InputError:
        return None


def tell_sizes(kernel: Kernel, parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """Add to what a device's compiler says of parameters how large the source says values are."""
    try:
        told = [one.value_bytes for one in find_kernel(kernel).parameters]
    except InputError:
        told = []
    if len(told) != len(parameters):
        told = [0] * len(parameters)
    pairs = zip(parameters, told, strict=True)
    return tuple(replace(one, value_bytes=size) for one, size in pairs)


_MOST = 3


def refuse_overruns(problem: Problem) -> None:
    kernel, arguments = problem.kernel, problem.arguments
    try:
        facts = read_facts(kernel)
        named = {
            parameter.name: one.bytes
            for parameter, one in zip(facts.parameters, arguments, strict=False)
            if isinstance(one, BufferArgument | LocalArgument) and parameter.is_pointer
        }
        places = find_overruns(facts, problem.ndrange, named, bind_scalars(facts, arguments))
    except Exception:  # noqa: BLE001 - a help: nothing about it may cost the answer
        return
    # An element that is read and written is two accesses, but one place.
    found = list(dict.fromkeys(map(str, places)))
    if not found:
        return
    more = f"; {len(found) - _MOST} more places do so" if len(found) > _MOST else ""
    raise OverrunError(
        f"kernel {kernel.name}: {'; '.join(found[:_MOST])}{more}. To run it might end the "
        "process: give larger buffers or a smaller global size, or guard the access"
    )


def refuse_persistent(kernel: Kernel) -> None:
    """Refuse a kernel whose work-groups fetch work from a shared queue until it is empty."""
    found = ask_source(kernel, find_work_queue)
    if found:
        raise PersistentKernelError(
            f"kernel {kernel.name}: {found}. Such work-groups fetch work until none is left: a few "
            "sampled ones would do everybody's, and the time would be that of any number of them. "
            "Give each work-group its share by its id instead; or time whole runs, and report what "
            "they take as observations of the launch: they answer it then"
        )


@remember_by_code(256)
def ask_source(kernel: Kernel, find: Callable[[Kernel], str]) -> str:
    """Describe what a kernel does by its source; empty where that cannot be read."""
    try:
        return find(kernel)
    except (InputError, RecursionError):
        return ""


Scalars = tuple[tuple[str, int], ...]
_OF_SIZES = frozenset({SymbolKind.SCALAR, SymbolKind.GLOBAL_SIZE, SymbolKind.GROUP_COUNT,
                       SymbolKind.GLOBAL_OFFSET})  # fmt: skip
_OF_LAUNCHES = _OF_SIZES | {SymbolKind.GLOBAL_ID, SymbolKind.GROUP_ID}


def count_work(problem: Problem) -> float | None:
    """Count the instructions of a launch; None where data decide what is executed."""
    kernel, ndrange = problem.kernel, problem.ndrange
    items = float(ndrange.work_item_count)
    try:
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
    found = count_work(problem)
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
