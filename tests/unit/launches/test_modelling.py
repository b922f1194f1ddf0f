import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from unittest.mock import MagicMock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.analytic.gpu.machine import read_machine as read_gpu
from kernelcast.analytic.gpu.volumes import compute_volumes
from kernelcast.expressions.accesses import AccessKind, ModelledLaunch
from kernelcast.features.written_accesses import WrittenKernel, read_access, read_array
from kernelcast.launches.machines import find_machine, read_machine
from kernelcast.launches.modelling import estimating
from kernelcast.launches.modelling.estimating import estimate_analytically, time_mwp_cwp
from kernelcast.launches.modelling.gpu_estimates import configure, model_volumes
from kernelcast.launches.modelling.launches import (
    ModelledKernel,
    fold,
    model_kernel,
    model_launch,
    model_written,
)
from kernelcast.records.errors import InputError, MissingExtraError, NDRangeError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import MemoryOperation, MemorySpace
from kernelcast.records.problem import Problem
from kernelcast.records.software_counters import SoftwareCounters, WarpCounters
from support.address_sets import bind_group, enumerate_offsets
from support.problems import buffer_of, number_of, read_example, write_problem

STAR = (
    "a[x, y] if 0 < x < n - 1", "a[x-1, y] if 0 < x < n - 1", "a[x, y-1] if y != 0 and y < m",
    "a[x, y+1]", "b[k, y] for k in range(y)", "b[x % 3, 0]",
)  # fmt: skip


def make_source(ndrange: NDRange, texts: tuple[str, ...] = STAR) -> ModelledKernel:
    scalars = {"n": 9, "m": 6}
    arrays = {
        one.name: one
        for one in (read_array("a:float32:64x64"), read_array("b:float32:64x64"),
                    read_array("tile:local float32:64"))
    }  # fmt: skip
    kinds = [AccessKind.LOAD] * len(texts) + [AccessKind.STORE]
    accesses = tuple(
        read_access(text, arrays, kind=kind, scalars=tuple(scalars), site=site)
        for site, (text, kind) in enumerate(zip((*texts, "b[x, y]"), kinds, strict=True))
    )
    used = tuple(one for name, one in arrays.items() if any(name in text for text in (*texts, "b")))
    kernel = WrittenKernel(
        name="k", arrays=used, accesses=accesses, scalars=scalars, operations={"fp32": 6}
    )
    return model_written(kernel, ndrange)


def touch(launch: ModelledLaunch) -> set[tuple[AccessKind, MemorySpace, str, range]]:
    """List the bytes of each buffer that all work-groups touch, access by access."""
    return {
        (one.kind, one.space, one.buffer, range(offset, offset + one.bytes))
        for group in range(launch.ndrange.work_group_count)
        for one in launch.accesses
        for offset in enumerate_offsets(one, bind_group(launch.ndrange, group, launch.scalars))
    }


@given(
    sizes=st.tuples(st.integers(2, 13), st.integers(2, 13)),
    offset=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    axis=st.integers(0, 1),
    times=st.integers(1, 4),
)
@settings(max_examples=40, deadline=None)
def test_folding_touches_the_same_addresses(
    sizes: tuple[int, int], offset: tuple[int, int], axis: int, times: int
) -> None:
    """Touches what the launch touched, whatever axis, number, remainder and offset."""
    ndrange = NDRange(global_size=sizes, local_size=(1, 1), global_offset=offset)
    launch = make_source(ndrange).launch()
    times = min(times, sizes[axis])
    folded = fold(launch, axis, times)
    assert touch(folded) == touch(launch)
    assert folded.updates_per_work_item == times
    assert len({one.site for one in folded.accesses}) == len(folded.accesses)


def test_folding_shares_loads_of_neighbouring_updates() -> None:
    """Loads once what two updates of a work-item read: 3 rows and 1 more, not 6."""
    texts = ("a[x, y-1]", "a[x, y]", "a[x, y+1]")
    ndrange = NDRange(global_size=(8, 8), local_size=(8, 1), global_offset=(1, 1))
    launch = make_source(ndrange, texts).launch()
    folded = fold(launch, 1, 2)
    assert Counter(one.kind for one in folded.accesses) == {AccessKind.LOAD: 4, AccessKind.STORE: 2}
    load = MemoryOperation(space=MemorySpace.GLOBAL, is_store=False, bytes=4)
    assert folded.executed.memory[load] == 4
    assert sum(folded.executed.operations.values()) == 12
    assert folded.ndrange.global_size == (8, 4)


@pytest.mark.parametrize(
    ("texts", "axis", "times", "complaint"),
    [
        (STAR, 2, 2, "2 dimensions"),
        (STAR, 1, 0, "1 to 8 updates"),
        (STAR, 1, 9, "1 to 8 updates"),
        (("tile[local_x]",), 0, 2, "local memory"),
        (("a[local_x, y]",), 0, 2, r"names local_id\(0\)"),
        (("a[x, group_y]",), 1, 2, r"names group_id\(1\)"),
    ],
)
def test_folding_refuses_what_it_would_change(
    texts: tuple[str, ...], axis: int, times: int, complaint: str
) -> None:
    launch = make_source(NDRange(global_size=(8, 8), local_size=(4, 2)), texts).launch()
    with pytest.raises(InputError, match=complaint):
        fold(launch, axis, times)


def test_models_what_source_and_arguments_tell() -> None:
    """Knows scalars, buffers, local memory, executed operations, and what none jumps over."""
    launch = model_launch(read_example("scan_blocks"))
    assert launch.scalars == {"count": 40_000_000}
    assert launch.buffers == {"values": 160_000_000, "sums": 160_000_000, "totals": 1_250_000}
    assert launch.local_bytes == 512
    assert launch.executed.count_memory(MemorySpace.GLOBAL, is_store=False) == 1
    assert launch.unjumped.operations
    assert launch.notes == ()
    with pytest.raises(InputError, match="shares local memory"):
        model_kernel(read_example("scan_blocks")).launch((64,))


def test_says_what_it_assumes_and_what_is_missing() -> None:
    """Notes a local size of its own choice, and accesses that depend on data."""
    problem = read_example("spmv_csr")
    free = replace(problem, ndrange=replace(problem.ndrange, local_size=None))
    launch = model_launch(free)
    assert launch.ndrange.local_size == (64,)
    assert "no local size is given" in launch.notes[0]
    missing = [note for note in launch.notes if "depends on data in" in note]
    assert len(missing) == 3
    with pytest.raises(
        InputError, match=r"value\[k\] depends on data in row_pointer; .* allow samples"
    ):
        model_volumes(launch, find_machine("a100"))


def test_larger_work_groups_than_the_domain_are_padded() -> None:
    """Adds idle work-items, which touch nothing and lower the mean of what is executed: loads
    behind guards and in loops as often as they are executed."""
    space = make_source(NDRange(global_size=(8, 8), local_size=(8, 8))).launch()
    # 7 of 8 columns twice, rows 1 to 5, all, y iterations (mean 3.5), all.
    assert space.executed.count_memory(MemorySpace.GLOBAL, is_store=False) == pytest.approx(
        2 * 7 / 8 + 5 / 8 + 1 + 3.5 + 1
    )
    source = make_source(NDRange(global_size=(6, 4), local_size=(2, 2), global_offset=(1, 0)))
    padded = source.launch((8, 2))
    assert padded.ndrange.global_size == (8, 4)
    assert touch(padded) == touch(source.launch())
    assert sum(padded.executed.operations.values()) == pytest.approx(6 * 6 / 8)
    problem = model_kernel(read_example("mandelbrot"))
    with pytest.raises(NDRangeError):
        problem.launch((2048, 1))


@given(
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    local=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    values=st.lists(st.integers(-1, 12), min_size=1, max_size=4),
    borders=st.lists(st.sampled_from(["x == 1", "y == 0", "x == n - 1", "y >= 5"]), max_size=4),
)
@settings(max_examples=60, deadline=None)
def test_simplified_accesses_touch_the_same_addresses(
    sizes: tuple[int, int], local: tuple[int, int], values: list[int], borders: list[str]
) -> None:
    """Keeps every address, whatever ids are excluded, and whatever borders are treated apart."""
    ndrange = NDRange(
        global_size=(sizes[0] * local[0], sizes[1] * local[1]), local_size=local,
        global_offset=(1, 0),
    )  # fmt: skip
    guard = " and ".join(f"x != {one}" for one in values)
    if borders:
        guard += f" and ({' or '.join(borders)})"
    text = (
        f"a[get_local_size(0) * group_x + local_x, {local[1]} * group_y + local_y] "
        f"if x < n and {guard}"
    )
    kernel = make_source(ndrange, (text,))
    launch = kernel.launch()
    assert touch(launch) == touch(replace(launch, accesses=kernel.facts.accesses))


POWER = """kernel void power(global float *a, int n) {
  float x = a[get_global_id(0)];
  for (int k = 0; k < n; k++) x = x * x + 1.0f;
  a[get_global_id(0)] = x; }"""


def make_problem(turns: int) -> Problem:
    given = (buffer_of("float32", 1 << 20), number_of(turns))
    return write_problem(POWER, *given, items=(1 << 20,), local=(128,))


@pytest.mark.parametrize("machine", ["v100", "mi210"])
def test_arguments_decide_what_is_executed(machine: str) -> None:
    """A loop's turns are those of the argument, registers those of the GPU's own code."""
    problem = make_problem(1000)
    found = estimating.add_code(model_launch(problem), find_machine(machine))
    assert found.work is not None
    assert found.work["fp32"] == pytest.approx(1000, rel=0.01)
    assert found.work["latency"] >= 4 * 1000
    assert found.registers is not None
    assert 2 <= found.registers <= 32
    short, long = (
        estimate_analytically(model_launch(make_problem(turns)), find_machine("a100")).seconds
        for turns in (1000, 10000)
    )
    assert long / short == pytest.approx(10, rel=0.1)


def test_without_a_compiler_the_source_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The launch stays as it is, and says why."""
    refuse = MagicMock(side_effect=MissingExtraError("no compiler was found"))
    monkeypatch.setattr(estimating, "_compile", refuse)
    problem = make_problem(1000)
    launch = model_launch(problem)
    found = estimating.add_code(launch, find_machine("v100"))
    assert found.work is None
    assert found.executed == launch.executed
    assert any("no compiler was found" in note for note in found.notes)


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


@pytest.mark.parametrize("name", SMALL)
def test_nothing_moves_less_than_is_touched(name: str) -> None:
    """Loads and stores at least what is touched, and a small launch not much more."""
    launch = model_kernel(read_example(name, **SMALL[name])).launch()
    machine = read_gpu(find_machine("a100"))
    volumes = compute_volumes(launch, machine)
    touched = touch(launch)

    def count_unique(wanted: AccessKind, sector: int) -> int:
        return sector * len(
            {
                (buffer, unit)
                for kind, space, buffer, places in touched
                if kind in {wanted, AccessKind.ATOMIC} and space in CACHED
                for unit in range(places[0] // sector, places[-1] // sector + 1)
            }
        )

    loaded = count_unique(AccessKind.LOAD, machine.dram_fetch_bytes)
    stored = count_unique(AccessKind.STORE, machine.l1_sector_bytes)
    # All of it fits into the cache, but for the rounding of rows to whole fetches.
    assert 0.999 * loaded <= volumes.dram_load_bytes <= 1.25 * loaded + 1024
    assert 0.999 * stored <= volumes.dram_store_bytes <= 1.25 * stored + 1024


@pytest.mark.parametrize(
    ("name", "least", "most"), [("convolution", 1.0, 1.04), ("stencil3d", 4.0, 4.3)]
)
def test_borders_are_loaded_once(name: str, least: float, most: float) -> None:
    """Clamped pixels and copies of a border touch what the interior touches."""
    source = model_kernel(read_example(name))
    volumes = compute_volumes(source.launch(), read_gpu(find_machine("a100")))
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


CALIBRATION = Path(__file__).parents[3] / "benchmarks/results/calibration"
V100 = find_machine("v100")
CPU = read_machine(CALIBRATION / "pocl-skylake-avx512-amd-5d25.yaml")
INTEL = read_machine(CALIBRATION / "intel-amd-epyc-c960.yaml")


@pytest.mark.parametrize("machine", [V100, CPU, INTEL], ids=lambda one: one.id)
def test_streaming_takes_bytes_over_bandwidth(machine: MachineDescription) -> None:
    launch = model_launch(read_example("triad"))
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
    launch = model_launch(read_example("mandelbrot"))
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
        time_mwp_cwp(model_launch(read_example("triad")), bare)
