from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.launches.machines import find_machine, read_machine
from kernelcast.launches.modelling.estimating import estimate_analytically
from kernelcast.launches.modelling.launches import model_launch
from kernelcast.launches.modelling.mwp_cwp import add_mwp_cwp, estimate_mwp_cwp
from kernelcast.records.errors import InputError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.software_counters import SoftwareCounters, WarpCounters
from support.problems import read_example

ROOT = Path(__file__).resolve().parents[3]
CALIBRATION = ROOT / "benchmarks/results/calibration"
V100 = find_machine("v100")
CPU = read_machine(CALIBRATION / "pocl-skylake-avx512-amd-5d25.yaml")
INTEL = read_machine(CALIBRATION / "intel-amd-epyc-c960.yaml")


def make_launch(name: str, **parameters: float) -> ModelledLaunch:
    """Model an example's launch from its source."""
    return model_launch(read_example(name, **parameters))


@pytest.mark.parametrize("machine", [V100, CPU, INTEL], ids=lambda one: one.id)
def test_streaming_takes_bytes_over_bandwidth(machine: MachineDescription) -> None:
    """Is bound by memory for a triad, near the time that its bytes take."""
    launch = make_launch("triad")
    found = estimate_mwp_cwp(launch, machine)
    memory = machine.memory("global")
    assert memory is not None
    usual = median(one.value for one in memory.load_bytes_per_s.values())
    moved = 12 * launch.ndrange.work_item_count
    assert found.limiter == "memory"
    assert found.seconds == pytest.approx(moved / usual, rel=0.25)


def test_scattered_accesses_take_longer() -> None:
    """Counts accesses of a row by column as uncoalesced, with one transaction each; says where the
    published rule takes another case."""
    plain = estimate_mwp_cwp(make_launch("triad"), V100)
    assert plain.quantities["uncoalesced_count"] == 0
    assert plain.quantities["coalesced_count"] == 3
    assert plain.quantities["published_rule_s"] == plain.quantities["by_parallelism_s"]
    gathered = estimate_mwp_cwp(make_launch("pointer_chase"), V100)
    assert gathered.quantities["uncoalesced_count"] > 0
    assert gathered.quantities["mem_latency_s"] > plain.quantities["mem_latency_s"]
    computing = estimate_mwp_cwp(make_launch("nbody"), V100)
    assert computing.quantities["published_rule_s"] < computing.seconds
    assert any("published rule" in note for note in computing.notes)


def test_counters_tell_what_warps_issue() -> None:
    """Takes the issued instructions of warps of the machine's width, divergence included."""
    launch = make_launch("mandelbrot")
    found = estimate_mwp_cwp(launch, V100)
    instructions = sum(found.quantities[f"{one}_count"] for one in ("computation", "coalesced"))
    warp = WarpCounters(
        width=32, issued=3 * instructions, executed=0, branches=0, divergent_branches=0
    )
    counters = SoftwareCounters(
        work_groups=1, work_items=1, executed=launch.executed, block_counts=(), warps=(warp,),
        loops=(), patterns=(), is_exact=True,
    )  # fmt: skip
    diverging = estimate_mwp_cwp(launch, V100, counters=counters)
    added = diverging.quantities["computation_count"] - found.quantities["computation_count"]
    assert added == pytest.approx(2 * instructions, rel=0.01)
    assert diverging.limiters["compute"] > 2 * found.limiters["compute"]


def test_stands_beside_another_answer() -> None:
    """Adds its seconds to another model's quantities, or says what to measure for them."""
    launch = make_launch("triad")
    other = estimate_analytically(launch, V100)
    both = add_mwp_cwp(other, launch, V100)
    assert both.seconds == other.seconds
    assert both.quantities["mwp_cwp_s"] == estimate_mwp_cwp(launch, V100).seconds
    bare = replace(V100, memories=tuple(replace(one, latency_s=None) for one in V100.memories))
    without = add_mwp_cwp(other, launch, bare)
    assert "mwp_cwp_s" not in without.quantities
    assert any("no MWP-CWP estimate" in note for note in without.notes)
    with pytest.raises(InputError, match=r"latency of global memory.*--only caches"):
        estimate_mwp_cwp(launch, bare)
