import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.analytic.gpu.estimate import (
    LimiterModel,
    Limits,
    count_atomics,
    count_local_ways,
    count_rounds,
    count_slots,
    estimate_gpu,
)
from kernelcast.analytic.gpu.machine import FITTED, PAPER_2022, GpuRates, Occupancy, read_rates
from kernelcast.analytic.gpu.volumes import GpuVolumes, L1Volumes, WaveVolumes
from kernelcast.expressions import Expr, Symbol, SymbolKind
from kernelcast.expressions.accesses import AccessKind, ModelledLaunch
from kernelcast.features.vector import combine
from kernelcast.launches.machines import find_machine
from kernelcast.records.device import DeviceKind, Trait, TraitSource
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import check_name
from kernelcast.records.machine import CacheFacts, MachineDescription, MemoryFacts
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import (
    MemoryOperation,
    MemorySpace,
    NumberClass,
    Operation,
    OperationCounts,
    OperationKind,
)
from support.accesses import K, X, Y, make_access, make_launch, make_loop

V100 = find_machine("v100")
RATES: GpuRates = read_rates(V100, FITTED)
GROUPS, SIZE = 80 * 100, 1024
NOTHING = OperationCounts(operations={}, memory={})


def assess(  # noqa: PLR0913 - what differs from the copy is named
    *,
    groups: int = GROUPS,
    size: int = SIZE,
    resident: int = 2,
    cycles: float = 4.0,
    l2_load: float = 8.0,
    dram_load: float = 8.0,
    dram_store: float = 8.0,
    hit_share: float = 1.0,
    pages: float = 0.0,
    rounds: float = 0.0,
    executed: OperationCounts = NOTHING,
    atomics: dict[str, float] | None = None,
    rates: GpuRates = RATES,
) -> Limits:
    """Assess a copy of doubles, or what differs from one; bytes and atomics are per work-item."""
    requested = size * l2_load / (1 - hit_share) if hit_share < 1 else math.inf
    l1 = L1Volumes(
        warp_cycles=cycles, half_warp_cycles=cycles, load_lines=0.0, load_requests=1.0,
        store_requests=1.0, requested_bytes=requested, allocated_bytes=0.0,
        compulsory_bytes=size * l2_load, reloads=(), stored_bytes=size * dram_store,
    )  # fmt: skip
    wave = WaveVolumes(
        work_groups=groups, waves=1.0, row_load_bytes=groups * size * dram_load,
        unique_store_bytes=groups * size * dram_store, overlaps=(), oversubscription=0.0,
        skew_oversubscription=0.0, capacity_load_bytes=0.0, partial_store_bytes=0.0,
        tlb_pages=math.inf,
    )  # fmt: skip
    occupancy = Occupancy(work_groups=resident, warps_per_work_group=-(-size // 32))
    volumes = GpuVolumes(
        work_groups=groups, work_group_size=size, updates=1, occupancy=occupancy, l1=l1, wave=wave,
        kept_share=0.0, behind_share=0.0, rates="", group_pages=pages,
    )  # fmt: skip
    names = ("fp32", "fp64", "int", "special", "issued", "wavefronts", "latency")
    work = {**dict.fromkeys(names, 0.0), "rounds": rounds} if rounds else None
    launch = make_launch(items=(groups * size,), local=(size,), executed=executed, work=work)
    model = LimiterModel(launch, volumes, rates)
    model.atomics = atomics or {}
    return model.assess()


def count(kind: OperationKind, times: float, bits: int = 32) -> OperationCounts:
    one = Operation(kind=kind, number=NumberClass.FLOAT, bits=bits)
    return OperationCounts(operations={one: times}, memory={})


def test_few_resident_work_items_do_not_saturate_the_memory() -> None:
    """Follows the measured curve: an eighth of the work-items, a third of the bandwidth."""
    slow, fast = (
        assess(groups=parts * GROUPS, size=SIZE // parts).times["DRAM"] for parts in (8, 1)
    )
    # 809 GB/s at 2048 work-items a unit, 426 GB/s at 256.
    assert slow / fast == pytest.approx(809 / 426, rel=0.01)


def test_l1_and_dram_add_where_loads_return_in_order() -> None:
    """Exposes a part of L1's cycles for what it has: the more, the emptier units are."""
    found, full = (assess(cycles=40.0, resident=resident) for resident in (1, 2))
    assert full.exposed_l1_s == pytest.approx(found.exposed_l1_s / 2)
    assert assess(cycles=40.0, resident=1, hit_share=0.0).exposed_l1_s == 0
    overheads = sum(found.times[name] for name in ("tail", "launch", "translation"))
    expected_s = found.times["DRAM"] + found.exposed_l1_s + overheads
    assert found.seconds == pytest.approx(expected_s)
    assert found.exposed_l1_s > 0


def test_arithmetic_bounds_what_computes_enough() -> None:
    """Counts products and sums as multiply-adds: 2 x 500 at 7.07 TFlop/s without contraction."""
    found = assess(executed=count(OperationKind.FUSED, 1000.0))
    assert found.limiter == "fp32"
    assert found.times["fp32"] == pytest.approx(1000 * GROUPS * SIZE / 7.0656e12, rel=1e-3)
    assert min(found.without, key=found.without.__getitem__) == "fp32"


def test_a_partial_wave_costs_as_much_as_a_full_one() -> None:
    """Charges the tail: 81 work-groups on 80 units take as long as 160."""
    executed = count(OperationKind.FUSED, 1e5)
    pair = [
        assess(groups=groups, resident=1, executed=executed, dram_load=0.0, dram_store=0.0)
        for groups in (81, 160)
    ]
    assert pair[0].seconds == pytest.approx(pair[1].seconds, rel=0.01)
    assert pair[0].times["tail"] > pair[1].times["tail"]


def test_other_instructions_delay_what_limits() -> None:
    """Lengthens special functions by a part of what issuing loads takes."""
    roots = count(OperationKind.SPECIAL_NATIVE, 1000.0)
    load = MemoryOperation(space=MemorySpace.CONSTANT, is_store=False, bytes=4)
    quiet: dict[str, Any] = {"cycles": 0.0, "dram_load": 0.0, "dram_store": 0.0}
    pure, mixed = (
        assess(**quiet, executed=replace(roots, memory={load: times})) for times in (0.0, 4000.0)
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
    found = assess(
        groups=1, size=32, resident=1, rounds=1e4, l2_load=32 * 1e4, dram_load=64 * 1e4,
        dram_store=8.0 * GROUPS * SIZE / 32,
    )  # fmt: skip
    latency_s = V100.memories[0].latency_s
    assert latency_s is not None
    assert found.times["latency"] == pytest.approx(1e4 * latency_s.value)
    assert found.seconds >= found.times["latency"]


def test_pages_beyond_the_translations_cost_time() -> None:
    """Adds a cost for each page that does not fit, and none where all do."""
    few, many = (assess(pages=pages) for pages in (10.0, 200.0))
    assert few.times["translation"] == 0
    assert many.seconds == pytest.approx(few.seconds + many.times["translation"])


def test_atomics_on_one_address_follow_each_other() -> None:
    """Is slower than atomics spread over memory, and says what was assumed."""
    same, spread, local = (
        assess(atomics={one: 1.0}) for one in ("global_same", "global_distinct", "local_distinct")
    )
    assert same.limiter == "atomics"
    assert same.times["atomics"] > spread.times["atomics"] > local.times["atomics"] > 0
    assert any("atomic_global_same_per_s" in note for note in same.notes)
    measured = replace(RATES, costs={"atomic_global_same_per_s": 1e9})
    found = assess(atomics={"global_same": 1.0}, rates=measured)
    assert found.times["atomics"] == GROUPS * SIZE / 1e9


def test_barriers_take_time() -> None:
    """Charges each barrier of a work-group and says what was assumed."""
    barrier = Operation(kind=OperationKind.BARRIER)
    found = assess(executed=OperationCounts(operations={barrier: 50.0}, memory={}))
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
    found = assess(
        groups=groups, size=size, resident=resident, cycles=cycles, rounds=rounds,
        l2_load=l2 / groups / size, dram_load=dram / groups / size,
        dram_store=dram / 2 / groups / size,
    )  # fmt: skip
    assert 0 < found.seconds < float("inf")
    assert found.seconds >= max(found.times.values()) * (1 - 1e-12)
    assert found.limiter in found.times


def known(value: Any) -> Trait[Any]:  # noqa: ANN401 - int or float
    return Trait(value=value, source=TraitSource.MEASURED)


BARE = MachineDescription(
    id="bare",
    name="bare GPU",
    kind=DeviceKind.GPU,
    compute_units=known(10),
    warp_width=known(32),
    clock_hz=known(1e9),
    caches=tuple(
        CacheFacts(name=name, size_bytes=known(size))
        for name, size in (("L1", 1 << 17), ("L2", 1 << 22))
    ),
    memories=(MemoryFacts(space="global", copy_bytes_per_s=known(1e11), latency_s=known(4e-7)),),
)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"compute_units": None}, "compute_units"),
        ({"clock_hz": None}, "--only clock"),
        ({"memories": ()}, "--only bandwidth"),
        ({"warp_width": None}, "warp_width"),
    ],
)
def test_a_missing_number_is_named_with_its_command(change: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_rates(replace(BARE, **change), FITTED)  # type: ignore[arg-type]


def test_what_is_assumed_is_noted() -> None:
    notes = " ".join(read_rates(BARE, FITTED).notes)
    for words in ("bandwidth of L2", "Little's law", "launch_s", "translation"):
        assert words in notes


@given(st.floats(0.1, 5000), st.floats(0.1, 5000))
def test_more_in_flight_is_never_slower(first: float, second: float) -> None:
    """Grows with concurrency where the measured points do."""
    points = (16.0, 64.0, 256.0), (1e9, 3e9, 8e9)
    rates = replace(RATES, dram_load=points, dram_copy=points)
    low, high = (rates.dram_bytes_per_s(items, 0.5) for items in sorted((first, second)))
    assert low <= high * (1 + 1e-12)


LANE, ROW = (Expr.symbol(Symbol(SymbolKind.LOCAL_ID, axis=axis)) for axis in (0, 1))


@pytest.mark.parametrize(
    ("offset", "ways"),
    [
        (4 * LANE, 1), (8 * LANE, 2), (128 * LANE, 32), (132 * LANE, 1), (Expr.constant(0), 1),
        (4 * ROW, 1), (None, 1),
    ],
)  # fmt: skip
def test_local_memory_has_32_banks_of_4_bytes(offset: Expr | None, ways: float) -> None:
    """Counts different words in one bank; the same word is broadcast, padding removes conflicts."""
    access = make_access("a", offset, space=MemorySpace.LOCAL)
    launch = make_launch(access, items=(64, 64), local=(32, 8))
    assert count_local_ways(launch, 32) == ways


def test_loads_of_a_chain_wait_for_each_other() -> None:
    """Waits once for all loads of straight code, once more for those whose address was loaded, and
    each time where a load gives the next one's address, also by another load."""
    first, second = make_access("a", 4 * LANE), make_access("b", None, sources=("a",))
    third = make_access("c", None, sources=("b",))
    assert count_rounds((), 0) == 1
    assert count_rounds((first,), 1) == 1
    assert count_rounds((first, second), 2) == 2
    assert count_rounds((first, second, third), 3) == 3
    endless: dict[str, Any] = {"loops": (replace(make_loop(1), trip_count=None),)}
    one = make_access("next", None, sources=("next",), **endless)
    assert count_rounds([one], 220.0) == 220
    to, back = (make_access(name, None, sources=(by,), **endless) for name, by in ("ab", "ba"))
    assert count_rounds([to, back], 200.0) == 200
    gather = make_access("x", None, sources=("column",), **endless)
    column = make_access("column", LANE, **endless)
    assert count_rounds([gather, column], 200.0) == 50


def make_operation(
    kind: OperationKind,
    number: NumberClass = NumberClass.FLOAT,
    bits: int = 32,
    **more: Any,  # noqa: ANN401 - fields
) -> Operation:
    return Operation(kind=kind, number=number, bits=bits, **more)


def test_widths_and_kinds_are_told_apart() -> None:
    """Weighs vectors by lanes, quotients and roots by what they cost."""
    slots = count_slots(OperationCounts(
        operations={
            make_operation(OperationKind.ADD, lanes=4): 3.0,
            make_operation(OperationKind.SPECIAL, bits=64, name="sqrt"): 1.0,
            make_operation(OperationKind.DIVIDE, bits=64): 2.0,
            make_operation(OperationKind.ADD, NumberClass.INTEGER): 5.0,
            make_operation(OperationKind.ADD, NumberClass.INTEGER, 64): 5.0,
            make_operation(OperationKind.SPECIAL_NATIVE, name="native_sin"): 7.0,
            make_operation(OperationKind.ADDRESS, NumberClass.NONE, 0): 100.0,
        },
        memory={},
    ))  # fmt: skip
    assert slots["fp64"] == pytest.approx(9.6 + 2 * 7.5)
    assert (slots["fp32"], slots["int"], slots["special"]) == (12, 15, 7)


def test_atomics_are_told_apart_by_their_place() -> None:
    """Sorts a histogram's atomics: many on local memory, few on global memory."""
    sites = [
        make_access("bins", offset, AccessKind.ATOMIC, text=text, space=space)
        for text, space, offset in (
            ("atomic_inc(&bins[v])", MemorySpace.LOCAL, None),
            ("atomic_add(&counts[i], n)", MemorySpace.GLOBAL, 4 * LANE),
            ("atomic_add(&total[0], n)", MemorySpace.GLOBAL, Expr.constant(0)),
        )
    ]
    counts = OperationCounts(
        operations={
            Operation(kind=OperationKind.ATOMIC, name="atomic_inc"): 100.0,
            Operation(kind=OperationKind.ATOMIC, name="atomic_add"): 4.0,
            make_operation(OperationKind.ADD, NumberClass.INTEGER): 7.0,
        },
        memory={},
    )
    assert count_atomics(sites, counts) == {
        "global_same": 2.0, "global_distinct": 2.0, "local_distinct": 100.0,
    }  # fmt: skip
    assert count_atomics((), counts) == {"global_distinct": 104.0}


def test_loop_counters_are_shared_by_unrolled_iterations() -> None:
    """Leaves one step and one comparison of four, and integer work that is no loop's."""
    kinds = {OperationKind.ADD: 100.0, OperationKind.COMPARE: 90.0, OperationKind.LOGIC: 7.0}
    counts = {make_operation(kind, NumberClass.INTEGER): kinds[kind] for kind in kinds}
    branch = {Operation(kind=OperationKind.BRANCH): 80.0}
    plain, looped = (
        count_slots(OperationCounts(operations=one, memory={}))["int"]
        for one in (counts, counts | branch)
    )
    assert (plain, looped) == (197, 197 - 2 * 60)


SIDE = 1024


def make_copy(items: int = 2**26) -> ModelledLaunch:
    return make_launch(
        make_access("a", 4 * X), make_access("b", 4 * X, AccessKind.STORE),
        items=(items,), local=(256,), registers=16,
    )  # fmt: skip


def make_product() -> ModelledLaunch:
    """Make the plain product of two square matrices."""
    one = Operation(kind=OperationKind.FUSED, number=NumberClass.FLOAT, bits=32)
    return make_launch(
        make_access("a", 4 * (SIDE * Y + K), trips=SIDE),
        make_access("b", 4 * (SIDE * K + X), trips=SIDE),
        make_access("c", 4 * (SIDE * Y + X), AccessKind.STORE),
        items=(SIDE, SIDE), local=(16, 16),
        executed=OperationCounts(operations={one: SIDE}, memory={}),
    )  # fmt: skip


def test_a_copy_is_bound_by_the_memory() -> None:
    """Moves each byte once, at nearly the measured bandwidth."""
    found = estimate_gpu(make_copy(), V100)
    assert (found.model, found.machine) == ("gpu", "v100")
    assert found.limiter == "DRAM"
    assert found.volumes["DRAM_to_L2"] == pytest.approx(4 * 2**26, rel=0.02)
    assert 8 * 2**26 / 0.85e12 < found.seconds < 8 * 2**26 / 0.7e12


# GB/s of gpu-small-kernels, which scales doubles: another kernel of as many bytes in four-byte
# elements has more work-groups, so that only sizes are shown at which memory decides.
@pytest.mark.parametrize(
    ("machine", "mega_bytes", "slowest", "fastest"),
    [
        ("a40", 3, 800, 2000),  # half of L2
        ("a40", 50, 550, 700),  # beyond L2
        ("rx-6900-xt", 50, 1100, 1900),  # in the cache behind L2
        ("rx-6900-xt", 400, 430, 500),  # beyond all caches
    ],
)
def test_a_repeated_launch_finds_what_caches_have_kept(
    machine: str, mega_bytes: int, slowest: float, fastest: float
) -> None:
    """Takes as long as the farthest cache that holds its data, or as the memory."""
    items = mega_bytes * 10**6 // 8 // 256 * 256
    found = estimate_gpu(make_copy(items), find_machine(machine))
    assert slowest < 8e-9 * items / found.seconds < fastest


def test_small_work_groups_wait_for_their_start() -> None:
    """Assumes a cost of a start by the architecture where no description has one."""
    machine = find_machine("l40")
    ndrange = NDRange(global_size=(2**20,), local_size=(32,))
    found = estimate_gpu(replace(make_copy(2**20), ndrange=ndrange), machine)
    assert "work_group_dispatch_s" not in machine.costs
    assert found.limiter == "dispatch"
    assert found.seconds > 2**20 / 32 * 0.5e-9


def test_a_matrix_product_is_not_bound_by_the_memory() -> None:
    """Reads each row and column many times, from caches; fills the analytic features."""
    found = estimate_gpu(make_product(), V100)
    assert found.limiter in {"L1", "L2", "fp32", "latency"}
    flops = 2.0 * SIDE**3
    assert 0.3e12 < flops / found.seconds < 14.1e12
    for name, value in found.quantities.items():
        check_name(f"analytic.{name}")
        assert math.isfinite(value), name
    for name in found.limiters:
        assert found.quantities[f"without_{name.lower()}_s"] <= found.seconds
    vector = combine(found).as_dict()
    assert vector["analytic.estimate_s"] == found.seconds
    assert vector["analytic.dram_limiter_s"] == found.limiters["DRAM"]
    assert 0 < vector["analytic.largest_limiter_ratio"] <= 1
    assert vector["analytic.l1_miss_ratio"] > 0
    assert "analytic.special_limiter_s" not in vector
    assert "analytic.l1_miss_ratio" in combine(estimate_gpu(make_copy(), V100)).absent
