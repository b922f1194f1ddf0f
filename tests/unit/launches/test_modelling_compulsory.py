"""The examples: volumes against every address of a small launch, times against plain bounds."""

import math
from collections.abc import Mapping

import pytest

from kernelcast.analytic.gpu.machine import read_machine
from kernelcast.analytic.gpu.volumes import compute_volumes
from kernelcast.expressions.accesses import AccessKind
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.gpu_estimates import configure
from kernelcast.launches.modelling.launches import model_kernel
from kernelcast.records.machine import MachineDescription
from kernelcast.records.operations import MemorySpace
from support.address_sets import bind_group, enumerate_offsets
from support.problems import read_example

SMALL: Mapping[str, Mapping[str, int]] = {
    "chebyshev_fp64": {"N": 1024, "TERMS": 20},
    "convolution": {"WIDTH": 150, "HEIGHT": 61},
    "grid_stride": {"N": 10_000, "WORK_ITEMS": 512},
    "histogram": {"N": 20_000, "PER_WORK_ITEM": 16},
    "inplace_update": {"N": 10_000},
    "matmul_tiled": {"N": 128},
    "nbody": {"N": 1024},
    "reduction": {"N": 30_000, "GROUPS": 16},
    "scan_blocks": {"N": 10_000},
    "stencil2d": {"NX": 128, "NY": 64},
    "stencil3d": {"NX": 40, "NY": 30, "NZ": 21},
    "transcendental": {"N": 2048},
    "transpose": {"WIDTH": 150, "HEIGHT": 130},
    "triad": {"N": 12_800, "SWEEPS": 2},
    "triangular": {"N": 512},
}
CACHED = {MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.GENERIC}


def count_unique(launch: ModelledLaunch, kinds: set[AccessKind], granularity: int) -> int:
    """Count the bytes of the different sectors that all work-groups touch, address by address."""
    touched = set()
    ids = [
        bind_group(launch.ndrange, group, launch.scalars)
        for group in range(launch.ndrange.work_group_count)
    ]
    for access in launch.accesses:
        if access.kind in kinds and access.space in CACHED:
            for bound in ids:
                for offset in enumerate_offsets(access, bound):
                    last = (offset + access.bytes - 1) // granularity
                    touched |= {
                        (access.buffer, unit) for unit in range(offset // granularity, last + 1)
                    }
    return granularity * len(touched)


@pytest.mark.parametrize("name", SMALL)
def test_nothing_moves_less_than_is_touched(name: str) -> None:
    """Loads and stores at least what is touched, and a small launch not much more."""
    launch = model_kernel(read_example(name, **SMALL[name])).launch()
    machine = read_machine(find_machine("a100"))
    volumes = compute_volumes(launch, machine)
    loaded = count_unique(launch, {AccessKind.LOAD, AccessKind.ATOMIC}, machine.dram_fetch_bytes)
    stored = count_unique(launch, {AccessKind.STORE, AccessKind.ATOMIC}, machine.l1_sector_bytes)
    # All of it fits into the cache, but for the rounding of rows to whole fetches.
    assert 0.999 * loaded <= volumes.dram_load_bytes <= 1.25 * loaded + 1024
    assert 0.999 * stored <= volumes.dram_store_bytes <= 1.25 * stored + 1024


@pytest.mark.parametrize(
    ("name", "least", "most"), [("convolution", 1.0, 1.04), ("stencil3d", 4.0, 4.3)]
)
def test_borders_are_loaded_once(name: str, least: float, most: float) -> None:
    """Clamped pixels and copies of a border touch what the interior touches."""
    source = model_kernel(read_example(name))
    volumes = compute_volumes(source.launch(), read_machine(find_machine("a100")))
    assert least < volumes.per_update()["DRAM_to_L2"] < most


def find_peak(machine: MachineDescription) -> float:
    memory = machine.memory("global")
    assert memory is not None
    known = [one.value for one in memory.load_bytes_per_s.values()]
    for name in ("load", "copy"):
        curve = machine.curve(f"saturation/global/{name}")
        known += curve.y if curve else ()
    return max(*known, memory.copy_bytes_per_s.value if memory.copy_bytes_per_s else 0.0)


@pytest.mark.parametrize("name", SMALL)
def test_times_are_plausible_on_every_kind_of_machine(name: str) -> None:
    """Takes what the bytes need at full bandwidth at least, all limiters in turn at most."""
    source = model_kernel(read_example(name))
    for machine in map(find_machine, ("a100", "mi210", "rx-6900-xt")):
        found = configure(source, machine).estimate
        assert all(math.isfinite(s) and s >= 0 for s in found.limiters.values())
        assert all(math.isfinite(one) and one >= 0 for one in found.quantities.values())
        fastest = find_peak(machine)
        moved = found.volumes["DRAM_to_L2"] + found.volumes["L2_to_DRAM"]
        assert found.seconds >= moved / fastest
        together = sum(found.limiters.values()) + found.quantities["exposed_l1_s"]
        assert max(found.limiters.values()) <= found.seconds <= together * (1 + 1e-9)
