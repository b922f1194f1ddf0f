"""A simulated kernel as a launch that can be sampled."""

import hashlib
import math
from collections.abc import Sequence

from kernelcast.records.contention import Contention
from kernelcast.records.device import DeviceDescription, DeviceKind, SaturationPoint
from kernelcast.records.errors import RecordingError
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.traits import Trait, TraitSource
from support.simulated_gpu.runs import CLOCK_HZ, SimulatedGpu, SimulatedKernel

_MIB = 1 << 20


class SimulatedLaunch:
    """A `PreparedLaunch` that answers from a simulator's runs.

    The index space is the launch's in dispatch order, one-dimensional: consecutive work-groups of
    a grid are seldom a box. Caches are as the calls leave them.
    """

    def __init__(self, kernel: SimulatedKernel) -> None:
        self.kernel = kernel
        self.kernel_digest = hashlib.sha256(kernel.name.encode()).hexdigest()
        self.device = describe_gpu(kernel.gpu)
        items = math.prod(kernel.local_size)
        self.ndrange = NDRange(global_size=(kernel.work_groups * items,), local_size=(items,))
        p_sat = kernel.concurrency // kernel.gpu.compute_units
        self.saturation = SaturationPoint(
            p_sat=Trait(value=p_sat, source=TraitSource.COMPUTED),
            concurrency=kernel.concurrency,
            computed=p_sat,
        )
        self.launch_overhead_s = 0.0
        self._before: tuple[int, int] | None = None

    def warm_up(self, box: GroupBox) -> None:
        """Let a box be what ran just before, in caches that were empty."""
        self._before = _place(box)

    def settle(self, *, keeps_contents: bool = False) -> None:
        """Empty the caches, unless samples of other work-groups go on."""
        if not keeps_contents:
            self._before = None

    def time_boxes(self, boxes: Sequence[GroupBox]) -> list[float]:
        """Look runs up; a box that was simulated only as what warms the next one takes NaN."""
        found = []
        places = [_place(box) for box in boxes]
        for (begin, end), following in zip(places, [*places[1:], None], strict=True):
            run = self.kernel.find(begin, end, self._before)
            is_warm_up = following and self.kernel.find(*following, (begin, end))
            if run is None and not is_warm_up:
                run = self.kernel.require(begin, end, self._before)
            self._before = (begin, end)
            found.append(math.nan if run is None else run.cycles / CLOCK_HZ)
        return found

    def measure_contention(self) -> Contention | None:
        """See nobody else: there is nobody."""
        return None

    def time_whole(self) -> float:
        """Give the whole launch's time, from empty caches if it was simulated so."""
        whole = self.kernel.whole
        if whole is None:
            msg = f"{self.kernel.name} on {self.kernel.gpu.id}: its whole launch was not simulated"
            raise RecordingError(msg)
        return whole.cycles / CLOCK_HZ


def describe_gpu(gpu: SimulatedGpu) -> DeviceDescription:
    """Describe a simulated GPU as a driver would."""
    return DeviceDescription(
        id=gpu.id,
        name=gpu.description,
        platform="simulated",
        vendor="NVIDIA Corporation",
        driver=gpu.simulator,
        opencl_version="OpenCL 3.0",
        kind=DeviceKind.GPU,
        compute_units=gpu.compute_units,
        local_memory_bytes=96 << 10,
        global_memory_bytes=1024 * _MIB,
        max_allocation_bytes=256 * _MIB,
        max_work_group_size=1024,
        max_work_item_sizes=(1024, 1024, 64),
        extensions=(),
        has_non_uniform_work_groups=False,
        has_fp64=True,
    )


def _place(box: GroupBox) -> tuple[int, int]:
    [start], [extent] = box.start, box.shape
    return start, start + extent
