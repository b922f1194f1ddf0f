"""One launch to be answered for: kernel, index space, arguments."""

from dataclasses import dataclass

from kernelcast.records.arguments import Argument, BufferArgument
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A kernel with the launch that is to be predicted.

    Parameters
    ----------
    name : str
        What tables call it: the problem file's stem.
    ndrange : NDRange
        Its index space.
    arguments : tuple of Argument
        In the kernel's order.
    """

    name: str
    kernel: Kernel
    ndrange: NDRange
    arguments: tuple[Argument, ...]

    @property
    def buffer_bytes(self) -> int:
        """Bytes of all buffers together."""
        return sum(a.bytes for a in self.arguments if isinstance(a, BufferArgument))
