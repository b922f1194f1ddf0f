"""Asks the GPU model, and sweeps launches over local sizes, foldings and domain sizes."""

from dataclasses import dataclass

from kernelcast.analytic.gpu.estimate import estimate_from_volumes
from kernelcast.analytic.gpu.hit_rates import HitRates
from kernelcast.analytic.gpu.limiters.rates import match_constants
from kernelcast.analytic.gpu.machine import read_machine
from kernelcast.analytic.gpu.volumes import GpuVolumes, compute_volumes
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.launches.modelling.folding import AXES
from kernelcast.launches.modelling.gpu_code import add_code
from kernelcast.launches.modelling.launches import find_unknown
from kernelcast.launches.modelling.sources import Folds, LaunchSource
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import InputError, NDRangeError
from kernelcast.records.machine import MachineDescription


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One way to launch a kernel, and what the model says of it."""

    local_size: tuple[int, ...]
    """Work-items per work-group."""
    folds: Folds
    """Axes and updates per work-item; empty without folding."""
    estimate: AnalyticEstimate
    """On one machine."""
    volumes: GpuVolumes
    """What its volumes are made of."""
    updates: int
    """Results of the whole launch."""

    @property
    def fold_text(self) -> str:
        """The folding as it is typed, such as ``2z``; empty without one."""
        return write_folds(self.folds)

    @property
    def label(self) -> str:
        """Local size and folding, such as ``16x2x32, folded 2z``."""
        return write_launch(self.local_size, self.folds)


def write_folds(folds: Folds) -> str:
    """Write foldings as they are typed."""
    return ",".join(f"{times}{AXES[axis]}" for axis, times in folds)


def write_launch(local_size: tuple[int, ...], folds: Folds) -> str:
    """Write local size and folding."""
    sides = "x".join(str(one) for one in local_size)
    return f"{sides}, folded {write_folds(folds)}" if folds else sides


def model_volumes(
    launch: ModelledLaunch, machine: MachineDescription, rates: HitRates | None = None
) -> GpuVolumes:
    """Ask the GPU model for the data that a launch moves."""
    if machine.kind is not DeviceKind.GPU:
        msg = f"machine {machine.id} is of kind {machine.kind}; the GPU model needs a GPU"
        raise InputError(msg)
    limit = machine.max_work_group_size
    size = launch.ndrange.work_group_size
    if limit is not None and size > limit.value:
        msg = (
            f"local size {launch.ndrange.known_local_size} has {size} work-items; {machine.id} "
            f"takes at most {limit.value} per work-group"
        )
        raise NDRangeError(msg)
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
    launch = source.launch(local_size, folds)
    return configure_launch(source, machine, launch, source.folds if folds is None else folds)


def configure_launch(
    source: LaunchSource, machine: MachineDescription, launch: ModelledLaunch, folds: Folds
) -> Configuration:
    """Ask for a launch that the source gave."""
    if source.problem is not None and not folds:
        launch = add_code(launch, source.problem, machine)
    volumes = model_volumes(launch, machine, source.hit_rates)
    return Configuration(
        local_size=launch.ndrange.known_local_size,
        folds=folds,
        estimate=estimate_from_volumes(
            launch, machine, volumes, constants=match_constants(volumes.rates)
        ),
        volumes=volumes,
        updates=source.ndrange.work_item_count,
    )
