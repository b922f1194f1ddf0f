"""Fits recover what was planted, and what vendors say of real GPUs."""

import json
import math
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kernelcast.records.errors import InputError
from kernelcast.sampling.microbenchmarks.fits import fit_levels

Floats: TypeAlias = NDArray[np.float64]
_SEEDS = st.integers(0, 2**32 - 1)
_GPUS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "data" / "gpu_latencies.json").read_text()
)["devices"]


@st.composite
def hierarchies(draw: st.DrawFn) -> tuple[list[float], list[float], Floats]:
    """Draw cache sizes, latencies of each level and beyond, and sizes of arrays around them."""
    count = draw(st.integers(1, 3))
    sizes = [2 ** draw(st.floats(14, 16))]
    latencies = [draw(st.floats(0.5, 40.0))]
    for _ in range(count):
        latencies.append(latencies[-1] * draw(st.floats(2.0, 8.0)))
    for _ in range(count - 1):
        sizes.append(sizes[-1] * 2 ** draw(st.floats(4, 5)))
    octaves = math.log2(sizes[-1] * 32 / 4096)
    return sizes, latencies, np.geomspace(4096, sizes[-1] * 32, round(octaves * 8))


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
    """Find the sizes of caches, and the latencies of each level and beyond."""
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


def test_sharp_steps() -> None:
    """Under LRU a walk in a cycle misses all at once: the size is where it starts."""
    array_sizes = np.geomspace(4096, 2**26, 100)
    values = np.where(array_sizes > 49152, 4.0, 1.0) + np.where(array_sizes > 2**20, 12.0, 0.0)
    sizes, latencies = find(array_sizes, values)
    assert sizes == pytest.approx([49152, 2**20], rel=0.12)
    assert latencies == pytest.approx([1.0, 4.0, 16.0], rel=0.03)


@pytest.mark.parametrize("name", sorted(_GPUS))
def test_real_gpus(name: str) -> None:
    """Caches of real GPUs are found, all of them and no more, within a factor of two."""
    points = np.array(_GPUS[name]["points"], dtype=np.float64)
    sizes, latencies = find(points[:, 0], points[:, 1])
    assert len(sizes) == len(_GPUS[name]["known_kib"])
    for size, known in zip(sizes, _GPUS[name]["known_kib"], strict=True):
        assert known / 2 <= size <= 2 * known
    assert latencies == sorted(latencies)


@pytest.mark.parametrize("last", [[], [5.0, 0.0], [3.0, 1.0], [6.0, 0.0], [6.0, math.nan]])
def test_bad_curves(last: list[float]) -> None:
    """A curve that is too short, does not grow in size or is not positive is refused."""
    points = [[1.0, 1.0], [2.0, 1.0], [3.0, 1.0], [4.0, 1.0], [5.0, 1.0], *([last] if last else [])]
    sizes, values = np.array(points).T
    with pytest.raises(InputError):
        fit_levels(sizes, values)
