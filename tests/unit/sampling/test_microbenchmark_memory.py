"""The parts of the memory microbenchmarks that need no device."""

import math
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.machine import SPACES, CacheFacts
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.sampling.microbenchmarks import caches
from kernelcast.sampling.microbenchmarks.fits import CacheLevel, Interval, LatencyFit
from kernelcast.sampling.microbenchmarks.harness import Bench
from kernelcast.sampling.microbenchmarks.host_caches import (
    HostCache,
    count_listed,
    parse_size,
    read_host_caches,
)
from kernelcast.sampling.microbenchmarks.levels_match import match_caches
from kernelcast.sampling.microbenchmarks.statistics import Measured, summarise
from kernelcast.sampling.microbenchmarks.streams import Loop, Order, Stream
from kernelcast.sampling.microbenchmarks.suite import MEMORY
from kernelcast.sampling.microbenchmarks.walk import (
    LARGE_PAGE_BYTES,
    STRIDE_BYTES,
    allocate_large_pages,
    draw_order,
    link_order,
    make_sizes,
    make_walk_source,
)
from kernelcast.sampling.microbenchmarks.working_sets import Shape, make_source


@given(length=st.integers(2, 300), seed=st.integers(0, 2**32 - 1))
def test_drawn_order_is_one_cycle(length: int, seed: int) -> None:
    """A drawn order, linked, is walked in that order, and every element before the first again."""
    order = draw_order(length, np.random.default_rng(seed)).tolist()
    successors = link_order(np.array(order, dtype=np.uint32)).tolist()
    walked = [order[0]]
    while len(walked) < length:
        walked.append(successors[walked[-1]])
    assert walked == order
    assert successors[walked[-1]] == order[0]
    assert sorted(walked) == list(range(length))


def test_all_cycles_are_drawn_alike() -> None:
    """Each of the six cycles of four elements is as likely."""
    generator = np.random.default_rng(1)
    counts = Counter(tuple(link_order(draw_order(4, generator)).tolist()) for _ in range(3000))
    assert len(counts) == math.factorial(3)
    assert all(400 < count < 600 for count in counts.values())


def _write_cache(folder: Path, level: int, kind: str, size: str, cpus: str) -> None:
    folder.mkdir()
    for name, text in (
        ("level", str(level)),
        ("type", kind),
        ("size", size),
        ("coherency_line_size", "64"),
        ("ways_of_associativity", "12"),
        ("shared_cpu_list", cpus),
    ):
        (folder / name).write_text(f"{text}\n")


def test_host_caches(tmp_path: Path) -> None:
    """Data caches are read, nearest first; instruction caches and broken entries are not."""
    _write_cache(tmp_path / "index0", 3, "Unified", "32768K", "0-7,16")
    _write_cache(tmp_path / "index1", 1, "Instruction", "32K", "0")
    _write_cache(tmp_path / "index2", 1, "Data", "48K", "0")
    _write_cache(tmp_path / "index3", 2, "Unified", "?", "0")
    (tmp_path / "index4").mkdir()
    caches = read_host_caches(tmp_path)
    assert [(one.name, one.size_bytes, one.shared_by) for one in caches] == [
        ("L1", 49152, 1),
        ("L3", 2**25, 9),
    ]


def test_no_host_caches(tmp_path: Path) -> None:
    """A system that does not describe its caches gives none."""
    assert read_host_caches(tmp_path / "missing") == ()


@pytest.mark.parametrize(("text", "value"), [("48K", 49152), ("1G", 2**30), ("x", 0), ("", 0)])
def test_sizes(text: str, value: int) -> None:
    """Sizes are read in Linux's units."""
    assert parse_size(text) == value


@pytest.mark.parametrize(("text", "value"), [("0-3,8", 5), ("7", 1), ("", 0)])
def test_lists(text: str, value: int) -> None:
    """Lists of processors are counted."""
    assert count_listed(text) == value


def _level(size: float, latency: float) -> CacheLevel:
    def around(value: float) -> Interval:
        return Interval(value=value, low=0.9 * value, high=1.1 * value)

    return CacheLevel(capacity_bytes=around(size), latency_s=around(latency), steepness=1.0)


def _fit(*levels: CacheLevel) -> LatencyFit:
    beyond = Interval(value=1e-7, low=0.9e-7, high=1.1e-7)
    return LatencyFit(levels=levels, beyond_s=beyond, noise=0.03, used=())


def _host(level: int, size: int, shared_by: int = 1) -> HostCache:
    return HostCache(
        level=level, size_bytes=size, line_bytes=64, ways=8, shared_by=shared_by, origin="test"
    )


def test_matching_shows_both_sizes() -> None:
    """A cache keeps its reported geometry and its measured size, and both sizes can be seen."""
    matched = match_caches(_fit(_level(40_000, 1e-9)), (_host(1, 49152),))
    (cache,) = matched.caches
    assert cache.size_bytes is not None
    assert cache.size_bytes.value == 40_000
    assert cache.size_bytes.source is TraitSource.MEASURED
    assert "49152" in cache.size_bytes.origin
    assert cache.ways is not None
    assert cache.ways.source is TraitSource.REPORTED
    assert cache.reported_size_bytes is not None
    assert cache.reported_size_bytes.value == 49152
    assert matched.remarks == {}


def test_disagreement_is_said() -> None:
    """A size beyond a factor of two is remarked on."""
    matched = match_caches(_fit(_level(2**23, 1e-8)), (_host(3, 2**25),))
    assert "8388608" in matched.remarks["caches/L3/agreement"]


def test_unmatched_levels_and_steps() -> None:
    """A reported cache without a step keeps its reported size; a step without a cache is said."""
    matched = match_caches(_fit(_level(2**14, 1e-9)), (_host(3, 2**25),))
    (cache,) = matched.caches
    assert cache.size_bytes is not None
    assert cache.size_bytes.source is TraitSource.REPORTED
    assert cache.latency_s is None
    assert set(matched.remarks) == {"caches/L3/latency_s", "caches/step at 16384 bytes"}


def test_unknown_device_levels_are_numbered() -> None:
    """Where nobody reports caches, levels are numbered as found."""
    matched = match_caches(_fit(_level(2**14, 1e-9), _level(2**22, 1e-8)), ())
    assert [cache.name for cache in matched.caches] == ["L1", "L2"]


def test_large_pages() -> None:
    """Memory in large pages is zero, aligned and long enough."""
    memory = allocate_large_pages(LARGE_PAGE_BYTES + 1)
    assert memory.nbytes >= LARGE_PAGE_BYTES + 1
    assert memory.ctypes.data % LARGE_PAGE_BYTES == 0
    assert not memory.any()


@given(least=st.integers(64, 4096), octaves=st.integers(1, 12), per_octave=st.integers(1, 6))
def test_array_sizes(least: int, octaves: int, per_octave: int) -> None:
    """Sizes of arrays increase, in whole strides."""
    sizes = make_sizes(least, least * 2**octaves, per_octave=per_octave)
    assert all(size % STRIDE_BYTES == 0 for size in sizes)
    assert sizes == sorted(set(sizes))


def test_kernels_have_no_double_and_balanced_braces() -> None:
    """Every kernel is written for devices without fp64, with as many braces opened as closed."""
    sources = [make_walk_source(space, 8) for space in SPACES]
    sources += [make_source(Shape(local_size=1, words=words)) for words in (1, 2, 4, 8, 16)]
    sources += [
        Stream(element_bytes=size, order=order, loop=loop, loads=4, is_copy=is_copy).source
        for size in (1, 2, 4, 8, 16, 32, 64)
        for order in Order
        for loop in Loop
        for is_copy in (False, True)
    ]
    for source in sources:
        assert "double" not in source
        assert source.count("{") == source.count("}")


def test_suite_names() -> None:
    """Names of benchmarks are short, different and stable."""
    assert [one.name for one in MEMORY] == [
        "caches", "latency", "gathers", "bandwidth", "transfers",
    ]  # fmt: skip


class _Sets:
    """Reads small sets at 200 or 210 bytes a second, larger ones at 150 or 50."""

    def __init__(self, _bench: object, shape: Shape, _most_bytes: int) -> None:
        self.shape = shape

    def round_size(self, size_bytes: int) -> int:
        return size_bytes

    def measure_load(self, size_bytes: int) -> tuple[Measured, int]:
        near, far = (210, 50) if self.shape.words == 1 else (200, 150)
        return summarise([1.0] * 5), near if size_bytes < 2**16 else far


def test_caches_are_read_as_is_fastest_in_more_than_the_nearest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Does not follow a small advantage in the nearest cache that costs three times the next."""
    shapes = (Shape(local_size=16, words=1), Shape(local_size=1, words=16))
    monkeypatch.setattr(caches, "WorkingSets", _Sets)
    monkeypatch.setattr(caches, "list_shapes", lambda _: shapes)
    bench = SimpleNamespace(description=SimpleNamespace(max_allocation_bytes=2**30))
    sizes = (Trait(value=one, source=TraitSource.MEASURED) for one in (2**15, 2**20, 2**25))
    found = caches.order_sets(
        cast("Bench", bench), tuple(CacheFacts(name="L", size_bytes=one) for one in sizes)
    )
    assert [one.shape for one in found] == [*reversed(shapes)]
