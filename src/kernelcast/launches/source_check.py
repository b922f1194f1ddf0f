"""What a problem's source alone tells to be wrong, before any device is opened."""

import re

from kernelcast.expressions.kernel_facts import KernelFacts, ParameterFacts
from kernelcast.features.analysis import read_facts
from kernelcast.features.parsing import parse_source
from kernelcast.records.errors import InputError, KernelNotFoundError, SignatureError
from kernelcast.records.kernel import Kernel
from kernelcast.records.problem import Problem

_SPACES = re.compile(r"\b__(?:global|local|constant|private|generic)\b\s*")


def refuse_misfits(problem: Problem) -> None:
    """Refuse a problem whose kernel is not in its source, or takes another number of arguments.

    A source that cannot be read without errors here is left to the device's compiler.

    Raises
    ------
    KernelNotFoundError
        Names the kernels that there are.
    SignatureError
        Names the parameters.
    """
    facts = _read(problem.kernel)
    if facts is None or len(facts.parameters) == len(problem.arguments):
        return
    signature = ", ".join(f"{place} ({_write(one)})" for place, one in enumerate(facts.parameters))
    msg = (
        f"kernel {problem.kernel.name}: {len(problem.arguments)} arguments given, "
        f"{len(facts.parameters)} expected: {signature or 'none'}"
    )
    raise SignatureError(msg)


def _read(kernel: Kernel) -> KernelFacts | None:
    try:
        parsed = parse_source(kernel.source, kernel.build_options, source_name=kernel.source_name)
        return read_facts(kernel) if parsed.is_clean else None
    except KernelNotFoundError:
        raise
    except (InputError, RecursionError):
        return None


def _write(one: ParameterFacts) -> str:
    """Write a parameter as devices' compilers name it."""
    space = f"{one.space} " if one.is_pointer else ""
    type_name = _SPACES.sub("", one.type_name).replace(" *", "*").strip()
    return f"{space}{type_name} {one.name}"
