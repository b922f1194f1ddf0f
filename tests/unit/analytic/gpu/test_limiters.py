from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.analytic.gpu.limiters.assess import Limits, assess
from kernelcast.analytic.gpu.limiters.demands import Demands
from kernelcast.analytic.gpu.limiters.rates import FITTED, PAPER_2022, GpuRates, read_rates
from kernelcast.launches.machines import find_machine
from kernelcast.records.operations import (
    MemoryOperation,
    MemorySpace,
    NumberClass,
    Operation,
    OperationCounts,
    OperationKind,
)

V100 = find_machine("v100")
RATES: GpuRates = read_rates(V100, FITTED)
GROUPS, SIZE = 80 * 100, 1024
COPY = Demands(
    work_groups=GROUPS,
    work_group_size=SIZE,
    warps_per_work_group=32,
    resident=2,
    l1_cycles=4.0,
    half_warp_cycles=4.0,
    l2_load_bytes=8.0 * GROUPS * SIZE,
    l2_store_bytes=8.0 * GROUPS * SIZE,
    dram_load_bytes=8.0 * GROUPS * SIZE,
    dram_store_bytes=8.0 * GROUPS * SIZE,
)


def count(kind: OperationKind, times: float, bits: int = 32) -> OperationCounts:
    """Count one kind of floating-point operation."""
    one = Operation(kind=kind, number=NumberClass.FLOAT, bits=bits)
    return OperationCounts(operations={one: times}, memory={})


def test_few_resident_work_items_do_not_saturate_the_memory() -> None:
    """Follows the measured curve: an eighth of the work-items, a third of the bandwidth."""
    narrow = replace(COPY, work_groups=8 * GROUPS, work_group_size=SIZE // 8)
    slow, fast = (assess(one, RATES, FITTED).times["DRAM"] for one in (narrow, COPY))
    # 809 GB/s at 2048 work-items a unit, 426 GB/s at 256.
    assert slow / fast == pytest.approx(809 / 426, rel=0.01)


def test_l1_and_dram_add_where_loads_return_in_order() -> None:
    """Exposes a part of L1's cycles for what it has: the more, the emptier units are."""
    half = 1024 // COPY.work_group_size
    busy = replace(COPY, l1_cycles=40.0, resident=half)
    full = replace(busy, resident=2 * half)
    found = assess(busy, RATES, FITTED)
    assert assess(full, RATES, FITTED).exposed_l1_s == pytest.approx(found.exposed_l1_s / 2)
    assert assess(replace(busy, hit_share=0.0), RATES, FITTED).exposed_l1_s == 0
    overheads = sum(found.times[name] for name in ("tail", "launch", "translation"))
    expected_s = found.times["DRAM"] + found.exposed_l1_s + overheads
    assert found.seconds == pytest.approx(expected_s)
    assert found.exposed_l1_s > 0


def test_arithmetic_bounds_what_computes_enough() -> None:
    """Counts products and sums as multiply-adds: 2 x 500 at 7.07 TFlop/s without contraction."""
    demands = replace(COPY, executed=count(OperationKind.FUSED, 1000.0))
    found = assess(demands, RATES, FITTED)
    assert found.limiter == "fp32"
    assert found.times["fp32"] == pytest.approx(1000 * GROUPS * SIZE / 7.0656e12, rel=1e-3)
    assert min(found.without, key=found.without.__getitem__) == "fp32"


def test_a_partial_wave_costs_as_much_as_a_full_one() -> None:
    """Charges the tail: 81 work-groups on 80 units take as long as 160."""
    executed = count(OperationKind.FUSED, 1e5)
    pair = [
        assess(
            replace(COPY, work_groups=groups, resident=1, executed=executed,
                    dram_load_bytes=0.0, dram_store_bytes=0.0),
            RATES, FITTED,
        )
        for groups in (81, 160)
    ]  # fmt: skip
    assert pair[0].seconds == pytest.approx(pair[1].seconds, rel=0.01)
    assert pair[0].times["tail"] > pair[1].times["tail"]


def test_other_instructions_delay_what_limits() -> None:
    """Lengthens special functions by a part of what issuing loads takes."""
    roots = count(OperationKind.SPECIAL_NATIVE, 1000.0)
    load = MemoryOperation(space=MemorySpace.CONSTANT, is_store=False, bytes=4)
    quiet = replace(COPY, l1_cycles=0.0, dram_load_bytes=0.0, dram_store_bytes=0.0)
    pure, mixed = (
        assess(replace(quiet, executed=replace(roots, memory={load: times})), RATES, FITTED)
        for times in (0.0, 4000.0)
    )
    overheads = sum(pure.times[name] for name in ("tail", "launch"))
    assert pure.seconds == pytest.approx(pure.times["special"] + overheads, rel=1e-3)
    # Special functions take a slot in eight; four loads each take half of the slots.
    assert mixed.times["issue"] / mixed.times["special"] == pytest.approx(5 / 8)
    assert 1.02 * pure.seconds < mixed.seconds < 1.5 * pure.seconds
    assert mixed.without["issue"] == pytest.approx(pure.seconds)


def test_a_device_says_how_arithmetic_and_memory_overlap() -> None:
    """Takes the description's power, the constants' where it has none, and the paper's always."""
    powers = [read_rates(find_machine(name), FITTED).overlap_power for name in ("a40", "v100")]
    assert powers == [4.5, FITTED.overlap_power]
    assert read_rates(find_machine("a40"), PAPER_2022).overlap_power == PAPER_2022.overlap_power


def test_dependent_loads_wait_for_the_memory() -> None:
    """Bounds a chain of loads by its latency, whatever the bandwidth."""
    chain = replace(
        COPY,
        work_groups=1,
        work_group_size=32,
        warps_per_work_group=1,
        resident=1,
        rounds=1e4,
        l2_load_bytes=32 * 1e4 * 32,
        dram_load_bytes=64 * 1e4 * 32,
    )
    found = assess(chain, RATES, FITTED)
    latency_s = V100.memories[0].latency_s
    assert latency_s is not None
    assert found.times["latency"] == pytest.approx(1e4 * latency_s.value)
    assert found.seconds >= found.times["latency"]


def test_pages_beyond_the_translations_cost_time() -> None:
    """Adds a cost for each page that does not fit, and none where all do."""
    few, many = (assess(replace(COPY, pages=pages), RATES, FITTED) for pages in (10.0, 200.0))
    assert few.times["translation"] == 0
    assert many.seconds == pytest.approx(few.seconds + many.times["translation"])


def test_atomics_on_one_address_follow_each_other() -> None:
    """Is slower than atomics spread over memory, and says what was assumed."""
    same, spread, local = (
        assess(replace(COPY, atomics={one: 1.0}), RATES, FITTED)
        for one in ("global_same", "global_distinct", "local_distinct")
    )
    assert same.limiter == "atomics"
    assert same.times["atomics"] > spread.times["atomics"] > local.times["atomics"] > 0
    assert any("atomic_global_same_per_s" in note for note in same.notes)
    measured = replace(RATES, costs={"atomic_global_same_per_s": 1e9})
    found = assess(replace(COPY, atomics={"global_same": 1.0}), measured, FITTED)
    assert found.times["atomics"] == GROUPS * SIZE / 1e9


def test_barriers_take_time() -> None:
    """Charges each barrier of a work-group and says what was assumed."""
    barrier = Operation(kind=OperationKind.BARRIER)
    found = assess(
        replace(COPY, executed=OperationCounts(operations={barrier: 50.0}, memory={})),
        RATES, FITTED,
    )  # fmt: skip
    assert found.times["barriers"] == pytest.approx(50 * 30 / 1.38e9 * GROUPS / 160)
    assert any("barrier_s" in note for note in found.notes)


@given(
    st.integers(1, 10**7), st.integers(1, 1024), st.integers(1, 32),
    st.floats(0, 1e4), st.floats(0, 1e14), st.floats(0, 1e14), st.floats(1, 1e6),
)  # fmt: skip
def test_every_launch_has_a_positive_time(
    groups: int, size: int, resident: int, cycles: float, l2: float, dram: float, rounds: float
) -> None:
    """Is never zero, infinite or less than any limiter alone."""
    demands = Demands(
        work_groups=groups, work_group_size=size, warps_per_work_group=-(-size // 32),
        resident=resident, l1_cycles=cycles, l2_load_bytes=l2, l2_store_bytes=0.0,
        dram_load_bytes=dram, dram_store_bytes=dram / 2, rounds=rounds,
    )  # fmt: skip
    found = assess(demands, RATES, FITTED)
    assert 0 < found.seconds < float("inf")
    assert found.seconds >= max(found.times.values()) * (1 - 1e-12)
    assert found.limiter in found.times


@given(
    times=st.fixed_dictionaries(
        {name: st.floats(0.0, 10.0) for name in ("L1", "L2", "DRAM", "fp32", "tail", "launch")}
    ),
    exposed=st.floats(0.0, 5.0),
)
def test_no_other_limiter_helps_more(times: dict[str, float], exposed: float) -> None:
    """Saves most where anything saves 5 % of the time, and takes longest where nothing does."""
    limits = Limits(times=times, exposed_l1_s=exposed)
    named, without = limits.limiter, limits.without
    best = min(without.values())
    if best <= 0.95 * limits.seconds:
        assert without[named] == best
    else:
        assert times[named] == max(times.values())
