"""What a problem's source alone tells to be wrong, before any device is opened."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from kernelcast.expressions.kernel_facts import ParameterFacts
from kernelcast.features.analysis import read_facts, remember_by_code
from kernelcast.features.counting.static import bind_scalars
from kernelcast.features.file_reach import check_reach as check_reach
from kernelcast.features.ir.reading import compile_program
from kernelcast.features.touched_ranges import find_overruns
from kernelcast.features.work_queues import find_work_queue
from kernelcast.records.arguments import Argument, BufferArgument, LocalArgument
from kernelcast.records.errors import (
    InputError,
    KernelNotFoundError,
    OverrunError,
    PersistentKernelError,
)
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.sampling.contents import check_file
from kernelcast.sampling.signature import Parameter, check_arguments

# What a compiler leaves out when it names the type of a parameter.
_QUALIFIERS = re.compile(
    r"\b(?:__(?:global|local|constant|private|generic|read_only|write_only|read_write)"
    r"|const|volatile|restrict)\b\s*"
)


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
        compiled = compile_program(kernel)
        facts = None if compiled.errors else read_facts(kernel)
    except KernelNotFoundError:
        raise
    except (InputError, RecursionError):
        return None
    if facts is None:
        return None
    found = []
    for place, one in enumerate(facts.parameters):
        type_name = _QUALIFIERS.sub("", one.type_name).replace(" *", "*").strip()
        found.append(
            Parameter(
                index=place,
                name=one.name,
                type_name=type_name,
                address_space=one.space.value,
                is_const=one.is_const and one.is_pointer,
                is_known="[" not in type_name and "(" not in type_name,
                value_bytes=_measure(one),
            )
        )
    return tuple(found)


def tell_sizes(kernel: Kernel, parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """Add to what a device's compiler says of parameters how large the source says values are."""
    try:
        told = [_measure(one) for one in read_facts(kernel).parameters]
    except (InputError, RecursionError):
        told = []
    if len(told) != len(parameters):
        told = [0] * len(parameters)
    pairs = zip(parameters, told, strict=True)
    return tuple(replace(one, value_bytes=size) for one, size in pairs)


def _measure(one: ParameterFacts) -> int:
    return 0 if one.is_pointer else max(one.element_bytes, 0)


_MOST = 3


def refuse_overruns(kernel: Kernel, ndrange: NDRange, arguments: Sequence[Argument]) -> None:
    try:
        facts = read_facts(kernel)
        named = {
            parameter.name: one.bytes
            for parameter, one in zip(facts.parameters, arguments, strict=False)
            if isinstance(one, BufferArgument | LocalArgument) and parameter.is_pointer
        }
        places = find_overruns(facts, ndrange, named, bind_scalars(facts, arguments))
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
