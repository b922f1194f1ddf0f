import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.analytic.cpu.estimate import estimate_cpu
from kernelcast.analytic.cpu.opencl.constants import FITTED
from kernelcast.analytic.cpu.opencl.core import time_core
from kernelcast.analytic.cpu.opencl.device import CpuDevice, read_device
from kernelcast.analytic.cpu.opencl.execution import Execution, find_execution
from kernelcast.analytic.cpu.opencl.patterns import LanePattern, find_patterns
from kernelcast.analytic.cpu.opencl.traffic import LevelTraffic, count_traffic
from kernelcast.features.vector.analytic import FEATURES
from kernelcast.features.written_accesses.accesses import read_access
from kernelcast.features.written_accesses.arrays import read_array
from kernelcast.features.written_accesses.kernel import WrittenKernel
from kernelcast.predictor.modelling.launches import model_written
from kernelcast.records.accesses import AccessKind, AddressPattern, MemoryAccess
from kernelcast.records.conditions import less
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import InputError
from kernelcast.records.machine import (
    CacheFacts,
    InstructionFacts,
    MachineDescription,
    MemoryFacts,
)
from kernelcast.records.modelled_launch import ModelledLaunch
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import (
    MemoryOperation,
    MemorySpace,
    NumberClass,
    Operation,
    OperationCounts,
    OperationKind,
)
from kernelcast.records.quasi_affine import Expr, Symbol, SymbolKind, floor_mod
from kernelcast.records.recorded_addresses import RecordedAddresses
from kernelcast.records.traits import Trait, TraitSource

ONE_AFTER_THE_OTHER = Execution(width=1, reason="a test")
BY_SIXTEEN = Execution(width=16, reason="a test")


def trait(value: float) -> Trait[float]:
    """Give a measured number."""
    return Trait(value=value, source=TraitSource.MEASURED)


def whole(value: int) -> Trait[int]:
    """Give a measured whole number."""
    return Trait(value=value, source=TraitSource.MEASURED)


def make_cache(name: str, size: int, load: float) -> CacheFacts:
    """Describe a cache of two cores."""
    return CacheFacts(
        name=name, size_bytes=whole(size), line_bytes=whole(64), shared_by=whole(1),
        latency_s=trait(1e-9), load_bytes_per_s=trait(load), copy_bytes_per_s=trait(load),
    )  # fmt: skip


def make_instruction(name: str, peak: float, width: int) -> InstructionFacts:
    """Describe instructions of 2 cycles at 4 GHz that a runtime issues for so many work-items."""
    latency = {chains: trait(0.5e-9 / chains) for chains in (1, 2, 4)}
    issue = {chains: trait(0.5e-9 / chains / width) for chains in (1, 2, 4)}
    return InstructionFacts(
        name=name, peak_per_s=trait(peak), completion_latency_s=latency, issue_latency_s=issue
    )


def make_machine(width: int = 16) -> MachineDescription:
    """Describe two cores with 16 lanes of 32 bits, and a runtime that vectorises or does not."""
    rates = {
        "fp32": 256e9, "fp32_fma": 512e9, "fp64": 128e9, "fp64_fma": 256e9, "int32": 512e9,
        "special": 4e9, "native_special": 8e9,
    }  # fmt: skip
    return MachineDescription(
        id="two-cores",
        name="Two cores",
        kind=DeviceKind.CPU,
        compute_units=whole(2),
        instructions=tuple(make_instruction(name, rate, width) for name, rate in rates.items()),
        caches=(make_cache("L1", 2**15, 512e9), make_cache("L2", 2**20, 256e9)),
        memories=(
            MemoryFacts(
                space="global", load_bytes_per_s={4: trait(40e9)}, copy_bytes_per_s=trait(40e9),
                latency_s=trait(1e-7),
            ),
        ),
        costs={
            "launch_s": trait(5e-6), "work_group_dispatch_s": trait(1e-9), "barrier_s": trait(1e-9),
            "atomic_local_distinct_per_s": trait(1e9), "atomic_global_distinct_per_s": trait(1e8),
        },
    )  # fmt: skip


DEVICE = read_device(make_machine())


def make_launch(
    arrays: Sequence[str],
    *,
    loads: Sequence[str] = (),
    stores: Sequence[str] = (),
    size: tuple[int, ...] = (2**20,),
    local: tuple[int, ...] = (64,),
    operations: Mapping[str, float] | None = None,
) -> ModelledLaunch:
    """Make a launch of accesses as text."""
    read = {one.name: one for one in (read_array(text) for text in arrays)}
    accesses: list[MemoryAccess] = []
    for kind, texts in ((AccessKind.LOAD, loads), (AccessKind.STORE, stores)):
        for text in texts:
            accesses.append(read_access(text, read, kind=kind, site=len(accesses)))
    kernel = WrittenKernel(
        name="test", arrays=tuple(read.values()), accesses=tuple(accesses),
        operations=operations or {},
    )  # fmt: skip
    return model_written(kernel).launch(NDRange(global_size=size, local_size=local))


def count(launch: ModelledLaunch, device: CpuDevice = DEVICE) -> dict[str, LevelTraffic]:
    """Count a launch's traffic by level."""
    execution = find_execution(launch, device)
    found = count_traffic(launch, device, execution, find_patterns(launch, execution))
    return {one.name: one for one in found}


TRIAD = make_launch(
    [f"{name}:float32:1048576" for name in "abc"], loads=["b[x]", "c[x]"], stores=["a[x]"]
)


def test_reads_lanes_and_width_from_rates() -> None:
    """Compares vectors with scalars, and work-items together with one alone."""
    assert (DEVICE.cores, DEVICE.lanes, DEVICE.width) == (2, 16, 16)
    assert DEVICE.lanes_of(64) == 8
    assert read_device(make_machine(width=1)).width == 1
    assert DEVICE.add_s == pytest.approx(0.5 / 4e9)


def test_needs_no_clock() -> None:
    """Reads a machine whose clock nobody could measure."""
    assert make_machine().clock_hz is None
    assert estimate_cpu(TRIAD, make_machine()).seconds > 0


def test_names_what_is_missing() -> None:
    """Says which number is missing, and which command measures it."""
    machine = make_machine()
    with pytest.raises(InputError, match="calibrate --only instructions-fp32"):
        read_device(replace(machine, instructions=()))
    with pytest.raises(InputError, match="calibrate --only caches"):
        read_device(replace(machine, caches=()))
    with pytest.raises(InputError, match="calibrate --only bandwidth"):
        read_device(replace(machine, memories=()))
    with pytest.raises(InputError, match="the CPU model needs a CPU"):
        read_device(replace(machine, kind=DeviceKind.GPU))


def test_runtimes_vectorise_whole_work_groups() -> None:
    """Runs work-items in lanes where dimension 0 is filled by them."""
    assert find_execution(TRIAD, DEVICE).width == 16
    narrow = replace(TRIAD, ndrange=NDRange(global_size=(1024, 1024), local_size=(8, 8)))
    assert find_execution(narrow, DEVICE).width == 1


def test_loop_vectorisers_take_straight_code_only() -> None:
    """Vectorises straight code, and code between barriers, but no loop within a work-item."""
    device = read_device(make_machine(width=1))
    branch, barrier = (Operation(kind=one) for one in (OperationKind.BRANCH, OperationKind.BARRIER))

    def width(**counts: float) -> int:
        operations = {branch: counts.get("branches", 0.0), barrier: counts.get("barriers", 0.0)}
        executed = OperationCounts(operations=operations, memory={})
        return find_execution(replace(TRIAD, executed=executed), device).width

    assert width() == 16
    assert width(branches=100) == 1
    assert width(branches=100, barriers=100) == 16


def test_explicit_vectors_that_fill_registers_stay_as_they_are() -> None:
    """Runs work-items one after the other where each one fills the vector unit."""
    wide = Operation(kind=OperationKind.ADD, number=NumberClass.FLOAT, bits=64, lanes=8)
    executed = OperationCounts(operations={wide: 10}, memory={})
    assert find_execution(replace(TRIAD, executed=executed), DEVICE).width == 1


def test_streams_move_each_byte_once() -> None:
    """Loads two arrays and stores one, over every boundary."""
    moved = count(TRIAD)
    for level in ("L2", "DRAM"):
        assert moved[level].loaded_bytes == pytest.approx(8 * 2**20)
        assert moved[level].stored_bytes == pytest.approx(4 * 2**20)


@given(st.sampled_from([64, 128, 256]), st.sampled_from([4, 8]))
def test_wider_elements_move_more(local: int, factor: int) -> None:
    """Doubles what is moved when elements are twice as wide."""
    bits = 8 * factor
    launches = [
        make_launch([f"a:float{one}:1048576"], loads=["a[x]"], local=(local,)) for one in (bits, 32)
    ]
    wide, narrow = (count(one)["DRAM"].loaded_bytes for one in launches)
    assert wide == pytest.approx(factor / 4 * narrow)


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


def test_stores_with_gaps_load_their_lines_first() -> None:
    """Loads a line that is written in part only."""
    dense = make_launch(["a:float32:1048576"], stores=["a[x]"])
    sparse = make_launch(["a:float32:16777216"], stores=["a[16*x]"])
    assert count(dense)["DRAM"].loaded_bytes == 0
    moved = count(sparse)["DRAM"]
    assert moved.loaded_bytes == pytest.approx(moved.stored_bytes)
    assert moved.stored_bytes == pytest.approx(64 * 2**20)


def test_data_that_fits_a_cache_is_loaded_once() -> None:
    """Bounds traffic by what there is where all of it fits."""
    again = make_launch(["a:float32:4096", "b:float32:1048576"], loads=["a[x]"], size=(4096,))
    assert count(again)["DRAM"].loaded_bytes == pytest.approx(4 * 4096)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("a[x]", "contiguous"),
        ("a[64]", "uniform"),
        ("a[2*x]", "scattered"),
    ],
)
def test_tells_where_lanes_go(text: str, pattern: str) -> None:
    """Distinguishes lanes side by side, at one address, and anywhere."""
    launch = make_launch(["a:float32:4194304"], loads=[text])
    [found] = find_patterns(launch, BY_SIXTEEN)
    assert found.lanes == LanePattern(pattern)


def time_of(launch: ModelledLaunch, execution: Execution, *parts: OperationCounts) -> float:
    """Give the time of a core per work-item, with other counts where given."""
    counts = parts[0] if parts else launch.executed
    patterns = find_patterns(launch, execution)
    return time_core(counts, DEVICE, execution, patterns, FITTED).seconds


def test_arithmetic_takes_the_calibrated_rate() -> None:
    """Executes vector operations at the peak rate of a core."""
    add = Operation(kind=OperationKind.ADD, number=NumberClass.FLOAT, bits=32)
    executed = OperationCounts(operations={add: 1000}, memory={})
    assert time_of(TRIAD, BY_SIXTEEN, executed) == pytest.approx(1000 / 128e9)
    assert time_of(TRIAD, ONE_AFTER_THE_OTHER, executed) == pytest.approx(16 * 1000 / 128e9)


def test_loops_wait_for_their_last_result() -> None:
    """Counts a latency per operation in a loop with little else to do."""
    add = Operation(kind=OperationKind.ADD, number=NumberClass.FLOAT, bits=32)
    branch = Operation(kind=OperationKind.BRANCH)
    executed = OperationCounts(operations={add: 1000, branch: 1000}, memory={})
    assert time_of(TRIAD, ONE_AFTER_THE_OTHER, executed) == pytest.approx(1000 * 0.5e-9)
    store = MemoryOperation(space=MemorySpace.PRIVATE, is_store=True, bytes=4)
    private = replace(executed, memory={store: 1000})
    assert time_of(TRIAD, ONE_AFTER_THE_OTHER, private) < 0.5 * 1000 * 0.5e-9


def test_scattered_lanes_cost_more() -> None:
    """Costs a column more than a row."""
    row, column = (make_launch(["a:float32:4194304"], loads=[text]) for text in ("a[x]", "a[4*x]"))
    assert time_of(column, BY_SIXTEEN) > 4 * time_of(row, BY_SIXTEEN)


def test_streams_are_limited_by_memory() -> None:
    """Takes the calibrated bandwidth, and says so."""
    found = estimate_cpu(TRIAD, make_machine())
    assert found.limiter == "DRAM"
    assert found.limiters["DRAM"] == pytest.approx(12 * 2**20 / 40e9)
    assert found.seconds >= found.limiters["DRAM"]
    assert found.volumes["DRAM_to_L2"] == pytest.approx(8 * 2**20)


def test_fills_the_analytic_features() -> None:
    """Names its limiters and volumes as the feature vector does."""
    found = estimate_cpu(TRIAD, make_machine())
    values = {one.name: one.compute(found) for one in FEATURES}
    for name in (
        "estimate_s", "dram_limiter_s", "l1_limiter_s", "chain_limiter_s", "latency_limiter_s",
        "l2_load_bytes_per_work_group", "dram_store_bytes_per_work_group", "l1_miss_ratio",
        "vector_work_items_count", "launch_limiter_s",
    ):  # fmt: skip
        assert values[f"analytic.{name}"] is not None, name
    assert values["analytic.l3_limiter_s"] is None  # this machine has none
    assert values["analytic.vector_work_items_count"] == 16


def test_an_empty_launch_costs_its_overhead() -> None:
    """Costs at least what a launch costs."""
    tiny = make_launch(["a:float32:64"], loads=["a[x]"], size=(64,))
    assert estimate_cpu(tiny, make_machine()).seconds >= 5e-6


def test_idle_cores_do_not_help() -> None:
    """Takes one work-group as long as two, which run side by side."""
    operations = {"fp32": 1e6}
    one, two = (
        make_launch(["a:float32:64"], loads=["a[0]"], size=(64 * n,), operations=operations)
        for n in (1, 2)
    )
    times = [estimate_cpu(launch, make_machine()).seconds for launch in (one, two)]
    assert times[0] == pytest.approx(times[1], rel=1e-3)


def test_addresses_need_a_value_only_where_they_are_executed() -> None:
    """Evaluates a remainder by a number that is 0 where a guard forbids the access."""
    own = Expr.symbol(Symbol(SymbolKind.LOCAL_ID, axis=0))
    [access] = make_launch(["a:float32:1048576"], loads=["a[x]"]).accesses
    guarded = replace(access, offset_bytes=4 * floor_mod(64, own), guard=less(0, own))
    nothing = OperationCounts(operations={}, memory={})
    launch = replace(TRIAD, accesses=(guarded,), executed=nothing)
    [found] = find_patterns(launch, ONE_AFTER_THE_OTHER)
    assert found.executions == pytest.approx(63 / 64)


def make_random(buffer_bytes: int, *, is_chained: bool) -> ModelledLaunch:
    """Make a launch that was recorded loading from random places."""
    access = MemoryAccess(
        site=0, block=0, line=3, text="a[i]", kind=AccessKind.LOAD, space=MemorySpace.GLOBAL,
        buffer="a", bytes=4, offset_bytes=None, pattern=AddressPattern.INDIRECT,
        sources=("a",) if is_chained else ("index",),
    )  # fmt: skip
    items, steps = 64, 20
    offsets = np.random.default_rng(1).integers(0, buffer_bytes // 4, items * steps) * 4
    recorded = RecordedAddresses(
        work_groups=(0,), work_items=(items,), sites=np.zeros(items * steps, dtype=np.int64),
        groups=np.zeros(items * steps, dtype=np.int64),
        local_ids=np.repeat(np.arange(items), steps), sequences=np.tile(np.arange(steps), items),
        buffers=np.zeros(items * steps, dtype=np.int64), offsets_bytes=offsets,
    )  # fmt: skip
    return replace(
        TRIAD, accesses=(access,), buffers={"a": buffer_bytes}, recorded=recorded,
    )  # fmt: skip


def test_random_loads_wait_for_memory() -> None:
    """Waits longer in a large buffer, and longest where each load needs the last one's result."""
    branch = Operation(kind=OperationKind.BRANCH)
    executed = OperationCounts(operations={branch: 20.0}, memory={})
    small, large, chained = (
        estimate_cpu(
            replace(make_random(size, is_chained=chain), executed=executed), make_machine(width=1)
        )
        for size, chain in ((2**14, False), (2**30, False), (2**30, True))
    )
    times = [one.limiters["latency"] for one in (small, large, chained)]
    assert times == sorted(set(times))
    assert chained.limiter == "latency"
    assert times[-1] == pytest.approx(20 * 1e-7 * 2**20 / 2, rel=0.1)


def test_addresses_that_depend_on_data_must_be_recorded() -> None:
    """Refuses to guess, and says what to do."""
    unknown = replace(make_random(2**20, is_chained=False), recorded=None)
    with pytest.raises(InputError, match=r"line 3: the address of a\[i\].*--device"):
        estimate_cpu(unknown, make_machine())


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
