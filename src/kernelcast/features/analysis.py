"""What the source of a kernel tells: the front door of static analysis."""

from collections.abc import Callable, Hashable
from threading import Lock
from typing import ParamSpec, TypeVar

from cachetools import LRUCache, cached

from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.ir.reading import compile_source, read_code
from kernelcast.records.arguments import Access
from kernelcast.records.errors import InputError
from kernelcast.records.kernel import Kernel

Asked = ParamSpec("Asked")
Told = TypeVar("Told")


def _name_code(kernel: Kernel, *more: Hashable) -> Hashable:
    try:
        code = compile_source(
            kernel.source, kernel.build_options, kernel.source_name, kernel.dialect
        )
    except InputError:
        return kernel, *more
    return code, kernel.name, kernel.source, kernel.source_name, *more


def remember_by_code(most: int) -> Callable[[Callable[Asked, Told]], Callable[Asked, Told]]:
    """Keep what a function tells of kernels: devices whose compilers see the same code share it."""

    def decorate(function: Callable[Asked, Told]) -> Callable[Asked, Told]:
        return cached(LRUCache(most), key=_name_code, lock=Lock())(function)

    return decorate


@remember_by_code(64)
def read_facts(kernel: Kernel, known_buffers: frozenset[str] = frozenset()) -> KernelFacts:
    """Read the facts about a kernel, whose loops and conditions may ask what buffers hold."""
    return read_code(kernel, known_buffers)[1]


@remember_by_code(256)
def infer_accesses(kernel: Kernel, argument_count: int) -> tuple[Access | None, ...]:
    """Find which arguments are only read; None for those that may be stored to."""
    try:
        facts = read_facts(kernel)
    except InputError:
        return (None,) * argument_count
    if facts.gaps or len(facts.parameters) != argument_count:
        return (None,) * argument_count
    return tuple(
        Access.READ if one.is_pointer and not one.is_written else None for one in facts.parameters
    )
