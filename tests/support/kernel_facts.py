"""Facts of kernels that tests write down."""

from collections.abc import Iterable

from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.analysis import read_facts
from kernelcast.records.kernel import Kernel


def facts_of(source: str, *options: str, known_buffers: Iterable[str] = ()) -> KernelFacts:
    """Analyse a kernel named k; contents of some buffers may be known."""
    kernel = Kernel(name="k", source=source, build_options=options)
    return read_facts(kernel, frozenset(known_buffers))
