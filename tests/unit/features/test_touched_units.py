"""What a sampled launch touches per work-group, beside what the whole one does."""

import pytest

from kernelcast.features.analysis import analyse
from kernelcast.features.counting.touched_bytes import compare_touched
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange

NDRANGE = NDRange(global_size=(64 * 64,), local_size=(64,))
ONE = GroupBox(start=(8,), shape=(1,))


def compare(body: str, box: GroupBox = ONE, **scalars: int) -> tuple[float, float] | None:
    """Compare a box of a one-dimensional launch of a kernel with that body."""
    source = f"kernel void k(global float *x, global int *i, int n) {{ {body} }}"
    facts = analyse(Kernel(name="k", source=source)).facts
    return compare_touched(facts, NDRANGE, {"n": 7, **scalars}, box)


def test_streams_share_pages_and_no_lines() -> None:
    """A work-group of 256 bytes alone has a page for itself, of the launch a sixteenth of one."""
    assert compare("x[get_global_id(0)] = 1;") == (1.0, 16.0)
    assert compare("x[get_global_id(0)] = 1;", GroupBox(start=(0,), shape=(64,))) == (1.0, 1.0)


def test_what_all_share_is_paid_by_the_few() -> None:
    """One line that every work-group loads is a whole one for a box of one."""
    lines, pages = compare("x[0] = x[n];") or (0.0, 0.0)
    assert (lines, pages) == (64.0, 64.0)


@pytest.mark.parametrize("body", ["x[i[get_global_id(0)]] = 1;", "int k = 3; k += n;"])
def test_what_is_not_known_is_absent(body: str) -> None:
    """Where addresses depend on data, and where nothing is touched, there is no ratio."""
    assert compare(body) is None
