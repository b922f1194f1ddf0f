"""What boxes of work-groups touch lies in the ranges that the source tells of."""

import numpy as np
import pytest

from kernelcast.expressions import Symbol, SymbolKind
from kernelcast.expressions.axes import bind_names
from kernelcast.features.analysis import analyse
from kernelcast.features.counting.bindings import bind_ids
from kernelcast.features.touched_ranges import find_touched
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange

ROWS = """
kernel void f(global float *a, global const float *b, int w)
{
    int x = get_global_id(0), y = get_global_id(1);
    for (int k = 0; k < 3; k++)
        a[y * w + x] += b[(y + k) * w + x / 2] + b[get_group_id(0) * get_local_size(0)];
}
"""
NDRANGE = NDRange(global_size=(40, 12), local_size=(8, 4))


def test_ranges_hold_all_addresses_of_a_box() -> None:
    """In two dimensions, with a loop and a division; no wider than the rows of the box."""
    facts = analyse(Kernel(name="f", source=ROWS)).facts
    touched = find_touched(facts, NDRANGE, {"w": 64})
    assert touched is not None
    assert touched.places >= {0, 1}
    box = GroupBox(start=(1, 1), shape=(2, 1))
    ranges = touched.list_ranges(box)
    groups = [x + 5 * y for y in (1,) for x in (1, 2)]
    known = bind_ids(NDRANGE, groups).bindings | bind_names({"w": 64})
    for access in facts.accesses:
        place = {"a": 0, "b": 1}[str(access.buffer)]
        assert access.offset_bytes is not None
        for k in range(3):
            loops = {Symbol(SymbolKind.LOOP, one.name): k for one in access.loops}
            for offset in np.unique(np.asarray(access.offset_bytes.evaluate({**known, **loops}))):
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
    source = f"kernel void f(global int *a, global int *b) {{ int i = get_global_id(0); {body} }}"
    facts = analyse(Kernel(name="f", source=source)).facts
    found = find_touched(facts, NDRange(global_size=(64,), local_size=(8,)), {})
    assert (set() if found is None else found.places) == known
