"""Runs the kernels of one kind of instruction, each built once and checked against numpy."""

from dataclasses import dataclass, replace

from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.sampling.microbenchmarks.effort import Effort
from kernelcast.sampling.microbenchmarks.harness import Bench
from kernelcast.sampling.microbenchmarks.instruction_kernels import (
    InstructionKind,
    Shape,
    expect,
    kernel_name,
    make_input,
    write_source,
)
from kernelcast.sampling.microbenchmarks.statistics import (
    Measured,
    check_result,
    proves_steps,
)
from kernelcast.sampling.opencl import cl

_RUNS_OF_A_THREAD = 8
"""Work-groups per thread of a CPU device, so that two threads end together."""
_MOST_WARPS = 64
"""Warps that a compute unit of any known GPU can hold at most."""
_CPU_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_CPU_SIZES_QUICK = (1, 16, 64)
_CPU_SIZES_NORMAL = (1, 4, 16, 64, 256)
_WARPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
_WARPS_QUICK = (1, 4, 8, 16, 32, 64)
_WARPS_NORMAL = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class OccupancyPoint:
    """A launch that keeps so many work-items active on every compute unit."""

    local_size: int
    """Work-items of a work-group."""
    groups_per_unit: int = 1
    """Work-groups active at once on a compute unit: the paper's concWG."""
    runs: int = 1
    """Times that a compute unit is filled: the paper's runsCU."""
    local_bytes: int = 1
    """Local memory per work-group that admits no more of them at once: equation 2."""
    warp_width: int = 1
    """Work-items that are issued together; 1 on CPUs."""

    @property
    def work_items_per_unit(self) -> int:
        """Concurrent work-items on a compute unit."""
        return self.local_size * self.groups_per_unit

    def global_size(self, units: int) -> int:
        """Give the work-items of the launch on so many compute units."""
        return self.work_items_per_unit * self.runs * units


def plan_points(
    device: DeviceDescription, effort: Effort, *, warp_width: int
) -> tuple[OccupancyPoint, ...]:
    """Plan the points of a roofline.

    A thread of a CPU device runs one work-group at a time, so the work-group's size is the
    concurrency. On a GPU, launches of one run start as many work-groups as shall be active on
    each compute unit, and local memory keeps a unit from taking another one's.
    """
    if device.kind is DeviceKind.CPU:
        sizes = effort.pick(quick=_CPU_SIZES_QUICK, normal=_CPU_SIZES_NORMAL, full=_CPU_SIZES)
        return tuple(
            OccupancyPoint(local_size=size, runs=_RUNS_OF_A_THREAD)
            for size in sizes
            if size <= device.max_work_group_size
        )
    warps = effort.pick(quick=_WARPS_QUICK, normal=_WARPS_NORMAL, full=_WARPS)
    return tuple(_split(device, count, warp_width) for count in warps if count <= _MOST_WARPS)


def _split(device: DeviceDescription, warps: int, warp_width: int) -> OccupancyPoint:
    """Split warps into as few equal work-groups as the device allows."""
    groups = next(
        number
        for number in range(1, warps + 1)
        if warps % number == 0
        and (warps // number * warp_width <= device.max_work_group_size or number == warps)
    )
    return OccupancyPoint(
        local_size=min(warps // groups * warp_width, device.max_work_group_size),
        groups_per_unit=groups,
        local_bytes=max(1, device.local_memory_bytes // groups),
        warp_width=warp_width,
    )


_CHECKED_ITEMS = 64
_CHECKED_ITERATIONS = 3


class InstructionRuns:
    """One kind of instruction on one device.

    Parameters
    ----------
    most_items : int
        Work-items of the largest launch.
    """

    def __init__(self, bench: Bench, kind: InstructionKind, most_items: int) -> None:
        self.bench = bench
        self.kind = kind
        self._in = bench.buffer(make_input(kind))
        self._out = bench.buffer(max(most_items, _CHECKED_ITEMS) * kind.dtype.itemsize)
        self._kernels: dict[Shape, cl.Kernel] = {}
        self._lengths: dict[Shape, tuple[int, OccupancyPoint]] = {}

    def kernel(self, shape: Shape) -> cl.Kernel:
        """Build the kernel of a shape, or find it built."""
        if shape not in self._kernels:
            kernel = self._build(self.kind, shape)
            self._launch(kernel, OccupancyPoint(local_size=_CHECKED_ITEMS), _CHECKED_ITERATIONS, 1)
            found = self.bench.read(self._out, self.kind.dtype, _CHECKED_ITEMS)
            expected = expect(self.kind, shape, _CHECKED_ITERATIONS, _CHECKED_ITEMS)
            check_result(found, expected, tolerance=self.kind.tolerance)
            self._kernels[shape] = kernel
        return self._kernels[shape]

    def time(self, shape: Shape, point: OccupancyPoint, iterations: int) -> float:
        """Run once and give the time in seconds."""
        return self._launch(self.kernel(shape), point, iterations, self.bench.units)

    def choose_length(
        self, shape: Shape, point: OccupancyPoint, target_s: float | None = None
    ) -> int:
        """Choose the iterations of a run; what the shape needed elsewhere is the first guess."""
        count, known = self._lengths.get(shape, (1, point))
        ratio = known.work_items_per_unit / point.work_items_per_unit
        first = max(1, int(count * min(ratio, 1.0)))
        chosen = self.bench.calibrate_length(
            lambda count: self.time(shape, point, count), target_s, first=first
        )
        self._lengths[shape] = chosen, point
        return chosen

    def measure(self, shape: Shape, point: OccupancyPoint) -> tuple[Measured, float]:
        """Measure a run; give its time with the steps that each compute unit took.

        Returns
        -------
        measured : Measured
            Time of a launch, in seconds.
        steps_per_unit : float
            Instructions that the work-items of one compute unit executed.
        """
        count = self.choose_length(shape, point)
        measured = self.bench.measure(lambda: self.time(shape, point, count))
        return measured, self.steps_per_unit(shape, point, count)

    def steps_per_unit(self, shape: Shape, point: OccupancyPoint, iterations: int) -> float:
        """Count the instructions that the work-items of one compute unit execute in a launch."""
        per_item = float(iterations * self.kind.unroll * shape.streams)
        return per_item * point.work_items_per_unit * point.runs

    def prove(self, shape: Shape, point: OccupancyPoint) -> None:
        """Show that time grows with the iterations, and with the steps in each of them."""
        count = self.choose_length(shape, point)
        self.bench.prove_work(lambda count: self.time(shape, point, count), count)
        longer = self._build(replace(self.kind, unroll=2 * self.kind.unroll), shape)
        self._launch(longer, point, 1, self.bench.units)
        kernels = (self.kernel(shape), longer)
        self.bench.prove(
            lambda: [self._launch(kernel, point, count, self.bench.units) for kernel in kernels],
            lambda times: proves_steps(times[0], times[1]),
        )

    def _build(self, kind: InstructionKind, shape: Shape) -> cl.Kernel:
        return self.bench.build_kernel(write_source(kind, shape), kernel_name(kind, shape))

    def _launch(
        self, kernel: cl.Kernel, point: OccupancyPoint, iterations: int, units: int
    ) -> float:
        memory = self.bench.local_memory(point.local_bytes)
        self.bench.set_args(kernel, self._out, self._in, iterations, memory)
        size = point.global_size(units) if units > 1 or point.runs > 1 else point.local_size
        return self.bench.time_launch(kernel, size, point.local_size)
