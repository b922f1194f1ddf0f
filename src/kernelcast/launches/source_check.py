"""What a problem's source alone tells to be wrong, before any device is opened."""

import re
from collections.abc import Sequence
from dataclasses import replace

from kernelcast.expressions.kernel_facts import KernelFacts, ParameterFacts
from kernelcast.features.analysis import analyse, read_facts
from kernelcast.features.ir.reading import compile_source
from kernelcast.records.arguments import BufferArgument
from kernelcast.records.errors import InputError, KernelNotFoundError
from kernelcast.records.kernel import Kernel
from kernelcast.records.problem import Problem
from kernelcast.sampling.contents import check_file
from kernelcast.sampling.signature import Parameter, check_arguments

# What a compiler leaves out when it names the type of a parameter.
_QUALIFIERS = re.compile(
    r"\b(?:__(?:global|local|constant|private|generic|read_only|write_only|read_write)"
    r"|const|volatile|restrict)\b\s*"
)


def refuse_misfits(problem: Problem) -> None:
    """Refuse a problem that does not fit its source or its files.

    A source that cannot be read without errors here is left to the device's compiler, and so are
    types that only it knows.
    """
    parameters = list_parameters(problem.kernel)
    if parameters is not None:
        check_arguments(problem.kernel.name, parameters, problem.arguments)
    for argument in problem.arguments:
        if isinstance(argument, BufferArgument):
            check_file(argument)


def list_parameters(kernel: Kernel) -> tuple[Parameter, ...] | None:
    """Give a kernel's signature by its source; None where that cannot be read without errors."""
    facts = _read(kernel)
    if facts is None:
        return None
    return tuple(_describe(place, one) for place, one in enumerate(facts.parameters))


def tell_sizes(kernel: Kernel, parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """Add to what a device's compiler says of parameters how large the source says values are."""
    try:
        told = [_measure(one) for one in analyse(kernel).facts.parameters]
    except (InputError, RecursionError):
        told = []
    if len(told) != len(parameters):
        told = [0] * len(parameters)
    pairs = zip(parameters, told, strict=True)
    return tuple(replace(one, value_bytes=size) for one, size in pairs)


def _measure(one: ParameterFacts) -> int:
    return 0 if one.is_pointer else max(one.element_bytes, 0)


def _read(kernel: Kernel) -> KernelFacts | None:
    try:
        compiled = compile_source(
            kernel.source, kernel.build_options, kernel.source_name, kernel.dialect
        )
        return None if compiled.errors else read_facts(kernel)
    except KernelNotFoundError:
        raise
    except (InputError, RecursionError):
        return None


def _describe(place: int, one: ParameterFacts) -> Parameter:
    """Describe a parameter as devices' compilers do."""
    type_name = _QUALIFIERS.sub("", one.type_name).replace(" *", "*").strip()
    return Parameter(
        index=place,
        name=one.name,
        type_name=type_name,
        address_space=one.space.value,
        is_const=one.is_const and one.is_pointer,
        is_known="[" not in type_name and "(" not in type_name,
        value_bytes=_measure(one),
    )
