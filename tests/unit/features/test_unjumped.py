"""What work-items go through where lanes are masked and nothing is jumped over."""

import pytest

from kernelcast.features.analysis import read_facts
from kernelcast.features.counting.static import count_statically
from kernelcast.features.counting.summary import count_unjumped, summarise
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import MemoryOperation, MemorySpace, OperationKind

LAUNCH = NDRange(global_size=(64,), local_size=(64,))
STORE = MemoryOperation(space=MemorySpace.GLOBAL, is_store=True, bytes=4)
LOAD = MemoryOperation(space=MemorySpace.GLOBAL, is_store=False, bytes=4)


@pytest.mark.parametrize(
    ("body", "executed", "unjumped"),
    [
        ("a[i] = sin(x);", 1, 1),
        ("if (i < 16) a[i] = sin(x); else a[i] = x;", 0.25, 1),
        ("if (i < 16) a[i] = sin(x); else a[i] = sin(x + 1);", 1, 2),
        ("if (i >= 16) return; a[i] = sin(x);", 0.25, 1),
        ("for (int k = 0; k < 5; ++k) a[k] = sin(x);", 5, 5),
        ("for (int k = 0; k < n; ++k) a[k] = sin(x);", 0, 1),
        ("if (i < 16) for (int k = 0; k < 5; ++k) a[k] = sin(x);", 1.25, 2),
        ("if (i < 16) a[i] = f(x);", 0.25, 1),
        ("if (i >= 16) return; a[i] = f(x);", 0.25, 1),
    ],
)
def test_both_sides_of_conditions_are_gone_through(
    body: str, executed: float, unjumped: float
) -> None:
    """Counts what no work-item executes, and loops once where one has to wait at them."""
    source = (
        "float f(float x) { return sin(x); }"
        f"kernel void k(global float *a, int n, float x) {{ int i = get_global_id(0); {body} }}"
    )
    facts = read_facts(Kernel(name="k", source=source))
    counters = summarise(facts, count_statically(facts, LAUNCH, {"n": 0}, [0]))
    assert counters.executed.count(OperationKind.SPECIAL) == pytest.approx(executed)
    found = count_unjumped(facts, counters)
    assert found.count(OperationKind.SPECIAL) == pytest.approx(unjumped)


def test_masked_lanes_load_and_do_not_store() -> None:
    """Counts loads as arithmetic, but stores and atomics as they are executed."""
    source = (
        "kernel void k(global int *a) { int i = get_global_id(0);"
        " if (i < 16) { a[i] = a[i + 1]; atomic_inc(a); } }"
    )
    facts = read_facts(Kernel(name="k", source=source))
    counters = summarise(facts, count_statically(facts, LAUNCH, {}, [0]))
    found = count_unjumped(facts, counters)
    assert found.memory[LOAD] == pytest.approx(1)
    assert found.memory[STORE] == pytest.approx(0.25)
    assert found.count(OperationKind.ATOMIC) == pytest.approx(0.25)
