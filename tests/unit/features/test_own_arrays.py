"""Elements of a work-item's own arrays that are in no register, and loops that data end."""

import pytest

from kernelcast.features.analysis import read_facts
from kernelcast.features.counting.static import count_statically
from kernelcast.features.counting.summary import doubt_counts, summarise
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import OperationKind, OwnElement

_PARAMETERS = "global float *a, global int *b, int n, float x"
LAUNCH = NDRange(global_size=(64,), local_size=(64,))


def find_own(body: str) -> set[str]:
    """Give the names of the addresses that a kernel computes."""
    source = f"kernel void k({_PARAMETERS}) {{ {body} }}"
    return {
        operation.name
        for block in read_facts(Kernel(name="k", source=source)).blocks
        for operation in block.operations.operations
        if operation.kind is OperationKind.ADDRESS and operation.name
    }


@pytest.mark.parametrize(
    ("body", "uses"),
    [
        ("int h[8]; h[b[0] & 7]++; b[1] = h[0];", {OwnElement.UPDATE}),
        ("int h[8]; h[get_local_id(0) & 7] += 2; b[1] = h[0];", {OwnElement.UPDATE}),
        ("int s[8]; int d = 0; while (b[d] > 0) { s[d] = b[d]; ++d; } b[1] = s[0];",
         {OwnElement.STORE}),
        ("int h[2][4]; int j = b[0]; b[1] = h[1][j];", {OwnElement.LOAD}),
        ("int h[8]; for (int k = 0; k < 8; ++k) h[k] = k; b[1] = h[3];", set()),
        ("int h[8]; for (int k = 0; k < 4; ++k) { const int j = 2 * k; h[j + 1] = k; }", set()),
        ("b[b[0]] = 1;", set()),
    ],
)  # fmt: skip
def test_elements_are_in_memory_where_data_choose_them(body: str, uses: set[OwnElement]) -> None:
    """Tells data, ids and variables that go up and down from counters of loops."""
    assert find_own(body) == {one.value for one in uses}


@pytest.mark.parametrize(
    ("body", "least", "most", "note"),
    [
        ("for (int k = 0; k < 100; ++k) a[k] = sin(x);", 0.0, 0.0, ""),
        ("float v = x; while (v > 1.0f) v = sin(v) * a[0]; a[1] = v;", 3.0, 7.0, "any number"),
        ("float v = a[0]; for (int k = 0; k < 100; ++k) { v = sin(v); if (v > 1.0f) break; }"
         " a[1] = v;", 1.0, 3.0, "may end much earlier"),
    ],
)  # fmt: skip
def test_loops_that_data_end_leave_answers_in_doubt(
    body: str, least: float, most: float, note: str
) -> None:
    """Doubts counts by factors, names line and cause, and nothing where the source tells all."""
    source = f"kernel void k({_PARAMETERS}) {{ {body} }}"
    facts = read_facts(Kernel(name="k", source=source))
    doubt = doubt_counts(facts, summarise(facts, count_statically(facts, LAUNCH, {"n": 4}, [0])))
    assert least <= doubt.half_width <= most
    assert bool(doubt.notes) == bool(note)
    assert all("line 1: loop ends depend on data" in one and note in one for one in doubt.notes)


def test_work_beside_a_loop_that_data_end_is_not_doubted() -> None:
    """Leaves less in doubt the less of the work is within the loop."""
    body = "float v = x; while (v > 1.0f) v *= a[0]; for (int k = 0; k < {}; ++k) a[k] = sin(v);"
    found = []
    for trips in (1, 100_000):
        text = body.replace("{}", str(trips))
        source = f"kernel void k({_PARAMETERS}) {{ {text} }}"
        facts = read_facts(Kernel(name="k", source=source))
        sample = count_statically(facts, LAUNCH, {}, [0])
        found.append(doubt_counts(facts, summarise(facts, sample)).half_width)
    assert found[1] < found[0] / 2
