"""Which buffers a kernel only reads: those need no copy while it is sampled."""

from functools import lru_cache

from kernelcast.features.analysis import analyse
from kernelcast.records.arguments import Access
from kernelcast.records.errors import InputError
from kernelcast.records.kernel import Kernel


@lru_cache(maxsize=256)
def infer_accesses(kernel: Kernel, argument_count: int) -> tuple[Access | None, ...]:
    """Find which arguments are only read; None for those that may be stored to."""
    try:
        facts = analyse(kernel).facts
    except InputError:
        return (None,) * argument_count
    if facts.gaps or len(facts.parameters) != argument_count:
        return (None,) * argument_count
    return tuple(
        Access.READ if one.is_pointer and not one.is_written else None for one in facts.parameters
    )
