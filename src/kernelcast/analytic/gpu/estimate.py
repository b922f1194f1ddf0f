"""The GPU model's answer: seconds of a launch, and what bounds them."""

from kernelcast.analytic.gpu.limiters.assess import LimiterModel
from kernelcast.analytic.gpu.limiters.rates import FITTED, LimiterConstants, read_rates
from kernelcast.analytic.gpu.volumes import GpuVolumes, compute_volumes
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.machine import MachineDescription

MODEL = "gpu"


def estimate_gpu(
    launch: ModelledLaunch,
    machine: MachineDescription,
    volumes: GpuVolumes | None = None,
    *,
    constants: LimiterConstants = FITTED,
) -> AnalyticEstimate:
    """Estimate the time of a launch on a GPU, from its volumes where they are known already."""
    given = read_rates(machine, constants)
    volumes = volumes or compute_volumes(launch, given.machine)
    found = LimiterModel(launch, volumes, given).assess()
    l1, wave, groups, misses = volumes.l1, volumes.wave, volumes.work_groups, {}
    seconds, resident = found.seconds, volumes.occupancy.work_groups
    issued = sum(launch.executed.operations.values()) + sum(launch.executed.memory.values())
    if issued:
        # Over issued instructions, as the sampling paper's Table 1 counts them.
        every = issued * groups * volumes.occupancy.warps_per_work_group
        misses = {
            "l1_miss_ratio": volumes.l2_load_bytes / given.machine.l1_sector_bytes / every,
            "l2_miss_ratio": volumes.dram_load_bytes / given.machine.dram_fetch_bytes / every,
        }
    return AnalyticEstimate(
        model=MODEL,
        machine=machine.id,
        seconds=seconds,
        limiter=found.limiter,
        limiters=dict(found.times),
        volumes=volumes.crossing_bytes,
        quantities={
            "l1_cycles_per_warp": l1.warp_cycles,
            "l1_lines_per_warp": l1.load_lines,
            "l1_load_requests_per_warp": l1.load_requests,
            "l1_store_requests_per_warp": l1.store_requests,
            "l1_allocated_bytes_per_work_group": l1.allocated_bytes,
            "l1_oversubscription_ratio": l1.oversubscription,
            "l2_load_bytes_per_work_group": l1.loaded_bytes,
            "l2_store_bytes_per_work_group": l1.stored_bytes,
            "l2_oversubscription_ratio": wave.oversubscription,
            "dram_load_bytes_per_work_group": volumes.dram_load_bytes / groups,
            "dram_store_bytes_per_work_group": volumes.dram_store_bytes / groups,
            "reused_bytes_per_work_group": wave.reused_bytes / wave.work_groups,
            "pages_of_wave_count": wave.tlb_pages,
            "pages_per_work_group": volumes.pages,
            "work_groups_per_compute_unit": float(resident),
            "waves_count": wave.waves,
            "updates_per_s": volumes.updates / seconds,
            "exposed_l1_s": found.exposed_l1_s,
            "resident_work_items_per_compute_unit": float(resident * volumes.work_group_size),
            "updates_per_work_item": float(launch.updates_per_work_item),
            **misses,
            **{f"without_{name.lower()}_s": seconds for name, seconds in found.without.items()},
        },
        notes=tuple(dict.fromkeys((*launch.notes, *volumes.notes, *found.notes))),
    )
