"""Samples of a launch on a GPU, and what its source adds to them: idle borders, DRAM volumes."""

from collections.abc import Sequence

from kernelcast.analytic.gpu.machine import read_machine
from kernelcast.analytic.gpu.volumes import compute_volumes
from kernelcast.analytic.gpu.write_back import DramRoof, WriteBack, correct_by_volumes
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.features.active_groups import find_active_box
from kernelcast.features.analysis import analyse
from kernelcast.features.counting.bindings import bind_scalars
from kernelcast.launches.weighing import weigh_run
from kernelcast.models.linear import LinearFit
from kernelcast.records.arguments import Argument
from kernelcast.records.kernel import Kernel
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.samples import SampleRun
from kernelcast.sampling.backend import PreparedLaunch
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.sampler import sample
from kernelcast.sampling.warmed_windows import sample_warmed


def sample_on_gpu(
    launch: PreparedLaunch, plan: SamplingPlan, kernel: Kernel, arguments: Sequence[Argument]
) -> SampleRun:
    """Time warmed windows of a launch, none of them in borders that do nothing.

    Parameters
    ----------
    launch : PreparedLaunch
        On a GPU.
    plan : SamplingPlan
        How much to sample.
    kernel : Kernel
        Its kernel.
    arguments : sequence of Argument
        Of the launch.

    Returns
    -------
    SampleRun
        Weighed by what the source says of work-groups; as on any device where there are too few
        for warmed windows.

    Raises
    ------
    DeviceError
        If the device fails.
    """
    active = find_active_groups(kernel, launch.ndrange, arguments)
    run = sample_warmed(launch, plan, active=active)
    if run is None:
        return weigh_run(sample(launch, plan), kernel, arguments)
    if active is not None and active.work_group_count < launch.ndrange.work_group_count:
        return run
    return weigh_run(run, kernel, arguments)


def find_active_groups(
    kernel: Kernel, ndrange: NDRange, arguments: Sequence[Argument]
) -> GroupBox | None:
    """Find the work-groups that do anything; None where that is not known, or none does."""
    try:
        facts = analyse(kernel).facts
        return find_active_box(facts, ndrange, bind_scalars(facts, arguments))
    except Exception:  # noqa: BLE001 - a help: nothing about it may cost the answer
        return None


def find_write_back(
    launch: ModelledLaunch, machine: MachineDescription
) -> tuple[WriteBack, DramRoof] | None:
    """Find what a work-group moves between L2 cache and DRAM, and how fast DRAM is.

    Parameters
    ----------
    launch : ModelledLaunch
        What it touches.
    machine : MachineDescription
        The GPU, calibrated.

    Returns
    -------
    tuple or None
        The cache is taken for full of data that must be written back, as it is behind earlier
        launches. None where the machine's bandwidths were not measured.

    Raises
    ------
    InputError
        If the model cannot tell the volumes.
    """
    gpu = read_machine(machine)
    load, copy = gpu.dram_load_bytes_per_s, gpu.dram_copy_bytes_per_s
    if load is None or copy is None:
        return None
    volumes = compute_volumes(launch, gpu)
    loaded = volumes.dram_load_bytes / volumes.work_groups
    stored = volumes.dram_store_bytes / volumes.work_groups
    write_back = WriteBack(
        l2_bytes=gpu.l2_total_bytes,
        loaded_bytes=loaded,
        stored_bytes=stored,
        allocated_bytes=loaded + stored,
        is_clean=False,
    )
    return write_back, DramRoof(load_bytes_per_s=load, copy_bytes_per_s=copy)


def correct_for_write_back(fit: LinearFit, total: int, volumes: WriteBack, roof: DramRoof) -> float:
    """Give a launch's time by the line through its samples, no faster than DRAM allows.

    Parameters
    ----------
    fit : LinearFit
        The line.
    total : int
        Work-groups of the launch.
    volumes, roof : WriteBack, DramRoof
        See `find_write_back`.

    Returns
    -------
    float, in seconds
    """
    return correct_by_volumes(
        fit.seconds - fit.rate_s * (total - fit.p2), fit.rate_s,
        sampled=fit.p2, total=total, volumes=volumes, roof=roof,
    ).seconds  # fmt: skip
