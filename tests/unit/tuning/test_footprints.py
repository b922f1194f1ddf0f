"""Lines that nested loops touch, and which of them come from farther away."""

from collections.abc import Sequence
from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.tuning.cpu_cost import (
    Axis,
    Box,
    CacheFootprint,
    Moved,
    Shape,
)  # fmt: skip

LINE = 64
L1 = (32768, 8)


def make_axes(*extents: int) -> list[Axis]:
    """Name axes by their place."""
    return [Axis(name=str(at), extent=extent) for at, extent in enumerate(extents)]


def reach(box: Box, axes: Sequence[Axis]) -> Shape:
    """Give the places that all axes reach."""
    return box.list_shapes(axes, LINE)[-1]


def count_moved(boxes: Sequence[Box], axes: Sequence[Axis], cache: tuple[int, int]) -> Moved:
    """Count lines by a footprint that nobody has asked before."""
    return CacheFootprint(boxes, axes, LINE).count_moved(*cache)


def test_conflicts_cost_what_capacity_would_not() -> None:
    """A column read row by row is reused where its rows fall into different sets only."""
    axes = make_axes(64, 16)  # 64 rows, then the next of 16 floats in each
    good = count_moved([Box(buffer="a", bytes=4, strides=(4096 + 64, 4))], axes, L1)
    bad = count_moved([Box(buffer="a", bytes=4, strides=(4096, 4))], axes, L1)
    assert good.loaded == pytest.approx(64, rel=0.02)
    assert bad.loaded == pytest.approx(64 * 16)


def test_axes_that_are_not_around_do_not_repeat() -> None:
    """What stands behind a loop is not executed by its iterations."""
    axes = make_axes(10_000, 10_000)
    box = Box(buffer="a", bytes=4, strides=(0, 64), inside=(False, True))
    other = Box(buffer="b", bytes=4, strides=(64, 640_000))
    assert count_moved([box, other], axes, L1).loaded == pytest.approx(10_000 + 1e8)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.sampled_from([0, 4, 8, 64, 256, 4096])),
             min_size=1, max_size=4)
)  # fmt: skip
def test_lines_are_bounded_by_enumeration(dims: list[tuple[int, int]]) -> None:
    """At least half and at most twice the lines that really differ, and never above executions."""
    axes = make_axes(*(extent for extent, _ in dims))
    strides = tuple(stride for _, stride in dims)
    counted = reach(Box(buffer="a", bytes=4, strides=strides), axes).lines
    places = product(*(range(extent) for extent, _ in dims))
    real = {
        sum(at * step for at, step in zip(place, strides, strict=True)) // LINE for place in places
    }
    assert counted <= prod(extent for extent, _ in dims) + 1e-9
    assert len(real) / 2 <= counted <= 2 * len(real) + 1


@settings(max_examples=40)
@given(st.integers(1, 64), st.integers(1, 64), st.sampled_from([4, 64, 1024, 4160]))
def test_a_larger_cache_never_moves_more(rows: int, columns: int, step: int) -> None:
    """Whatever the loops, more room and more ways hold at least as much."""
    boxes = [Box(buffer="a", bytes=4, strides=(step, 4)), Box(buffer="b", bytes=4, strides=(4, 0))]
    axes = make_axes(rows, columns)
    small = count_moved(boxes, axes, (4096, 4))
    large = count_moved(boxes, axes, (65536, 16))
    assert large.loaded <= small.loaded * (1 + 1e-9)
