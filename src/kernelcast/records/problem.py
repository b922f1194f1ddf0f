"""One launch to be answered for: kernel, index space, arguments."""

from dataclasses import dataclass, replace
from typing import Self

from kernelcast.records.arguments import Argument, BufferArgument
from kernelcast.records.device import DeviceDescription
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

    def on(self, device: DeviceDescription) -> Self:
        """Return the problem whose source is read as the device's compiler reads it."""
        if device.dialect is None or self.kernel.dialect == device.dialect:
            return self
        return replace(self, kernel=replace(self.kernel, dialect=device.dialect))

    @property
    def buffer_bytes(self) -> int:
        """Bytes of all buffers together."""
        return sum(a.bytes for a in self.arguments if isinstance(a, BufferArgument))
