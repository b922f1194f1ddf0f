"""The rows of the microbenchmarks, and what is read from their curves, without a device."""

import math
import time
from collections import Counter
from dataclasses import replace
from itertools import count, product
from pathlib import Path
from unittest.mock import Mock, create_autospec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import MeasurementError
from kernelcast.records.machine import SPACES, CacheFacts
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.sampling.microbenchmarks import caches, instructions
from kernelcast.sampling.microbenchmarks.bench import Launch, read_host_caches
from kernelcast.sampling.microbenchmarks.findings import Effort, summarise
from kernelcast.sampling.microbenchmarks.fits import CacheLevel
from kernelcast.sampling.microbenchmarks.instructions import (
    INSTRUCTIONS,
    Instruction,
    InstructionRuns,
    Shape,
    find_ridge,
    make_loop,
    plan_roofline,
)
from kernelcast.sampling.microbenchmarks.loops import infer_width, judge_clock
from kernelcast.sampling.microbenchmarks.streams import LOOPS, ORDERS, TYPES, Stream
from kernelcast.sampling.microbenchmarks.suite import suite
from support.builders import make_description


def test_benchmarks_have_stable_names() -> None:
    """`--only` and resuming go by the names."""
    kinds = ["fp32", "fp32_fma", "int32", "fp64", "fp64_fma", "native_special", "special"]
    assert [one.name for one in suite()] == [
        *(f"instructions-{kind}" for kind in kinds), "clock", "divergence", "atomics", "barrier",
        "dispatch", "launch", "caches", "latency", "gathers", "bandwidth", "transfers",
    ]  # fmt: skip


@given(
    warp_width=st.sampled_from([16, 32, 64]),
    most=st.sampled_from([256, 512, 1024]),
    effort=st.sampled_from(list(Effort)),
)
def test_gpu_points_run_from_one_warp_to_a_full_unit(
    warp_width: int, most: int, effort: Effort
) -> None:
    """Points on a GPU are whole warps in equal work-groups that local memory keeps apart."""
    device = replace(
        make_description(), kind=DeviceKind.GPU, max_work_group_size=most, local_memory_bytes=49152
    )
    points = plan_roofline(device, effort, warp_width, 3)
    assert [*points] == sorted(points)
    assert {warp_width, 64 * warp_width} <= points.keys()
    for items, (global_size, local_size, local_bytes) in points.items():
        groups = items // local_size
        assert global_size == 3 * items
        assert local_size <= most
        assert local_size % warp_width == 0
        assert groups * local_bytes <= 49152
        assert (groups + 1) * local_bytes > 49152 - groups


def test_cpu_points_vary_the_work_group() -> None:
    """A CPU thread runs one work-group at a time: its size is the concurrency."""
    points = plan_roofline(make_description(), Effort.FULL, 1, 2)
    assert [*points] == [launch.local_size for launch in points.values()]
    assert points[1] == (16, 1, 1)


@given(st.integers(0, 6), st.floats(1e6, 1e12))
def test_ridge_of_a_planted_roof(steps: int, peak: float) -> None:
    """The ridge of a roof that rises in proportion is where it becomes flat."""
    counts = [2**power for power in range(8)]
    assert find_ridge(counts, [peak * min(1.0, one / 2**steps) for one in counts]) == 2**steps


@pytest.mark.parametrize("proven", [0, 1, 3, None])
def test_a_peak_is_the_fastest_whose_work_is_proven(
    proven: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel whose work cannot be proven, for noise or a clever compiler, leaves its place."""
    shapes, launches = (Shape(1), Shape(2)), (Launch(2, 1), Launch(1, 1))
    fast_first = [(shape, launch) for shape in shapes[::-1] for launch in launches]
    monkeypatch.setattr(instructions, "screen_shapes", lambda *_: dict.fromkeys(shapes, 1.0))
    runs = create_autospec(InstructionRuns)
    runs.kind = INSTRUCTIONS[0]
    runs.measure = lambda shape, launch: (summarise([1.0]), 10 * shape.chains + launch.global_size)

    def prove(shape: Shape, launch: Launch) -> None:
        if proven is None or (shape, launch) != fast_first[proven]:
            raise MeasurementError(str(shape))

    runs.prove = prove
    if proven is None:
        with pytest.raises(MeasurementError, match="chains=1"):
            instructions.measure_peak(runs, launches, "test")
    else:
        shape, launch = fast_first[proven]
        found = instructions.measure_peak(runs, launches, "test")
        assert found.value == pytest.approx(10 * shape.chains + launch.global_size)


@pytest.mark.parametrize("clock", ["perf_counter", "process_time"])
def test_only_builds_that_take_a_processor_long_end_the_search_for_a_peak(
    clock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine in use makes builds long by the clock, and the widest kernels alone reach it."""
    runs = create_autospec(InstructionRuns)
    runs.bench = Mock(launch_overhead_s=0.0)
    runs.build.return_value.time.return_value = runs.count_steps.return_value = 1.0
    seconds = count(step=100)
    monkeypatch.setattr(time, clock, lambda: float(next(seconds)))
    shapes = instructions.screen_shapes(runs, Launch(64, 64))
    assert (Shape(8, 16) in shapes) == (clock == "perf_counter")
    assert shapes


@pytest.mark.parametrize("kind", INSTRUCTIONS, ids=lambda kind: kind.name)
def test_results_depend_on_start_and_iterations(kind: Instruction) -> None:
    """What numpy expects differs between work-items, and stays finite and bounded."""
    loop = make_loop(kind, Shape(1, 4))
    few, many = (loop.expect(np.arange(8), iterations) for iterations in (1, 200))
    assert few.dtype == loop.given.dtype
    for values in (few, many):
        assert abs(values.astype(float)).max() < 2**33
    assert len(set(few.tolist())) > 1


@given(width=st.sampled_from([4, 8, 16, 32, 64]), noise=st.floats(0.97, 1.03))
def test_width_of_planted_lock_step(width: int, noise: float) -> None:
    """Four branches cost lock-step devices up to four times as long; the curve gives the width."""
    counts = [1, 2, 4, 8, 16, 32, 64]
    rates = [noise / min(4, max(1, width / one)) for one in counts[:-1]] + [1.0]
    assert infer_width(counts, rates) == width
    with pytest.raises(MeasurementError, match="lock-step"):
        infer_width([1, 2, 4], [1.0, 1.01, 1.02])


def test_clock_is_reported_only_where_a_second_chain_bears_it_out() -> None:
    """Multiplications must take two thirds of their chain, or the clock is not known."""
    assert judge_clock(summarise([2e-3]), 1e6, 2.02).value == pytest.approx(1e9)
    with pytest.raises(MeasurementError, match="latencies"):
        judge_clock(summarise([2e-3]), 1e6, 1.25)


@given(length=st.integers(2, 300), seed=st.integers(0, 2**32 - 1))
def test_drawn_order_is_one_cycle(length: int, seed: int) -> None:
    """A drawn order is walked from element to element, and each before the first again."""
    order, successors = caches.draw_cycle(length, np.random.default_rng(seed))
    assert successors[order].tolist() == [*order[1:].tolist(), order[0]]
    assert sorted(order.tolist()) == list(range(length))


def test_all_cycles_are_drawn_alike() -> None:
    """Each of the six cycles of four elements is as likely."""
    generator = np.random.default_rng(1)
    cycles = (caches.draw_cycle(4, generator)[1].tolist() for _ in range(3000))
    counts = Counter(map(tuple, cycles))
    assert len(counts) == math.factorial(3)
    assert all(400 < count < 600 for count in counts.values())


def test_host_caches(tmp_path: Path) -> None:
    """Data caches are read, nearest first; instruction caches and broken entries are not."""
    for index, (level, kind, size, cpus) in enumerate([
        (3, "Unified", "32768K", "0-7,16"), (1, "Instruction", "32K", "0"),
        (1, "Data", "48K", "0"), (2, "Unified", "?", "0"),
    ]):  # fmt: skip
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        texts = {"level": level, "type": kind, "size": size, "shared_cpu_list": cpus}
        for name, text in texts.items():
            (folder / name).write_text(f"{text}\n")
    (tmp_path / "index4").mkdir()
    found = read_host_caches(tmp_path)
    assert [(one.name, one.size_bytes.value) for one in found if one.size_bytes] == [
        ("L1", 49152), ("L3", 2**25),
    ]  # fmt: skip
    assert [one.shared_by.value for one in found if one.shared_by] == [1, 9]
    assert [one.ways for one in found] == [None, None]
    assert read_host_caches(tmp_path / "missing") == ()


def _level(size: int, latency: float) -> CacheLevel:
    source = TraitSource.MEASURED
    return CacheLevel(
        size_bytes=Trait(value=size, source=source), latency_s=Trait(value=latency, source=source)
    )


def _host(name: str, size: int) -> CacheFacts:
    reported = Trait(value=size, source=TraitSource.REPORTED)
    return CacheFacts(name=name, size_bytes=reported, reported_size_bytes=reported)


def test_matching_shows_both_sizes() -> None:
    """A cache keeps what is reported of it beside its measured size; a disagreement is said."""
    (cache,), remarks = caches.match_caches([_level(40_000, 1e-9)], [_host("L1", 49152)])
    assert cache.size_bytes is not None
    assert (cache.size_bytes.value, cache.size_bytes.source) == (40_000, TraitSource.MEASURED)
    assert "49152" in cache.size_bytes.origin
    assert cache.reported_size_bytes is not None
    assert cache.reported_size_bytes.value == 49152
    assert remarks == {}
    _, remarks = caches.match_caches([_level(2**23, 1e-8)], [_host("L3", 2**25)])
    assert "8388608" in remarks["caches/L3/agreement"]


def test_unmatched_levels_and_steps() -> None:
    """A reported cache without a step keeps its reported size; a step without a cache is said."""
    (cache,), remarks = caches.match_caches([_level(2**14, 1e-9)], [_host("L3", 2**25)])
    assert cache == _host("L3", 2**25)
    assert set(remarks) == {"caches/L3/latency_s", "caches/step at 16384 bytes"}
    unknown, _ = caches.match_caches([_level(2**14, 1e-9), _level(2**22, 1e-8)], [])
    assert [cache.name for cache in unknown] == ["L1", "L2"]


def test_large_pages() -> None:
    """Memory in large pages is zero, aligned and long enough."""
    memory = caches.allocate_large_pages(caches.LARGE_PAGE_BYTES + 1)
    assert memory.nbytes >= caches.LARGE_PAGE_BYTES + 1
    assert memory.ctypes.data % caches.LARGE_PAGE_BYTES == 0
    assert not memory.any()


@given(least=st.integers(64, 4096), octaves=st.integers(1, 12), per_octave=st.integers(1, 6))
def test_array_sizes(least: int, octaves: int, per_octave: int) -> None:
    """Sizes of arrays increase, in whole strides."""
    sizes = caches.make_sizes(least, least * 2**octaves, per_octave, caches.STRIDE_BYTES)
    assert all(size % caches.STRIDE_BYTES == 0 for size in sizes)
    assert sizes == sorted(set(sizes))


def test_kernels_have_no_double_and_balanced_braces() -> None:
    """Every memory kernel is for devices without fp64, with as many braces opened as closed."""
    sources = [caches.make_walk_source(space, 512) for space in SPACES]
    sources += [caches.make_set_source(words) for words in (1, 2, 4, 8, 16)]
    sources += [
        Stream(size, order, is_copy, loop, 4).source
        for size, order, loop, is_copy in product(TYPES, ORDERS, LOOPS, (False, True))
    ]
    for source in sources:
        assert "double" not in source
        assert source.count("{") == source.count("}")
