from collections.abc import Mapping

import numpy as np
import pytest

from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.analysis import analyse
from kernelcast.features.touched_ranges import find_active_box
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange

STAR = """kernel void star(global const float *a, global float *b, int w, int h, int d) {
  int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
  if (x < R || y < R || z < R || x >= w - R || y >= h - R || z >= d - R) return;
  int p = (z * h + y) * w + x;
  float s = 0;
  for (int r = 1; r <= R; r++) s += a[p - r] + a[p + r] + a[p - r * w * h];
  b[p] = s;
}"""


def read(source: str, name: str, *options: str) -> KernelFacts:
    """Analyse a kernel."""
    return analyse(Kernel(name=name, source=source, build_options=options)).facts


@pytest.mark.parametrize(("radius", "offset"), [(1, 0), (4, 0), (9, 0), (4, 3)])
def test_stencils_do_nothing_in_their_borders(radius: int, offset: int) -> None:
    """Finds the box that a look at every work-item finds."""
    extents, local = (48, 40, 30), (16, 8, 1)
    ndrange = NDRange(global_size=extents, local_size=local, global_offset=(0, 0, offset))
    scalars: Mapping[str, int] = dict(zip("whd", extents, strict=True))
    found = find_active_box(read(STAR, "star", f"-DR={radius}"), ndrange, scalars)
    starts, shape = [], []
    for extent, size, first in zip(extents, local, ndrange.global_offset, strict=True):
        items = np.arange(first, first + extent)
        groups = (np.flatnonzero((items >= radius) & (items < extent - radius))) // size
        starts.append(int(groups.min()))
        shape.append(int(groups.max() - groups.min() + 1))
    assert found == GroupBox(start=tuple(starts), shape=tuple(shape))


def test_conditions_on_data_count_as_met() -> None:
    """Takes no work-group for idle that data might set to work."""
    source = "kernel void k(global int *a) { int i = get_global_id(0); if (a[i] > 0) a[i] = 1; }"
    ndrange = NDRange(global_size=(640,), local_size=(64,))
    assert find_active_box(read(source, "k"), ndrange, {}) == GroupBox(start=(0,), shape=(10,))


def test_unknown_scalars_leave_everything_active() -> None:
    """Gives the whole index space where a bound's value is not known."""
    source = (
        "kernel void k(global int *a, int n) { int i = get_global_id(0); if (i < n) a[i] = 1; }"
    )
    ndrange = NDRange(global_size=(640,), local_size=(64,))
    facts = read(source, "k")
    assert find_active_box(facts, ndrange, {}) == GroupBox(start=(0,), shape=(10,))
    assert find_active_box(facts, ndrange, {"n": 70}) == GroupBox(start=(0,), shape=(2,))
    assert find_active_box(facts, ndrange, {"n": 0}) is None


def test_partial_work_groups_at_the_end_are_active() -> None:
    """Counts a last work-group that is not full."""
    source = "kernel void k(global int *a) { a[get_group_id(0) * 64 + get_local_id(0)] = 1; }"
    ndrange = NDRange(global_size=(100,), local_size=(64,))
    assert find_active_box(read(source, "k"), ndrange, {}) == GroupBox(start=(0,), shape=(2,))
