from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.launches.machines import find_machine, read_machine
from kernelcast.launches.modelling.estimating import time_mwp_cwp
from kernelcast.launches.modelling.launches import model_launch
from kernelcast.records.errors import InputError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.software_counters import SoftwareCounters, WarpCounters
from support.problems import buffer_of, read_example, write_problem

ROOT = Path(__file__).resolve().parents[3]
CALIBRATION = ROOT / "benchmarks/results/calibration"
V100 = find_machine("v100")
CPU = read_machine(CALIBRATION / "pocl-skylake-avx512-amd-5d25.yaml")
INTEL = read_machine(CALIBRATION / "intel-amd-epyc-c960.yaml")


def make_launch(name: str, **parameters: float) -> ModelledLaunch:
    return model_launch(read_example(name, **parameters))


@pytest.mark.parametrize("machine", [V100, CPU, INTEL], ids=lambda one: one.id)
def test_streaming_takes_bytes_over_bandwidth(machine: MachineDescription) -> None:
    """A triad takes about the time that its bytes take."""
    launch = make_launch("triad")
    memory = machine.memory("global")
    assert memory is not None
    usual = median(one.value for one in memory.load_bytes_per_s.values())
    moved = 12 * launch.ndrange.work_item_count
    assert time_mwp_cwp(launch, machine) == pytest.approx(moved / usual, rel=0.25)


def test_scattered_accesses_take_longer() -> None:
    """A row that is read by column has a transaction for each work-item."""
    source = "kernel void k(global int *a, global int *b) {{ a[get_global_id(0)] = b[{}]; }}"
    row, column = (
        time_mwp_cwp(model_launch(write_problem(
            source.format(place), *[buffer_of("int32", 1 << 22)] * 2,
            items=(1 << 22,), local=(128,),
        )), V100)
        for place in ("get_global_id(0)", "get_global_id(0) % 2048 * 2048")
    )  # fmt: skip
    assert column > 1.5 * row


def test_counters_tell_what_warps_issue() -> None:
    """Takes the issued instructions of warps of the machine's width, divergence included."""
    launch = make_launch("mandelbrot")
    issued = sum(launch.executed.operations.values())
    times = []
    for factor in (2, 6):
        warp = WarpCounters(
            width=32, issued=factor * issued, executed=0, branches=0, divergent_branches=0
        )
        times.append(time_mwp_cwp(launch, V100, SoftwareCounters(
            work_groups=1, work_items=1, executed=launch.executed, block_counts=(),
            warps=(warp,), loops=(), patterns=(), is_exact=True,
        )))  # fmt: skip
    assert times[1] == pytest.approx(3 * times[0], rel=0.01)


def test_what_to_measure_is_told() -> None:
    bare = replace(V100, memories=tuple(replace(one, latency_s=None) for one in V100.memories))
    with pytest.raises(InputError, match=r"latency of global memory.*--only caches"):
        time_mwp_cwp(make_launch("triad"), bare)
