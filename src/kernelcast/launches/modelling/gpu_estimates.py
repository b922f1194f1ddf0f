"""Asks the GPU model: one launch, and sweeps over local sizes, foldings and domain sizes."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise, product

from kernelcast.analytic.gpu.estimate import estimate_gpu
from kernelcast.analytic.gpu.hit_rates import HitRates
from kernelcast.analytic.gpu.limiters.rates import match_constants
from kernelcast.analytic.gpu.machine import read_machine
from kernelcast.analytic.gpu.volumes import GpuVolumes, compute_volumes
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.launches.modelling.estimating import add_code
from kernelcast.launches.modelling.launches import find_unknown
from kernelcast.launches.modelling.sources import AXES, Folds, LaunchSource
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import InputError, NDRangeError
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import NDRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One way to launch a kernel, and what the model says of it."""

    local_size: tuple[int, ...]
    folds: Folds
    estimate: AnalyticEstimate
    volumes: GpuVolumes
    updates: int

    @property
    def label(self) -> str:
        """Local size and folding, such as ``16x2x32, folded 2z``."""
        return write_launch(self.local_size, self.folds)


def write_folds(folds: Folds) -> str:
    """Write a folding as it is typed, such as ``2z``; empty without one."""
    return ",".join(f"{times}{AXES[axis]}" for axis, times in folds)


def write_launch(local_size: tuple[int, ...], folds: Folds) -> str:
    sides = "x".join(str(one) for one in local_size)
    return f"{sides}, folded {write_folds(folds)}" if folds else sides


def model_volumes(
    launch: ModelledLaunch, machine: MachineDescription, rates: HitRates | None = None
) -> GpuVolumes:
    """Ask the GPU model for the data that a launch moves."""
    machine.require_kind(DeviceKind.GPU)
    limit = machine.max_work_group_size
    size = launch.ndrange.work_group_size
    if limit is not None and size > limit.value:
        raise NDRangeError(
            f"local size {launch.ndrange.known_local_size} has {size} work-items; {machine.id} "
            f"takes at most {limit.value} per work-group"
        )
    unknown = find_unknown(launch.accesses, launch.recorded)
    if unknown:
        raise unknown[0].refuse_unknown(launch.kernel)
    return compute_volumes(launch, read_machine(machine), rates)


def configure(
    source: LaunchSource,
    machine: MachineDescription,
    local_size: tuple[int, ...] | None = None,
    folds: Folds | None = None,
) -> Configuration:
    """Ask for one local size and one folding, the source's own when left out."""
    folds = source.folds if folds is None else folds
    launch = add_code(source.launch(local_size, folds), machine)
    volumes = model_volumes(launch, machine, source.hit_rates)
    return Configuration(
        local_size=launch.ndrange.known_local_size,
        folds=folds,
        estimate=estimate_gpu(launch, machine, volumes, constants=match_constants(volumes.rates)),
        volumes=volumes,
        updates=source.ndrange.work_item_count,
    )


def list_local_sizes(ndrange: NDRange, machine: MachineDescription) -> list[tuple[int, ...]]:
    """List local sizes worth trying: powers of two per dimension, at least a warp of work-items."""
    if machine.max_work_group_size is None:
        raise InputError(
            f"machine {machine.id}: max_work_group_size is missing; `kernelcast calibrate` finds "
            "it on the device itself, or add it to the description"
        )
    most = machine.max_work_group_size.value
    warp = machine.warp_width.value if machine.warp_width else 32
    least = min(warp, ndrange.work_item_count)
    # NVIDIA's devices take 64 work-items of a work-group along dimension 2.
    limits = [most, most, 64]
    sides = [
        [1 << power for power in range(min(limit, size).bit_length())]
        for limit, size in zip(limits, ndrange.global_size, strict=False)
    ]
    return [one for one in product(*sides) if least <= math.prod(one) <= most]


def list_folds(source: LaunchSource) -> list[Folds]:
    """List foldings worth trying: none, and two updates along each dimension but the first."""
    # Folding along dimension 0 would spread neighbouring work-items over memory.
    return [(), *(((axis, 2),) for axis in range(1, source.ndrange.dimensions))]


def sweep_local_sizes(
    source: LaunchSource,
    machine: MachineDescription,
    folds: Sequence[Folds] | None = None,
    report: Callable[[int, int], None] = lambda _, __: None,
) -> tuple[list[Configuration], list[tuple[str, str]]]:
    """Ask for all local sizes and some foldings: those found, fastest first, and those refused,
    each with the reason."""
    wanted = [source.folds] if folds is None else list(folds)
    sizes = list_local_sizes(source.ndrange, machine)
    found: list[Configuration] = []
    refused: list[tuple[str, str]] = []
    total = len(sizes) * len(wanted)
    for done, (each, size) in enumerate(product(wanted, sizes)):
        report(done, total)
        try:
            found.append(configure(source, machine, size, each))
        except InputError as error:
            refused.append((write_launch(size, each), str(error)))
    report(total, total)
    if not found:
        reason = refused[0][1] if refused else "no local size fits"
        raise InputError(f"{source.name}: no local size can be modelled on {machine.id}: {reason}")
    return sorted(found, key=lambda one: one.estimate.seconds), refused


def sweep_sizes(
    make_source: Callable[[int], LaunchSource],
    values: Sequence[int],
    machine: MachineDescription,
    local_sizes: Sequence[tuple[int, ...] | None] = (None,),
) -> Iterator[tuple[int, Configuration | None]]:
    """Ask for domains of several sizes, each with some local sizes."""
    for value in values:
        source = make_source(value)
        for local_size in local_sizes:
            try:
                found = configure(source, machine, local_size)
            except NDRangeError:
                found = None
            yield value, found


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A climb from few bytes per update to many: sizes at which a tenth and half of it is done."""

    begins: float
    middle: float
    low: float
    high: float


def find_transition(sizes: Sequence[float], volumes: Sequence[float]) -> Transition | None:
    """Find where a volume climbs as sizes grow."""
    low = min(volumes)
    start = max(index for index, volume in enumerate(volumes) if volume == low)
    high = max(volumes[start:])
    if low <= 0 or high < 1.15 * low:  # no climb
        return None
    rest = list(zip(sizes[start:], volumes[start:], strict=True))
    begins, middle = (
        # The first size at which the curve, drawn in straight lines, reaches a level.
        next(
            before + (after - before) * (level - lower) / (upper - lower)
            for (before, lower), (after, upper) in pairwise(rest)
            if upper >= level > lower
        )
        for level in (low + 0.1 * (high - low), low + 0.5 * (high - low))
    )
    return Transition(begins=begins, middle=middle, low=low, high=high)


def configuration_to_json(name: str, found: Configuration) -> dict[str, object]:
    """Give one answer; times are in seconds, volumes in bytes of the whole launch."""
    return {
        **({"kernel": name} if name else {}), "local_size": found.local_size,
        "fold": write_folds(found.folds), "updates": found.updates, **asdict(found.estimate),
    }  # fmt: skip
