"""The rows of the microbenchmarks, and what is read from their curves, without a device."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.device import DeviceKind, Trait, TraitSource
from kernelcast.records.machine import CacheFacts
from kernelcast.sampling.microbenchmarks.bench import (
    BenchmarkResult,
    Effort,
    read_host_caches,
    summarise,
)
from kernelcast.sampling.microbenchmarks.memories import match_caches
from kernelcast.sampling.microbenchmarks.operations import (
    INSTRUCTIONS,
    Instruction,
    Shape,
    make_row,
    measure_clock,
    measure_divergence,
    plan_roofline,
)
from support.builders import make_description


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


@pytest.mark.parametrize("kind", INSTRUCTIONS, ids=lambda kind: kind.name)
def test_results_depend_on_start_and_iterations(kind: Instruction) -> None:
    """What numpy expects differs between work-items, and stays finite and bounded."""
    row = make_row(kind, Shape(1, 4), kind.unroll)
    few, many = (row.expect(np.arange(8), iterations) for iterations in (1, 200))
    assert few.dtype == row.given.dtype
    for values in (few, many):
        assert abs(values.astype(float)).max() < 2**33
    assert len(set(few.tolist())) > 1


def _make_bench(*times_s: float) -> Any:  # noqa: ANN401 - as much of a bench as is asked for
    """Make a bench on which rows of 1000 iterations take such times, in turn."""
    left = iter(times_s)
    return SimpleNamespace(
        is_cpu=True, units=1, description=make_description(),
        measure_row=lambda *_: (summarise([next(left)]), 1000),
    )  # fmt: skip


@given(width=st.sampled_from([4, 8, 16, 32, 64]), noise=st.floats(0.97, 1.03))
def test_width_of_planted_lock_step(width: int, noise: float) -> None:
    """Four branches cost lock-step devices up to four times as long; the curve gives the width."""
    times = [min(4, max(1, width / 2**step)) / noise for step in range(6)]
    measure_divergence(_make_bench(*times, 1.0), result := BenchmarkResult(name="divergence"))
    assert result.warp_width is not None
    assert result.warp_width.value == width
    measure_divergence(_make_bench(*[1.0] * 7), result)
    assert "lock-step" in result.not_obtained["warp_width"]


def test_clock_is_reported_only_where_a_second_chain_bears_it_out() -> None:
    """Multiplications must take two thirds of their chain, or the clock is not known."""
    measure_clock(_make_bench(64e-6, 129e-6), result := BenchmarkResult(name="clock"))
    assert result.clock_hz is not None
    assert result.clock_hz.value == pytest.approx(1e9)
    measure_clock(_make_bench(64e-6, 80e-6), result)
    assert "latencies" in result.not_obtained["clock_hz"]


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


def test_measured_and_reported_caches_are_matched() -> None:
    """A cache keeps what is reported of it beside its measured size, or alone where no step was
    seen; a disagreement is said, and a step without a cache."""

    def level(size: int, name: str = "L1") -> CacheFacts:
        found = Trait(value=size, source=TraitSource.MEASURED)
        latency_s = Trait(value=size * 1e-13, source=TraitSource.MEASURED)
        return CacheFacts(name=name, size_bytes=found, latency_s=latency_s)

    def host(name: str, size: int) -> CacheFacts:
        told = Trait(value=size, source=TraitSource.REPORTED)
        return CacheFacts(name=name, size_bytes=told, reported_size_bytes=told)

    (cache,), remarks = match_caches([level(40_000)], [host("L1", 49152)])
    assert cache.size_bytes is not None
    assert (cache.size_bytes.value, cache.size_bytes.source) == (40_000, TraitSource.MEASURED)
    assert "49152" in cache.size_bytes.origin
    assert cache.reported_size_bytes is not None
    assert cache.reported_size_bytes.value == 49152
    assert remarks == {}
    _, remarks = match_caches([level(2**23)], [host("L3", 2**25)])
    assert "8388608" in remarks["caches/L3/agreement"]
    (cache,), remarks = match_caches([level(2**14)], [host("L3", 2**25)])
    assert cache == host("L3", 2**25)
    assert set(remarks) == {"caches/L3/latency_s", "caches/step at 16384 bytes"}
    levels = [level(2**14), level(2**22, "L2")]
    assert match_caches(levels, []) == (levels, {})
    (cache,), _ = match_caches(levels, [host("L2", 2**22)])
    assert cache.latency_s == levels[1].latency_s
