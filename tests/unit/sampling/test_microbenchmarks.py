"""Microbenchmarks without a device: repeats and proofs, rows, what is read off curves."""

import json
import math
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias
from unittest.mock import MagicMock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kernelcast.records.device import DeviceKind, Trait, TraitSource
from kernelcast.records.errors import MeasurementError
from kernelcast.records.machine import CacheFacts
from kernelcast.sampling.microbenchmarks.bench import (
    FEWEST_REPEATS,
    Bench,
    BenchmarkResult,
    Effort,
    check_result,
    read_host_caches,
    summarise,
)
from kernelcast.sampling.microbenchmarks.fits import fit_levels
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


def _make_bench(
    reference_s: list[float] | None = None, *, effort: Effort = Effort.FULL, launch_s: float = 1e-6
) -> Bench:
    """Make a bench without a device, whose reference kernel takes the times that it is given."""
    times = cycle(reference_s or [1.0])
    session: Any = SimpleNamespace(
        settle=lambda: None,
        note_busy=lambda: None,
        description=make_description(),
        time_reference=lambda: next(times),
    )
    bench = Bench(session, effort)
    bench.patience_s = 0.0
    vars(bench)["launch_overhead_s"] = launch_s
    return bench


@pytest.mark.parametrize(
    ("times", "reference_s", "counts"),
    [
        ([2.0], [1.0], {1 + FEWEST_REPEATS}),
        ([1.0, 1.5, 0.7, 1.2], [1.0], {1 + 25}),
        ([2.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.5], set(range(2 + FEWEST_REPEATS, 25))),
        ([1.0, 1.5, 0.7, 1.2], [1.0, 2.0], {1 + 25, 1 + 26}),
    ],
    ids=["equal runs", "the 25 of the paper", "some beside a slow device", "all beside one"],
)
def test_runs_are_repeated_until_the_mean_is_known(
    times: list[float], reference_s: list[float], counts: set[int]
) -> None:
    """Equal runs end early, wide ones do not; those beside a slow device do not count."""
    run = MagicMock(side_effect=cycle(times))
    found = _make_bench(reference_s).measure(run)
    assert run.call_count in counts
    assert found.low <= found.median <= found.high
    assert found.median == pytest.approx(np.median(times), rel=0.2)


@pytest.mark.parametrize("step_s", [1e-8, 1e-6, 3e-5])
def test_length_reaches_the_target(step_s: float) -> None:
    """Iterations make a run last about the target, within limits, and long beside a launch."""
    bench = _make_bench(effort=Effort.QUICK)
    chosen = bench.choose_length(lambda n: 1e-6 + n * step_s, most=10**7)
    assert 0.7 * bench.run_s < chosen * step_s < 1.5 * bench.run_s
    assert bench.choose_length(lambda _: 1e-9, most=60_000) == 60_000
    slow = _make_bench(effort=Effort.QUICK, launch_s=1e-3)
    assert slow.choose_length(lambda n: n * step_s, most=10**7) * step_s > 7e-3


def test_work_is_proven_by_time_that_grows() -> None:
    """Noise does not hide work; a run too short to prove anything is lengthened, up to the largest
    count where a compiler removed the loop."""
    factors = cycle([1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 1.0])
    assert _make_bench().prove_work(lambda n: n * 1e-6 * next(factors), 4000) == 4000
    assert 8 < _make_bench().prove_work(lambda n: 1e-4 + n * 1e-7, 8) < 60_000
    removed = MagicMock(side_effect=lambda _: 1e-3 * next(factors))
    with pytest.raises(MeasurementError, match="may have been removed"):
        _make_bench().prove_work(removed, 8, most=100)
    assert max(call.args[0] for call in removed.call_args_list) == 100


def test_interval_is_that_of_the_paper() -> None:
    """3 % noise gives 1.96 deviations on either side of the mean; spikes do not move the median."""
    times = np.random.default_rng(1).normal(1.0, 0.03, 4000)
    found = summarise(times.tolist())
    assert found.low == pytest.approx(1 - 1.96 * 0.03, abs=0.005)
    assert found.high == pytest.approx(1 + 1.96 * 0.03, abs=0.005)
    times[::10] *= 5
    assert summarise(times.tolist()).median == pytest.approx(1.0, abs=0.01)
    drifting = summarise([1.0] * 10, spread=0.03)
    assert (drifting.low, drifting.high) == pytest.approx((0.97, 1.03), abs=1e-3)


def test_wrong_results_are_named() -> None:
    """Integers must be equal, floats nearly."""
    check_result(np.array([1.0001], np.float32), np.array([1.0], np.float32), 1e-3)
    with pytest.raises(MeasurementError, match="result 1 is 3, not 2"):
        check_result(np.array([1, 3], np.int32), np.array([1, 2], np.int32))


def test_rates_and_differences_carry_their_intervals() -> None:
    """The slowest run is the low end of a rate; a difference is less sure than its parts."""
    rate = summarise([1.0, 2.0, 4.0]).as_rate(8.0, "copy")
    assert rate.low is not None
    assert rate.high is not None
    assert rate.value == pytest.approx(4.0)
    assert rate.low < rate.value < rate.high
    noisy = summarise([2.9, 3.0, 3.1])
    difference = noisy.beyond(summarise([0.9, 1.0, 1.1]), "barrier", scale=10)
    assert difference.value == pytest.approx(20.0)
    assert difference.high is not None
    assert difference.high - difference.value > 10 * (noisy.high - noisy.median)
    with pytest.raises(MeasurementError, match="below the noise"):
        noisy.beyond(noisy, "barrier")


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


def _make_row_bench(*times_s: float) -> Any:  # noqa: ANN401 - as much of a bench as is asked for
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
    measure_divergence(_make_row_bench(*times, 1.0), result := BenchmarkResult(name="divergence"))
    assert result.warp_width is not None
    assert result.warp_width.value == width
    measure_divergence(_make_row_bench(*[1.0] * 7), result)
    assert "lock-step" in result.not_obtained["warp_width"]


def test_clock_is_reported_only_where_a_second_chain_bears_it_out() -> None:
    """Multiplications must take two thirds of their chain, or the clock is not known."""
    measure_clock(_make_row_bench(64e-6, 129e-6), result := BenchmarkResult(name="clock"))
    assert result.clock_hz is not None
    assert result.clock_hz.value == pytest.approx(1e9)
    measure_clock(_make_row_bench(64e-6, 80e-6), result)
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


Floats: TypeAlias = NDArray[np.float64]
_SEEDS = st.integers(0, 2**32 - 1)
_GPUS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "data" / "gpu_latencies.json").read_text()
)["devices"]


@st.composite
def hierarchies(draw: st.DrawFn) -> tuple[list[float], list[float], Floats]:
    """Draw cache sizes, latencies of each level and beyond, and sizes of arrays around them."""
    count = draw(st.integers(1, 3))
    times = draw(st.lists(st.floats(2.0, 8.0), min_size=count, max_size=count))
    apart = draw(st.lists(st.floats(4, 5), min_size=count - 1, max_size=count - 1))
    octaves = np.cumsum([draw(st.floats(14, 16)), *apart])
    latencies = draw(st.floats(0.5, 40.0)) * np.cumprod([1.0, *times])
    array_sizes = np.geomspace(2**12, 2 ** (octaves[-1] + 5), round(8 * (octaves[-1] - 7)))
    return (2**octaves).tolist(), latencies.tolist(), array_sizes


def plant(array_sizes: Floats, sizes: list[float], latencies: list[float], seed: int) -> Floats:
    """Compute latencies by equation 6, as medians of five repeats with 3 % noise each."""
    values = np.full_like(array_sizes, latencies[0])
    for index, size in enumerate(sizes):
        rise = latencies[index + 1] - latencies[index]
        values += rise * np.maximum(0.0, 1 - size / array_sizes)
    noise = 0.03 * np.random.default_rng(seed).standard_normal((5, len(values)))
    medians: Floats = np.median(values * (1 + noise), axis=0)
    return medians


def find(
    array_sizes: Floats, values: Floats, *, is_host: bool = False
) -> tuple[list[int], list[float]]:
    levels, beyond_s = fit_levels(array_sizes, values, is_host=is_host)
    latencies = [*(one.latency_s for one in levels if one.latency_s), beyond_s]
    for trait in latencies:
        assert trait.low is not None
        assert trait.high is not None
        assert trait.low <= trait.value <= trait.high
    sizes = [one.size_bytes.value for one in levels if one.size_bytes]
    return sizes, [one.value for one in latencies]


@settings(max_examples=10)
@given(hierarchy=hierarchies(), seed=_SEEDS, share=st.floats(0.02, 0.08))
def test_planted_levels(
    hierarchy: tuple[list[float], list[float], Floats], seed: int, share: float
) -> None:
    """Recovers sizes as the arrays allow, latencies within 5 %; disturbed runs move sizes by 25 %.

    A size lies between two arrays, eight an octave, and takes the nearest of sixteen candidates:
    half of each spacing, 6.7 %.
    """
    sizes, latencies, array_sizes = hierarchy
    values = plant(array_sizes, sizes, latencies, seed)
    found, measured = find(array_sizes, values)
    assert found == pytest.approx(sizes, rel=2 ** (1 / 16 + 1 / 32) - 1)
    assert measured == pytest.approx(latencies, rel=0.05)
    generator = np.random.default_rng(seed + 1)
    hit = generator.choice(len(values) - 4, size=math.ceil(share * len(values)), replace=False)
    values[hit] *= generator.uniform(2, 10, size=len(hit))
    assert find(array_sizes, values)[0] == pytest.approx(sizes, rel=0.25)


@settings(max_examples=10)
@given(seed=_SEEDS, slope=st.floats(0.0, 0.03), points=st.integers(6, 120))
def test_no_levels(seed: int, slope: float, points: int) -> None:
    """A flat curve, or one that rises slowly as translation buffers make it, shows no cache."""
    array_sizes = np.geomspace(1024, 2**26, points)
    values = plant(array_sizes, [], [1e-8], seed)
    assert find(array_sizes, values) == ([], [pytest.approx(1e-8, rel=0.05)])
    assert find(array_sizes, values * (array_sizes / 1024) ** slope)[0] == []


@settings(max_examples=8)
@given(
    size=st.floats(2**18, 2**22),
    rise=st.floats(3, 10),
    exponent=st.sampled_from([3.0, 4.0, 6.0]),
    seed=_SEEDS,
)
def test_gradual_steps(size: float, rise: float, exponent: float, seed: int) -> None:
    """Where misses begin early, as in physically indexed caches, half miss at the size."""
    array_sizes = np.geomspace(4096, 2**27, 90)
    share = 1.0 / (1.0 + (size / array_sizes) ** exponent)
    values = plant(array_sizes, [], [1.0], seed) * (1.0 + (rise - 1.0) * share)
    assert find(array_sizes, values, is_host=True)[0] == pytest.approx([size], rel=0.1)


@pytest.mark.parametrize("name", sorted(_GPUS))
def test_real_gpus(name: str) -> None:
    """Caches of real GPUs are found, all of them and no more, within a factor of two."""
    points = np.array(_GPUS[name]["points"], dtype=np.float64)
    sizes, latencies = find(points[:, 0], points[:, 1])
    assert len(sizes) == len(_GPUS[name]["known_kib"])
    for size, known in zip(sizes, _GPUS[name]["known_kib"], strict=True):
        assert known / 2 <= size <= 2 * known
    assert latencies == sorted(latencies)
