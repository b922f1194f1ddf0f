"""Fits recover what was planted, and what vendors say of real GPUs."""

import json
import math
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kernelcast.records.errors import InputError
from kernelcast.sampling.microbenchmarks.fits import (
    LatencyFit,
    fit_bandwidths,
    fit_levels,
    fit_saturation,
)
from kernelcast.sampling.microbenchmarks.fits.levels import find_undisturbed
from kernelcast.sampling.microbenchmarks.fits.saturation import SaturationShape

_DATA = Path(__file__).parents[2] / "data" / "gpu_latencies.json"
_NOISE = 0.03
_REPEATS = 5
_TOLERANCE = 0.05

Floats: TypeAlias = NDArray[np.float64]
_SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def hierarchies(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    """Draw cache sizes in bytes, and latencies of each level and of what is beyond."""
    count = draw(st.integers(1, 3))
    sizes = [2 ** draw(st.floats(14, 16))]
    latencies = [draw(st.floats(0.5, 40.0))]
    for _ in range(count):
        latencies.append(latencies[-1] * draw(st.floats(2.0, 8.0)))
    for _ in range(count - 1):
        sizes.append(sizes[-1] * 2 ** draw(st.floats(4, 5)))
    return sizes, latencies


def plant(array_sizes: Floats, sizes: list[float], latencies: list[float]) -> Floats:
    """Give latencies by equation 6."""
    values = np.full_like(array_sizes, latencies[0])
    for index, size in enumerate(sizes):
        rise = latencies[index + 1] - latencies[index]
        values += rise * np.maximum(0.0, 1 - size / array_sizes)
    return values


def add_noise(values: Floats, seed: int) -> Floats:
    """Give medians of repeats with 3 % noise each."""
    generator = np.random.default_rng(seed)
    noise = 1 + _NOISE * generator.standard_normal((_REPEATS, len(values)))
    medians: Floats = np.median(values * noise, axis=0)
    return medians


def make_sizes(sizes: list[float]) -> Floats:
    """Give sizes of arrays from far below the first cache to far beyond the last."""
    octaves = math.log2(sizes[-1] * 32 / 4096)
    return np.geomspace(4096, sizes[-1] * 32, round(octaves * 8))


@settings(max_examples=25)
@given(hierarchy=hierarchies(), seed=_SEEDS)
def test_planted_levels(hierarchy: tuple[list[float], list[float]], seed: int) -> None:
    """Sizes and latencies under 3 % noise are recovered within 5 %, and no level is invented."""
    sizes, latencies = hierarchy
    array_sizes = make_sizes(sizes)
    fit = fit_levels(array_sizes, add_noise(plant(array_sizes, sizes, latencies), seed))
    found = [level.capacity_bytes.value for level in fit.levels]
    assert found == pytest.approx(sizes, rel=_TOLERANCE)
    measured = [level.latency_s.value for level in fit.levels] + [fit.beyond_s.value]
    assert measured == pytest.approx(latencies, rel=_TOLERANCE)


@settings(max_examples=25)
@given(hierarchy=hierarchies(), seed=_SEEDS, share=st.floats(0.02, 0.08))
def test_outliers(hierarchy: tuple[list[float], list[float]], seed: int, share: float) -> None:
    """A few runs that a neighbour disturbed add no level, and move none by more than 25 %."""
    sizes, latencies = hierarchy
    array_sizes = make_sizes(sizes)
    values = add_noise(plant(array_sizes, sizes, latencies), seed)
    generator = np.random.default_rng(seed + 1)
    hit = generator.choice(len(values) - 4, size=math.ceil(share * len(values)), replace=False)
    values[hit] *= generator.uniform(2, 10, size=len(hit))
    fit = fit_levels(array_sizes, values)
    assert [level.capacity_bytes.value for level in fit.levels] == pytest.approx(sizes, rel=0.25)


@settings(max_examples=25)
@given(seed=_SEEDS, latency=st.floats(1e-9, 1e-6), points=st.integers(6, 120))
def test_flat_curve(seed: int, latency: float, points: int) -> None:
    """A latency that does not depend on the size shows no cache."""
    array_sizes = np.geomspace(1024, 2**28, points)
    fit = fit_levels(array_sizes, add_noise(np.full(points, latency), seed))
    assert fit.levels == ()
    assert fit.beyond_s.value == pytest.approx(latency, rel=_TOLERANCE)


@settings(max_examples=25)
@given(seed=_SEEDS, slope=st.floats(0.0, 0.03))
def test_slow_rise(seed: int, slope: float) -> None:
    """A slow rise over all sizes, as translation buffers make it, is no cache."""
    array_sizes = np.geomspace(1024, 2**26, 100)
    fit = fit_levels(array_sizes, add_noise((array_sizes / 1024) ** slope, seed))
    assert fit.levels == ()


def test_sharp_steps() -> None:
    """Under LRU a walk in a cycle misses all at once: the size is where it starts."""
    array_sizes = np.geomspace(4096, 2**26, 100)
    values = np.where(array_sizes > 49152, 4.0, 1.0) + np.where(array_sizes > 2**20, 12.0, 0.0)
    fit = fit_levels(array_sizes, values)
    assert [level.capacity_bytes.value for level in fit.levels] == pytest.approx(
        [49152, 2**20], rel=0.12
    )
    assert fit.predict(np.array([1e4, 1e5, 6e7])) == pytest.approx([1.0, 4.0, 16.0], rel=0.03)


@settings(max_examples=20)
@given(
    size=st.floats(2**18, 2**22),
    rise=st.floats(3, 10),
    exponent=st.sampled_from([3.0, 4.0, 6.0]),
    seed=_SEEDS,
)
def test_gradual_steps(size: float, rise: float, exponent: float, seed: int) -> None:
    """Where misses begin early, as in physically indexed caches, half miss at the size."""
    array_sizes = np.geomspace(4096, 2**27, 90)
    values = 1.0 + (rise - 1.0) / (1.0 + (size / array_sizes) ** exponent)
    fit = fit_levels(array_sizes, add_noise(values, seed), is_host=True)
    (level,) = fit.levels
    assert level.is_gradual
    assert level.capacity_bytes.value == pytest.approx(size, rel=0.1)


def test_intervals_hold_the_value() -> None:
    """Each interval holds its value, and sizes are no surer than the spacing of the arrays."""
    array_sizes = np.geomspace(4096, 2**24, 49)
    fit = fit_levels(array_sizes, plant(array_sizes, [40_000.0], [1.0, 5.0]))
    (level,) = fit.levels
    for interval in (level.capacity_bytes, level.latency_s, fit.beyond_s):
        assert interval.low <= interval.value <= interval.high
    assert level.capacity_bytes.high / level.capacity_bytes.low >= 2 ** (1 / 4) * 0.99


def _read_gpus() -> dict[str, dict[str, list[list[float]]]]:
    gpus: dict[str, dict[str, list[list[float]]]] = json.loads(_DATA.read_text())["devices"]
    return gpus


@pytest.mark.parametrize("name", sorted(_read_gpus()))
def test_real_gpus(name: str) -> None:
    """Caches of real GPUs are found, all of them and no more, within a factor of two."""
    gpu = _read_gpus()[name]
    points = np.array(gpu["points"], dtype=np.float64)
    fit: LatencyFit = fit_levels(points[:, 0], points[:, 1])
    found = [level.capacity_bytes.value for level in fit.levels]
    assert len(found) == len(gpu["known_kib"])
    for size, known in zip(found, gpu["known_kib"], strict=True):
        assert known / 2 <= size <= 2 * known  # type: ignore[operator]  # a flat list
    latencies = [level.latency_s.value for level in fit.levels] + [fit.beyond_s.value]
    assert latencies == sorted(latencies)


def test_disturbed_points() -> None:
    """A point far above those of larger arrays is not believed; noise is."""
    values = np.array([1.0, 1.04, 7.0, 1.0, 3.0, 3.1, 9.0, 3.0, 3.1])
    assert np.flatnonzero(~find_undisturbed(values)).tolist() == [2, 6]


@pytest.mark.parametrize(
    ("sizes", "values"),
    [
        ([1.0, 2.0], [1.0, 1.0]),
        ([1.0, 2.0, 2.0, 3.0, 4.0, 5.0], [1.0] * 6),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 1.0, 0.0, 1.0, 1.0, 1.0]),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 1.0, math.nan, 1.0, 1.0, 1.0]),
    ],
)
def test_bad_curves(sizes: list[float], values: list[float]) -> None:
    """A curve that is none is refused."""
    with pytest.raises(InputError):
        fit_levels(np.array(sizes), np.array(values))


@settings(max_examples=25)
@given(hierarchy=hierarchies(), seed=_SEEDS)
def test_planted_bandwidths(hierarchy: tuple[list[float], list[float]], seed: int) -> None:
    """Bandwidths of levels of known size are recovered within 5 % under 3 % noise."""
    sizes, times = hierarchy
    array_sizes = make_sizes(sizes)
    bandwidths = 1.0 / add_noise(plant(array_sizes, sizes, times), seed)
    found = fit_bandwidths(array_sizes, bandwidths, tuple(sizes))
    assert [one.value for one in found] == pytest.approx([1 / t for t in times], rel=_TOLERANCE)


def test_too_few_bandwidths() -> None:
    """Fewer points than levels are refused."""
    with pytest.raises(InputError):
        fit_bandwidths(np.array([1.0]), np.array([1.0]), (4.0, 8.0))


@settings(max_examples=25)
@given(
    shape=st.sampled_from(SaturationShape),
    peak=st.floats(1e6, 1e13),
    knee=st.floats(4, 64),
    seed=_SEEDS,
)
def test_planted_saturation(shape: SaturationShape, peak: float, knee: float, seed: int) -> None:
    """Peak, knee and ridge point are recovered within 5 % under 3 % noise, and the shape."""
    x = np.geomspace(1, 2048, 56)
    rates = peak * (
        np.minimum(1, x / knee) if shape is SaturationShape.ROOFLINE else x / (x + knee)
    )
    fit = fit_saturation(x, add_noise(rates, seed))
    assert fit.shape is shape
    assert fit.peak.value == pytest.approx(peak, rel=_TOLERANCE)
    assert fit.knee.value == pytest.approx(knee, rel=_TOLERANCE)
    factor = 0.95 if shape is SaturationShape.ROOFLINE else 19.0
    assert fit.ridge_x.value == pytest.approx(factor * knee, rel=_TOLERANCE)
    assert fit.predict(fit.ridge_x.value * np.ones(1))[0] == pytest.approx(0.95 * fit.peak.value)


def test_too_few_rates() -> None:
    """Two points are no saturating curve."""
    with pytest.raises(InputError):
        fit_saturation(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
