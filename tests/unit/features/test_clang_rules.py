"""Operations as clang executes them without optimisation; every number here is Oclgrind's."""

import pytest

from kernelcast.expressions.kernel_facts import ONCE
from kernelcast.features.analysis import analyse
from kernelcast.records.kernel import Kernel
from kernelcast.records.operations import OperationCounts, OperationKind, add_weighted


def execute(body: str, *counters: int) -> OperationCounts:
    """Give what a work-item executes whose counters end so."""
    source = f"kernel void k(global int *b, int n) {{ {body} }}"
    totals = dict(enumerate(counters)) | {ONCE: 1}
    return add_weighted(
        (block.operations, sum(factor * totals[counter] for counter, factor in block.count))
        for block in analyse(Kernel(name="k", source=source)).facts.blocks
    )


@pytest.mark.parametrize(
    ("body", "counters", "branches"),
    [
        ("if (n > 2) b[0] = 1;", (1,), 2),
        ("if (n > 2 && b[0]) b[1] = 2;", (1, 1), 3),
        ("if (n > 2 ? b[0] : b[1] > 3) b[1] = 2;", (1, 1), 3),
        ("for (int k = 0; k < n; ++k) b[k] = k;", (3,), 11),
        # A loop's condition is a value first: one more jump to where both sides meet.
        ("int k = 0; while (k < n && b[k]) ++k;", (3, 4), 16),
        ("do b[0] = 1; while (0);", (1,), 2),
        ("while (0) b[0] = 1;", (0,), 2),
        ("for (; 0;) b[0] = 1;", (0,), 2),
        ("while (1) { if (b[0]) break; }", (2, 1), 5),
        ("switch (n) { case 0: b[0] = 1; break; default: b[0] = 2; }", (1, 0), 2),
    ],
)
def test_branches(body: str, counters: tuple[int, ...], branches: int) -> None:
    """Counts conditional branches, and jumps between blocks."""
    assert execute(body, *counters).count(OperationKind.BRANCH, OperationKind.JUMP) == branches


@pytest.mark.parametrize(
    ("rest", "jumps"), [("b[0] = 1;", 1), ("if (n) b[0] = 1;", 0), ("{ while (n) --n; ; }", 1)]
)
def test_the_end_of_a_function_is_jumped_to_unless_it_is_an_empty_block(
    rest: str, jumps: int
) -> None:
    """After an early return, the end of a loop or an `if` is where the function ends."""
    executed = execute(f"if (n > 2) return; {rest}", 0, 0)
    assert executed.count(OperationKind.JUMP) == jumps


def test_conditions_are_compared_once() -> None:
    """Compares a number with zero where it becomes a condition, and a `bool` never."""
    executed = execute("bool q = n; if (q) b[0] = !q; if (!(n > 2)) b[1] = 2;", 1, 1)
    assert executed.count(OperationKind.COMPARE) == 2
    assert executed.count(OperationKind.LOGIC) == 1


def test_an_assignment_computes_in_the_wider_type() -> None:
    """Multiplies as floating point, converts there and back, and converts no constant."""
    executed = execute("short s = 0; b[0] *= 2.5f;")
    assert [str(one) for one in executed.operations if one.kind is OperationKind.MULTIPLY] == [
        "multiply fp32"
    ]
    assert executed.count(OperationKind.CONVERT) == 2
