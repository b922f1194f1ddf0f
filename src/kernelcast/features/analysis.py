"""What the source of a kernel tells: the front door of static analysis."""

from collections.abc import Hashable
from functools import lru_cache
from threading import Lock

from cachetools import LRUCache, cached

from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.ir.reading import compile_source, read_code
from kernelcast.records.arguments import Access
from kernelcast.records.errors import InputError
from kernelcast.records.kernel import Kernel


def _name_code(kernel: Kernel, known_buffers: frozenset[str] = frozenset()) -> Hashable:
    """Name what facts follow from: devices whose compilers see the same code share them."""
    code = compile_source(kernel.source, kernel.build_options, kernel.source_name, kernel.dialect)
    return code, kernel.name, kernel.source, kernel.source_name, known_buffers


@cached(LRUCache(64), key=_name_code, lock=Lock())
def read_facts(kernel: Kernel, known_buffers: frozenset[str] = frozenset()) -> KernelFacts:
    """Read the facts about a kernel, whose loops and conditions may ask what buffers hold."""
    return read_code(kernel, known_buffers)[1]


@lru_cache(maxsize=256)
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
