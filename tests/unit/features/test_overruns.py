"""Accesses that leave their buffers are found with a work-item that does it, and no others."""

import pytest

from kernelcast.features.analysis import analyse
from kernelcast.features.touched_ranges import find_overruns
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange

LINE = NDRange(global_size=(64,), local_size=(16,))
GUARDED = """
kernel void f(global float *a, int n)
{
    int i = get_global_id(0);
    if (i < n)
        a[i] = 1.0f;
}
"""
ROWS = """
kernel void f(global float *a, int n)
{
    int x = get_global_id(0), y = get_global_id(1);
    for (int k = 0; k < n; k++)
        a[(y * 64 + x) * n + k] += 1.0f;
}
"""
EARLIER = """
kernel void f(global float *a, int n)
{
    a[(int)get_global_id(0) - n] = 1.0f;
}
"""
DATA = """
kernel void f(global int *a, int n)
{
    int i = get_global_id(0);
    if (a[i] > n)
        a[i + 1000] = 1;
    a[a[i]] = 2;
}
"""
LEFT = """
kernel void f(global int *a, int n)
{
    for (int k = 0; k < n; k++) {
        if (a[k] == 0)
            break;
        a[k + 1] = 0;
    }
}
"""
PACKED = """
kernel void f(global float *a, int n)
{
    int i = get_global_id(0);
    for (int k = 0; k <= i; k++)
        a[i * (i + 1) / 2 + k] = 1.0f;
}
"""
GUARDED_SQUARE = """
kernel void f(global float *a, int n)
{
    int i = get_global_id(0);
    if (i < n)
        a[i * i - 1] = 1.0f;
}
"""


def _find(source: str, ndrange: NDRange, size: int, n: int) -> list[tuple[int, tuple[int, ...]]]:
    facts = analyse(Kernel(name="f", source=source)).facts
    found = find_overruns(facts, ndrange, {"a": size}, {"n": n})
    return [(one.offset_bytes, one.work_item) for one in found]


def test_a_guard_that_is_too_wide_is_found() -> None:
    """Work-item 40 is the first beyond 40 elements."""
    assert _find(GUARDED, LINE, 40 * 4, 64) == [(160, (40,))]
    assert _find(GUARDED, LINE, 40 * 4, 40) == []
    assert _find(GUARDED, LINE, 64 * 4, 64) == []


def test_an_element_that_sticks_out_is_found() -> None:
    """The last element begins inside and ends outside."""
    assert _find(GUARDED, LINE, 64 * 4 - 1, 64) == [(252, (63,))]


def test_last_iterations_and_the_last_row_count() -> None:
    """Only the very last element of a two-dimensional launch is missing."""
    ndrange = NDRange(global_size=(64, 8), local_size=(8, 2))
    assert _find(ROWS, ndrange, 64 * 8 * 5 * 4, 5) == []
    found = _find(ROWS, ndrange, 64 * 8 * 5 * 4 - 4, 5)
    assert found
    assert all(one == (64 * 8 * 5 * 4 - 4, (63, 7)) for one in found)


def test_addresses_before_the_buffer_are_found() -> None:
    """A negative index."""
    assert _find(EARLIER, LINE, 64 * 4, 1) == [(-4, (0,))]


def test_global_offsets_count() -> None:
    """The launch begins at work-item 100."""
    ndrange = NDRange(global_size=(64,), local_size=(16,), global_offset=(100,))
    assert _find(GUARDED, ndrange, 164 * 4, 200) == []
    assert _find(GUARDED, ndrange, 150 * 4, 200) == [(600, (150,))]


@pytest.mark.parametrize("source", [DATA, LEFT])
def test_what_data_decide_is_not_judged(source: str) -> None:
    """Conditions, indices and loop ends that nobody knows."""
    found = _find(source, LINE, 64 * 4, 64)
    assert all(offset < 64 * 4 for offset, _ in found)
    assert found == []


def test_products_of_ids_are_followed() -> None:
    """The last row of a packed triangle, and the first element of squares that begin below 0."""
    elements = 64 * 65 // 2
    assert _find(PACKED, LINE, 4 * elements, 64) == []
    assert _find(PACKED, LINE, 4 * elements - 8, 64) == [(4 * elements - 8, (63,))]
    assert _find(GUARDED_SQUARE, LINE, 4 * 64 * 64, 64) == [(-4, (0,))]
    assert _find(GUARDED_SQUARE, LINE, 4 * 64 * 64, 0) == []


def test_scalars_without_a_value_prove_nothing() -> None:
    """A size that nobody knows, as a member of a structure, may be small enough."""
    facts = analyse(Kernel(name="f", source=GUARDED)).facts
    assert find_overruns(facts, LINE, {"a": 4}, {}) == []
    assert find_overruns(facts, LINE, {"a": 4}, {"n": 2})
