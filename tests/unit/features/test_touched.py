"""What launches and boxes of work-groups touch, and which work-groups touch nothing."""

import re
from collections.abc import Mapping

import numpy as np
import pytest

from kernelcast.features.touched_ranges import (
    compare_touched,
    count_touched_bytes,
    find_active_box,
    find_overruns,
    find_touched,
)
from kernelcast.records.ndrange import GroupBox, NDRange
from support.kernel_facts import facts_of

N = 1 << 16


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a[i] = b[i];", 8 * N),
        ("if (i < n) a[i] = b[i];", 8 * N),
        ("if (i < n / 2) a[i] = 1;", 2 * N),
        ("a[i] = b[0];", 4 * N + 4),
        ("a[i] = a[i] + 1;", 4 * N),
        ("a[(int)b[i]] = 1;", 4 * N),
        ("float s = 0; for (int k = 0; k < n; k++) s += b[k]; a[i] = s;", 4 * N + 4),
        ("if (n < 0) a[i] = 1;", 0),
    ],
)
def test_counts_what_the_source_proves(body: str, expected: float) -> None:
    """Each byte once; what depends on data, and iterations but the first, count as nothing."""
    head = "kernel void k(global float *a, global const float *b, int n)"
    facts = facts_of(f"{head} {{ int i = get_global_id(0); {body} }}")
    sizes = {"a": 4 * N, "b": 4 * N}
    launch = NDRange(global_size=(N,), local_size=(64,))
    found = count_touched_bytes(facts, launch, {"n": N}, sizes)
    assert found == pytest.approx(expected, rel=0.05, abs=4 * 64 * 16)


@pytest.mark.parametrize(
    ("body", "box", "expected"),
    [
        ("x[get_global_id(0)] = 1;", GroupBox(start=(8,), shape=(1,)), (1.0, 16.0)),
        ("x[get_global_id(0)] = 1;", GroupBox(start=(0,), shape=(64,)), (1.0, 1.0)),
        ("x[0] = x[n];", GroupBox(start=(8,), shape=(1,)), (64.0, 64.0)),
        ("x[i[get_global_id(0)]] = 1;", GroupBox(start=(8,), shape=(1,)), None),
        ("int k = 3; k += n;", GroupBox(start=(8,), shape=(1,)), None),
    ],
)
def test_boxes_pay_for_what_work_groups_share(
    body: str, box: GroupBox, expected: tuple[float, float] | None
) -> None:
    """A work-group of 256 bytes alone has a page for itself, and a line that all load."""
    facts = facts_of(f"kernel void k(global float *x, global int *i, int n) {{ {body} }}")
    launch = NDRange(global_size=(64 * 64,), local_size=(64,))
    assert compare_touched(facts, launch, {"n": 7}, box) == expected


def test_ranges_hold_all_addresses_of_a_box() -> None:
    """In two dimensions, with a loop and a division; no wider than the rows of the box."""
    source = """kernel void k(global float *a, global const float *b, int w) {
        int x = get_global_id(0), y = get_global_id(1);
        for (int k = 0; k < 3; k++)
            a[y * w + x] += b[(y + k) * w + x / 2] + b[get_group_id(0) * get_local_size(0)];
    }"""
    ndrange = NDRange(global_size=(40, 12), local_size=(8, 4))
    touched = find_touched(facts_of(source), ndrange, {"w": 64})
    assert touched is not None
    assert touched.places >= {0, 1}
    box = GroupBox(start=(1, 1), shape=(2, 1))
    ranges = touched.list_ranges(box)
    x, y, k = np.meshgrid(np.arange(8, 24), np.arange(4, 8), np.arange(3))
    for place, index in ((0, 64 * y + x), (1, 64 * (y + k) + x // 2), (1, x // 8 * 8)):
        for offset in np.unique(4 * index):
            assert any(low <= offset and offset + 4 <= high for low, high in ranges[place])
    assert touched.without({0}).list_ranges(box).keys() == touched.places - {0}
    assert min(low for low, _ in ranges[0]) == 4 * (4 * 64 + 8)
    assert max(high for _, high in ranges[0]) == 4 * (7 * 64 + 24)


@pytest.mark.parametrize(
    ("body", "known"),
    [
        ("a[b[i]] = 1;", {1}),
        ("for (int k = 0; k < b[i]; k++) a[i + k] = 1;", set()),
        ("a[i] = b[i];", {0, 1}),
        ("global int *p = a; while (b[i] > *p) p += b[i]; *p = 1;", set()),
    ],
)
def test_what_data_decide_has_no_ranges(body: str, known: set[int]) -> None:
    """Of buffers that address expressions do not tell of, nothing is promised."""
    source = f"kernel void k(global int *a, global int *b) {{ int i = get_global_id(0); {body} }}"
    facts = facts_of(source)
    found = find_touched(facts, NDRange(global_size=(64,), local_size=(8,)), {})
    assert (set() if found is None else found.places) == known


STAR = """kernel void k(global const float *a, global float *b, int w, int h, int d) {
  int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
  if (x < R || y < R || z < R || x >= w - R || y >= h - R || z >= d - R) return;
  int p = (z * h + y) * w + x;
  float s = 0;
  for (int r = 1; r <= R; r++) s += a[p - r] + a[p + r] + a[p - r * w * h];
  b[p] = s;
}"""


@pytest.mark.parametrize(("radius", "offset"), [(1, 0), (4, 0), (9, 0), (4, 3)])
def test_stencils_do_nothing_in_their_borders(radius: int, offset: int) -> None:
    extents, local = (48, 40, 30), (16, 8, 1)
    ndrange = NDRange(global_size=extents, local_size=local, global_offset=(0, 0, offset))
    scalars: Mapping[str, int] = dict(zip("whd", extents, strict=True))
    found = find_active_box(facts_of(STAR, f"-DR={radius}"), ndrange, scalars)
    starts, shape = [], []
    for extent, size, first in zip(extents, local, ndrange.global_offset, strict=True):
        items = np.arange(first, first + extent)
        groups = (np.flatnonzero((items >= radius) & (items < extent - radius))) // size
        starts.append(int(groups.min()))
        shape.append(int(groups.max() - groups.min() + 1))
    assert found == GroupBox(start=tuple(starts), shape=tuple(shape))


def test_unknown_scalars_leave_everything_active() -> None:
    facts = facts_of(
        "kernel void k(global int *a, int n) { int i = get_global_id(0); if (i < n) a[i] = 1; }"
    )
    ndrange = NDRange(global_size=(640,), local_size=(64,))
    assert find_active_box(facts, ndrange, {}) == GroupBox(start=(0,), shape=(10,))
    assert find_active_box(facts, ndrange, {"n": 70}) == GroupBox(start=(0,), shape=(2,))
    assert find_active_box(facts, ndrange, {"n": 0}) is None


SHORT = NDRange(global_size=(64,), local_size=(16,))
GUARDED = "if (i < n) a[i] = 1;"
REPEATED_ROWS = "for (int k = 0; k < n; k++) a[(j * 64 + i) * n + k] += 1;"
EARLIER = "a[i - n] = 1;"
DATA = "if (a[i] > n) a[i + 1000] = 1; a[a[i]] = 2;"
LEFT = "for (int k = 0; k < n; k++) { if (a[k] == 0) break; a[k + 1] = 0; }"
PACKED = "for (int k = 0; k <= i; k++) a[i * (i + 1) / 2 + k] = 1;"
GUARDED_SQUARE = "if (i < n) a[i * i - 1] = 1;"


GRID = NDRange(global_size=(64, 8), local_size=(8, 2))
SHIFTED = NDRange(global_size=(64,), local_size=(16,), global_offset=(100,))
PACKED_BYTES = 4 * 64 * 65 // 2


@pytest.mark.parametrize(
    ("body", "ndrange", "size", "n", "expected"),
    [
        (GUARDED, SHORT, 4, None, []),
        (GUARDED, SHORT, 4, 2, [(4, (1,))]),
        (GUARDED, SHORT, 40 * 4, 64, [(160, (40,))]),
        (GUARDED, SHORT, 40 * 4, 40, []),
        (GUARDED, SHORT, 64 * 4, 64, []),
        (GUARDED, SHORT, 64 * 4 - 1, 64, [(252, (63,))]),
        (EARLIER, SHORT, 64 * 4, 1, [(-4, (0,))]),
        (GUARDED, SHIFTED, 164 * 4, 200, []),
        (GUARDED, SHIFTED, 150 * 4, 200, [(600, (150,))]),
        (PACKED, SHORT, PACKED_BYTES, 64, []),
        (PACKED, SHORT, PACKED_BYTES - 8, 64, [(PACKED_BYTES - 8, (63,))]),
        (GUARDED_SQUARE, SHORT, 4 * 64 * 64, 64, [(-4, (0,))]),
        (GUARDED_SQUARE, SHORT, 4 * 64 * 64, 0, []),
        (DATA, SHORT, 64 * 4, 64, []),
        (LEFT, SHORT, 64 * 4, 64, []),
        (REPEATED_ROWS, GRID, 64 * 8 * 5 * 4, 5, []),
        (REPEATED_ROWS, GRID, 64 * 8 * 5 * 4 - 4, 5, [(64 * 8 * 5 * 4 - 4, (63, 7))]),
    ],
)
def test_the_first_element_outside_is_found(
    body: str,
    ndrange: NDRange,
    size: int,
    n: int | None,
    expected: list[tuple[int, tuple[int, ...]]],
) -> None:
    """By too wide a guard, a part of an element, a negative index, the last iteration of the last
    row; data, and scalars that nobody knows, decide of nothing."""
    facts = facts_of(
        "kernel void k(global int *a, int n)"
        f" {{ int i = get_global_id(0), j = get_global_id(1); {body} }}"
    )
    scalars = {} if n is None else {"n": n}
    said = "\n".join(find_overruns(facts, ndrange, {"a": size}, scalars))
    places = re.findall(r"work-item \((.+)\) is at byte (.+), and", said)
    found = {(int(at.replace(",", "")), tuple(map(int, item.split(", ")))) for item, at in places}
    assert found == {*expected}
    assert bool(said) == bool(expected)
