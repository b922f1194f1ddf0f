from dataclasses import replace

import pytest

from kernelcast.analytic.cpu.estimate import LevelTraffic, count_traffic
from kernelcast.analytic.cpu.opencl.core import (
    LanePattern,
    add_up,
    find_execution,
    find_patterns,
    time_core,
)
from kernelcast.analytic.cpu.opencl.device import CpuDevice, read_device
from kernelcast.expressions import Expr, Symbol, SymbolKind, floor_mod, less
from kernelcast.expressions.accesses import LoopFacts, MemoryAccess, ModelledLaunch
from kernelcast.records.device import DeviceKind, Trait, TraitSource
from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import NumberClass, Operation, OperationCounts, OperationKind
from kernelcast.records.software_counters import WarpCounters
from support.opencl_cpu import TRIAD, make_launch, make_machine

DEVICE = read_device(make_machine())
ROW = make_launch(["a:float32:1048576"], loads=["a[x]"])
NOTHING = OperationCounts(operations={}, memory={})
ADD = Operation(kind=OperationKind.ADD, number=NumberClass.FLOAT, bits=32)


def count(launch: ModelledLaunch, device: CpuDevice = DEVICE) -> dict[str, LevelTraffic]:
    patterns = find_patterns(launch, find_execution(launch, device)[0])
    return {one.name: one for one in count_traffic(launch, patterns, device)}


def test_runtimes_vectorise_whole_work_groups() -> None:
    """Runs work-items in lanes where dimension 0 is filled by them."""
    assert find_execution(TRIAD, DEVICE)[0] == 16
    narrow = replace(TRIAD, ndrange=NDRange(global_size=(1024, 1024), local_size=(8, 8)))
    assert find_execution(narrow, DEVICE)[0] == 1


def test_loop_vectorisers_take_straight_code_only() -> None:
    """Vectorises straight code, and code between barriers, but nothing that branches."""
    device = read_device(make_machine(width=1))
    branch, barrier = (Operation(kind=one) for one in (OperationKind.BRANCH, OperationKind.BARRIER))
    for operations, width in (({}, 16), ({barrier: 9.0}, 16), ({branch: 2.0, barrier: 2.0}, 1)):
        executed = OperationCounts(operations=operations, memory={})
        assert find_execution(replace(TRIAD, executed=executed), device)[0] == width


def time_of(
    launch: ModelledLaunch,
    width: int = 16,
    executed: OperationCounts = NOTHING,
    device: CpuDevice = DEVICE,
    efficiency: float = 1.0,
) -> float:
    """Give the time of a core per work-item."""
    patterns = find_patterns(launch, width)
    return add_up(time_core(executed, device, width, patterns, efficiency)[0])


def make_loop(trips: Expr, name: str = "1:line 1") -> LoopFacts:
    number = Expr.symbol(Symbol(SymbolKind.LOOP, name))
    return LoopFacts(
        name=name, line=1, condition=less(number, trips), trip_count=trips, is_exact=True
    )


def test_lanes_that_part_do_the_work_of_all() -> None:
    """Costs a vector what its longest lane needs, and one work-item what it does."""
    parted = WarpCounters(width=16, issued=10, executed=40, branches=1, divergent_branches=1)
    launch = replace(TRIAD, warps=(parted,))
    assert find_execution(launch, DEVICE)[1] == pytest.approx(0.25)
    assert find_execution(launch, read_device(make_machine(width=4)))[1] == 0.5
    narrow = replace(launch, ndrange=NDRange(global_size=(1024, 1024), local_size=(8, 8)))
    assert find_execution(narrow, DEVICE)[1] == 1.0
    executed = OperationCounts(operations={ADD: 1000}, memory={})
    together = time_of(TRIAD, executed=executed)
    fused = OperationCounts(operations={replace(ADD, kind=OperationKind.FUSED): 1000}, memory={})
    assert time_of(TRIAD, executed=fused) == pytest.approx(together)
    assert time_of(TRIAD, executed=executed, efficiency=0.5) == pytest.approx(2 * together)


def test_rows_that_fit_are_loaded_once() -> None:
    """Finds rows above and below again as long as a row of work-groups fits a cache."""
    loads = ["a[x][y]", "a[x][y-1] if y > 0", "a[x][y+1] if y < 2047"]

    def ratio(columns: int) -> tuple[float, float]:
        """Give bytes per element that L1 and L2 load."""
        launch = make_launch(
            [f"a:float64:{columns}x2048"], loads=loads, size=(columns, 2048), local=(64, 1)
        )
        moved = count(launch)
        elements = columns * 2048
        return moved["L2"].loaded_bytes / elements, moved["DRAM"].loaded_bytes / elements

    near, far = ratio(512)
    assert near == pytest.approx(8, rel=0.02)
    assert far == pytest.approx(8, rel=0.02)
    near, far = ratio(16_384)
    assert near > 20
    assert far == pytest.approx(8, rel=0.02)


@pytest.mark.parametrize(("elements", "share"), [(2**17, 0), (3 * 2**17, 0.5), (2**20, 1)])
def test_a_repeated_launch_finds_what_the_last_one_left(elements: int, share: float) -> None:
    """Loads and stores nothing beyond a cache that holds all of it, and all where half fits."""
    size = (elements,)
    own = f"a:float32:{elements}"
    moved = count(make_launch([own], loads=["a[x]"], stores=["a[x]"], size=size))["DRAM"]
    assert moved.loaded_bytes == pytest.approx(share * 4 * elements)
    assert moved.stored_bytes == pytest.approx(share * 4 * elements)


def test_loops_wait_for_their_last_result() -> None:
    """Counts a latency per operation in a loop with little else to do."""
    branch = Operation(kind=OperationKind.BRANCH)
    executed = OperationCounts(operations={ADD: 1000, branch: 1000}, memory={})
    assert time_of(TRIAD, 1, executed) == pytest.approx(1000 * 0.5e-9)


def test_what_was_loaded_is_not_loaded_again() -> None:
    """Counts two loads of one address once, unless something is stored to the buffer."""
    (once, twice), (stored, reloaded) = (
        [time_of(make_launch(["a:float32:4194304"], loads=["a[4*x]"] * times, stores=stores))
         for times in (1, 2)]
        for stores in ([], ["a[4*x]"])
    )  # fmt: skip
    assert twice == once
    assert reloaded > 1.2 * stored


def test_runtimes_that_load_lane_by_lane_do_so_whatever_the_pattern() -> None:
    """Takes as long for rows, columns, bytes and one address where loads are slow."""
    slow = replace(DEVICE.levels[0], load_s_per_byte=1e-10)
    device = replace(DEVICE, levels=(slow, *DEVICE.levels[1:]))
    told = [
        time_of(make_launch([f"a:{array}:4194304"], loads=[f"a[{load}]"]), device=device)
        for array, load in (("float32", "x"), ("float32", "4*x"), ("int8", "4*x"),
                            ("float32", "64"), ("int8", "x"))
    ]  # fmt: skip
    assert told == [pytest.approx(told[0])] * 5
    launch = make_launch(["a:int8:4194304"], loads=["a[x]"])
    four = replace(launch, accesses=(replace(launch.accesses[0], lanes=4),))
    vectors_s = time_of(four, device=device)
    assert vectors_s == pytest.approx(4 * told[0]), "a vector goes number by number"


COLUMN, UNIFORM = (
    make_launch(["a:float32:4194304"], loads=[text]).accesses[0] for text in ("a[2*x]", "a[64]")
)
OWN = Expr.symbol(Symbol(SymbolKind.LOCAL_ID, axis=0))
LOOPS = (make_loop(Expr.constant(4), "1:line 1"), make_loop(OWN + 1, "2:line 2"))


@pytest.mark.parametrize(
    ("access", "pattern"),
    [
        (ROW.accesses[0], "contiguous"),
        (UNIFORM, "uniform"),
        (COLUMN, "scattered"),
        # Lanes leave a loop of their own at different times, but not one in another loop.
        (replace(ROW.accesses[0], loops=LOOPS[1:]), "contiguous"),
        (replace(ROW.accesses[0], loops=LOOPS), "scattered"),
    ],
)
def test_tells_where_lanes_go(access: MemoryAccess, pattern: str) -> None:
    """Distinguishes lanes side by side, at one address, and anywhere; indices that pass through 32
    bits are gathered where runtimes do not see that they are neighbours."""
    launch = replace(TRIAD, accesses=(access,))
    [found] = find_patterns(launch, 16)
    assert found.lanes == LanePattern(pattern)
    narrowed = replace(launch, accesses=(replace(access, is_narrowed=True),))
    [gathered] = find_patterns(narrowed, 16, gathers_narrowed=True)
    assert gathered.lanes == ("scattered" if pattern == "contiguous" else pattern)


def test_lanes_that_may_be_left_out_cost_more_without_mask_registers() -> None:
    """Asks each lane where registers have no masks."""
    plain = make_launch(["a:float32:4194304"], loads=["a[4*x]"])
    masked = make_launch(["a:float32:4194304"], loads=["a[4*x] if x > 5"])
    narrow = replace(DEVICE, lanes=8, width=8)
    slow, quick = (time_of(launch, 8, device=narrow) for launch in (masked, plain))
    assert slow > 2 * quick
    assert time_of(masked) <= time_of(plain)


def test_addresses_need_a_value_only_where_they_are_executed() -> None:
    """Evaluates a remainder by a number that is 0 where a guard forbids the access."""
    [access] = ROW.accesses
    guarded = replace(access, offset_bytes=4 * floor_mod(64, OWN), guard=less(0, OWN))
    launch = replace(TRIAD, accesses=(guarded,), executed=NOTHING)
    [found] = find_patterns(launch, 1)
    assert found.executions == pytest.approx(63 / 64)


def test_reads_lanes_and_width_from_rates() -> None:
    """Compares vectors with scalars, and work-items together with one alone."""
    assert (DEVICE.cores, DEVICE.lanes, DEVICE.width) == (2, 16, 16)
    assert DEVICE.lanes_of(64) == 8
    assert read_device(make_machine(width=1)).width == 1
    assert DEVICE.add_s == pytest.approx(0.5 / 4e9)


def test_registers_have_masks_where_sixteen_work_items_share_one() -> None:
    """Knows registers of 512 bits also where a core adds their halves one after the other."""
    machine = make_machine()
    fp32 = machine.instruction("fp32")
    assert fp32 is not None
    slow = {chains: Trait(value=one.value / 2, source=TraitSource.MEASURED)
            for chains, one in fp32.completion_latency_s.items()}  # fmt: skip
    device = read_device(
        replace(machine, instructions=(replace(fp32, completion_latency_s=slow),),
                warp_width=Trait(value=16, source=TraitSource.MEASURED))
    )  # fmt: skip
    assert (device.lanes, device.width, device.has_masks) == (8, 16, True)
    assert not read_device(make_machine(width=8)).has_masks


def test_counts_no_more_cores_than_the_peak_needs() -> None:
    """Takes what is reported, unless fewer cores of the measured speed make up the peak."""
    machine = make_machine()
    units = Trait(value=8, source=TraitSource.REPORTED)
    assert read_device(replace(machine, compute_units=units)).cores < 8


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"instructions": ()}, "calibrate --only instructions-fp32"),
        ({"caches": ()}, "calibrate --only caches"),
        ({"memories": ()}, "calibrate --only bandwidth"),
        ({"kind": DeviceKind.GPU}, "the CPU model needs a CPU"),
    ],
)
def test_names_what_is_missing(change: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_device(replace(make_machine(), **change))  # type: ignore[arg-type]
