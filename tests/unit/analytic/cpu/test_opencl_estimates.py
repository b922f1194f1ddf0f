import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.analytic.cpu.estimate import estimate_cpu
from kernelcast.analytic.cpu.opencl.device import read_device
from kernelcast.expressions.accesses import AccessKind, ModelledLaunch
from kernelcast.features.vector import combine
from kernelcast.records.device import Trait, TraitSource
from kernelcast.records.errors import InputError
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.machine import MachineDescription
from kernelcast.records.operations import (
    NumberClass,
    Operation,
    OperationCounts,
    OperationKind,
)
from support.accesses import make_access, record
from support.opencl_cpu import TRIAD, make_launch, make_machine

INTEL, POCL, RUSTICL = "Intel(R) OpenCL", "Portable Computing Language", "rusticl"


def test_streams_are_limited_by_memory() -> None:
    """Takes the calibrated bandwidth, and says so; names limiters and volumes as features do."""
    found = estimate_cpu(TRIAD, make_machine())
    assert found.limiter == "DRAM"
    assert found.limiters["DRAM"] == pytest.approx(12 * 2**20 / 40e9)
    assert found.seconds >= found.limiters["DRAM"]
    assert found.volumes["DRAM_to_L2"] == pytest.approx(8 * 2**20)
    values = combine(found).as_dict()
    for name in (
        "estimate_s", "dram_limiter_s", "l1_limiter_s", "chain_limiter_s", "latency_limiter_s",
        "l2_load_bytes_per_work_group", "dram_store_bytes_per_work_group", "l1_miss_ratio",
        "vector_work_items_count", "launch_limiter_s",
    ):  # fmt: skip
        assert f"analytic.{name}" in values, name
    assert "analytic.l3_limiter_s" not in values  # this machine has none
    assert values["analytic.vector_work_items_count"] == 16


def test_idle_cores_do_not_help() -> None:
    """Takes one work-group as long as two, which run side by side."""
    operations = {"fp32": 1e6}
    one, two = (
        make_launch(["a:float32:64"], loads=["a[0]"], size=(64 * n,), operations=operations)
        for n in (1, 2)
    )
    times = [estimate_cpu(launch, make_machine()).seconds for launch in (one, two)]
    assert times[0] == pytest.approx(times[1], rel=1e-3)


def make_random(buffer_bytes: int) -> ModelledLaunch:
    """Make a launch that was recorded loading from random places."""
    items, steps = 64, 20
    offsets = np.random.default_rng(1).integers(0, buffer_bytes // 4, items * steps) * 4
    return replace(
        TRIAD, accesses=(make_access("a", None, sources=("index",)),),
        buffers={"a": buffer_bytes}, recorded=record(offsets, (0,), size=items),
    )  # fmt: skip


def test_random_loads_wait_for_memory() -> None:
    """Waits longer in a large buffer, for a dozen misses at once; neither for scattered stores nor
    for lines that the work-group has touched. Addresses that were not recorded are refused."""
    machine = make_machine(width=1)
    small, large = (estimate_cpu(make_random(size), machine) for size in (2**14, 2**30))
    assert small.limiters["latency"] < large.limiters["latency"]
    assert large.limiter == "latency"
    assert large.limiters["latency"] == pytest.approx(20 * 1e-7 * 2**20 / 2 / 12, rel=0.1)
    loaded = make_random(2**20)
    assert loaded.recorded is not None
    stored = replace(loaded, accesses=(replace(loaded.accesses[0], kind=AccessKind.STORE),))
    offsets = loaded.recorded.offsets_bytes % 64
    near = replace(loaded, recorded=replace(loaded.recorded, offsets_bytes=offsets))
    waits = [
        estimate_cpu(one, make_machine()).limiters["latency"] for one in (loaded, stored, near)
    ]
    assert waits[0] > 0
    assert waits[1] == 0
    assert waits[2] < 0.1 * waits[0]
    with pytest.raises(InputError, match=r"line 3: the address of a\[i\].*--device"):
        estimate_cpu(replace(loaded, recorded=None), make_machine())


def test_barriers_and_atomics_cost_time() -> None:
    """Adds a barrier per work-item, and atomics at the calibrated rate."""
    barrier = Operation(kind=OperationKind.BARRIER)
    plain = estimate_cpu(TRIAD, make_machine()).seconds
    with_barriers = replace(TRIAD, executed=OperationCounts(operations={barrier: 10}, memory={}))
    found = estimate_cpu(with_barriers, make_machine())
    assert found.seconds == pytest.approx(plain + found.limiters["barriers"], rel=0.05)
    atomic = replace(TRIAD.accesses[0], kind=AccessKind.ATOMIC, site=7)
    operation = Operation(kind=OperationKind.ATOMIC, number=NumberClass.INTEGER, bits=32)
    launch = replace(
        TRIAD, accesses=(*TRIAD.accesses, atomic),
        executed=OperationCounts(operations={operation: 1}, memory={}),
    )  # fmt: skip
    limiters = estimate_cpu(launch, make_machine()).limiters
    assert limiters["atomics"] == pytest.approx(2**20 / 1e8)


@given(st.integers(1, 3), st.sampled_from([1, 16]))
def test_one_more_load_never_moves_less(more: int, width: int) -> None:
    """Moves no fewer bytes, and takes no less time, with more accesses."""
    loads = ["b[x]", "c[x]", "b[2*x]", "c[x+7]"]
    arrays = [f"{name}:float32:2097152" for name in "abc"]
    few, many = (make_launch(arrays, loads=loads[:n], stores=["a[x]"]) for n in (more, more + 1))
    machine = make_machine(width=width)
    less, rest = estimate_cpu(few, machine), estimate_cpu(many, machine)
    assert rest.volumes["DRAM_to_L2"] >= less.volumes["DRAM_to_L2"] * (1 - 1e-9)
    assert rest.seconds >= less.seconds * (1 - 1e-9)
    assert math.isfinite(rest.seconds)


def test_scalars_load_no_more_lanes_than_there_are() -> None:
    """Takes as long for a work-item on its own as in a vector, where loads go lane by lane."""
    machine = make_machine()
    nearest, *others = machine.caches
    slow = replace(nearest.load_bytes_per_s, value=1e8) if nearest.load_bytes_per_s else None
    machine = replace(
        machine, caches=(replace(nearest, load_bytes_per_s=slow, copy_bytes_per_s=slow), *others)
    )
    wide = make_launch(["a:float32:4096"], loads=["a[x]"], size=(4096,))
    narrow = replace(wide, ndrange=replace(wide.ndrange, local_size=(8,)))
    together, alone = (estimate_cpu(one, machine) for one in (wide, narrow))
    assert together.quantities["vector_work_items_count"] == 16
    assert alone.quantities["vector_work_items_count"] == 1
    assert alone.limiters["L1"] == pytest.approx(together.limiters["L1"])


TIMES = 1000.0


LAUNCH = make_launch(["a:float32:4096"], loads=["a[x]"], size=(4096,))


def estimate(
    machine: MachineDescription, name: str, *, branches: float = 0.0, lanes: int = 1
) -> AnalyticEstimate:
    """Estimate a launch that does nothing but call a function, or add where it has no name."""
    kind = OperationKind.SPECIAL if name else OperationKind.ADD
    one = Operation(kind=kind, number=NumberClass.FLOAT, bits=32, name=name, lanes=lanes)
    branch = Operation(kind=OperationKind.BRANCH, number=NumberClass.NONE)
    counts = OperationCounts(operations={one: TIMES, branch: branches}, memory={})
    return estimate_cpu(replace(LAUNCH, executed=counts), machine)


def of(platform: str) -> MachineDescription:
    """Describe a device of a platform, whose scalar cosine takes as long as a vector of them."""
    machine = make_machine(1 if platform == POCL else 16)
    scalar = Trait(value=8e-9, source=TraitSource.MEASURED)
    instructions = tuple(
        replace(one, completion_latency_s=dict.fromkeys((1, 2, 4), scalar))
        if one.name == "special"
        else one
        for one in machine.instructions
    )
    return replace(machine, platform=platform, instructions=instructions)


@pytest.mark.parametrize(("platform", "least", "most"), [("Somebody's", 15.9, 16.1),
                                                         (INTEL, 0.51, 1.0)])  # fmt: skip
def test_intel_has_vectors_of_sine_and_cosine_at_once(
    platform: str, least: float, most: float
) -> None:
    """Takes less for both than for two calls; an unknown runtime keeps the usual figures: a sine
    and a cosine at once are called lane by lane."""
    both, one = (estimate(of(platform), name).limiters["special"] for name in ("sincos", "cos"))
    assert least <= both / one <= most
    assert (read_device(of(platform)).functions is None) == (platform != INTEL)


def test_pocl_calls_most_functions_once_per_lane() -> None:
    """A logarithm takes in straight code, where work-items are vectors, what scalars take."""
    (log, log_alone), (exp, exp_alone) = (
        [estimate(of(POCL), name, branches=one).limiters["special"] for one in (0.0, 20.0)]
        for name in ("log", "exp")
    )
    assert log == pytest.approx(log_alone)
    assert exp < exp_alone / 2


@pytest.mark.parametrize(
    ("name", "lanes", "width"), [("", 1, 16), ("", 2, 1), ("exp", 1, 16), ("log", 1, 1)]
)
def test_pocl_makes_no_lanes_beside_vectors_and_calls(name: str, lanes: int, width: int) -> None:
    """Runs one work-item after the other where it has its own vectors, or calls functions."""
    found = estimate(of(POCL), name, lanes=lanes)
    assert found.quantities["vector_work_items_count"] == width


@pytest.mark.parametrize(("platform", "times"), [(POCL, 1), (INTEL, 1), (RUSTICL, 3)])
def test_rusticl_goes_through_what_others_jump_over(platform: str, times: float) -> None:
    """Takes as long as if all sides of conditions were executed, on that runtime alone."""
    one = Operation(kind=OperationKind.DIVIDE, number=NumberClass.FLOAT, bits=32)
    executed, all_sides = (
        OperationCounts(operations={one: count}, memory={}) for count in (TIMES, 3 * TIMES)
    )
    plain, masked = (
        estimate_cpu(replace(LAUNCH, executed=executed, unjumped=unjumped), of(platform))
        for unjumped in (executed, all_sides)
    )
    assert masked.limiters["special"] == pytest.approx(times * plain.limiters["special"])
