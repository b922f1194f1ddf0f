"""The contract between sampling and whatever runs the work-groups.

`kernelcast.sampling.launch` implements it for real devices; `kernelcast.sampling.opencl` says by
which drivers these are run.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from kernelcast.records.contention import Contention
from kernelcast.records.device import DeviceDescription, SaturationPoint
from kernelcast.records.ndrange import GroupBox, NDRange


class Sampled(Protocol):
    """What samples are of: a launch that is ready, or the recording of one."""

    @property
    def device(self) -> DeviceDescription: ...

    @property
    def ndrange(self) -> NDRange: ...

    @property
    def saturation(self) -> SaturationPoint:
        """P_sat of this kernel at this local size on this device."""

    @property
    def launch_overhead_s(self) -> float:
        """What a launch costs beside its work-groups, about, in seconds."""


class PreparedLaunch(Sampled, Protocol):
    """One kernel with one index space and one set of arguments, built and ready to be sampled."""

    @property
    def kernel_digest(self) -> str: ...

    def warm_up(self, box: GroupBox) -> None:
        """Run a box untimed, so that compilation and thread start happen outside the timing."""

    def settle(self, *, keeps_contents: bool = False) -> None:
        """Make ready for samples: a device at its usual rate, and true buffer contents."""

    def time_boxes(self, boxes: Sequence[GroupBox]) -> list[float]:
        """Time boxes, in seconds: a `LaunchTime` where work and clock are known."""

    def measure_contention(self) -> Contention | None:
        """Find out what other programs leave to the device; None where nothing is seen of any."""

    def time_whole(self, begin: Callable[[], object] = lambda: None) -> float:
        """Run the unchanged kernel as a whole from true contents, made before `begin` is called;
        give its time in seconds."""
