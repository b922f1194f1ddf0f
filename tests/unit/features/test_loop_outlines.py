"""What loops change and how they end, read in one walk through a function."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.expressions import Expr, Relation, Symbol, SymbolKind, compare, less
from kernelcast.features.addresses.assignments import Outline, find_changes
from kernelcast.features.addresses.counting import count_iterations
from kernelcast.features.analysis import analyse_parsed
from kernelcast.features.parsing import parse_source
from kernelcast.features.syntax import kinds

NESTED = """
kernel void k(global int *a, int n) {
    int x = 0, y = 0, z = 0;
    for (int i = 0; i < n; i++) {
        int own = i;
        own++;
        if (n > 3) x++;
        for (int j = 0; j < n; j++) {
            if (j == 2) continue;
            y++;
        }
        z++;
    }
    a[x] = y + z;
}
"""


def test_nested_loops_are_read_at_once() -> None:
    """A variable steps steadily where nothing skips its step, and loops own what they declare."""
    function = analyse_parsed(parse_source(NESTED), "k").function
    nodes = list(function.walk())
    names = {one.key: one.spelling for one in nodes if one.kind == kinds.VARIABLE}
    outline = Outline(function.children[-1])
    found = []
    for loop in (one for one in nodes if one.kind == kinds.FOR):
        changes = outline.find_changes(loop)
        assert changes == find_changes(loop)
        found.append({
            names[key]: [one.is_steady for one in each]
            for key, each in changes.assignments.items()
        })  # fmt: skip
    assert found == [
        {"x": [False], "y": [False], "z": [True], "i": [True]},
        {"y": [False], "j": [True]},
    ]


@pytest.mark.parametrize(
    ("body", "is_exact"),
    [
        ("a[i] = 1;", True),
        ("break;", False),
        ("if (n) return;", False),
        ("switch (n) { case 1: break; }", True),
        ("switch (n) { case 1: return; }", False),
        ("for (int j = 0; j < 9; j++) break;", True),
        ("for (int j = 0; j < 9; j++) return;", False),
        ("do { if (n) break; a[i] = 1; } while (0); if (n) break;", False),
    ],
)
def test_jumps_out_of_a_loop_are_seen(body: str, is_exact: bool) -> None:
    """Only jumps that leave the loop itself make its bound an upper bound."""
    source = f"kernel void k(global int *a, int n) {{ for (int i = 0; i < n; i++) {{ {body} }} }}"
    outer, *_ = sorted(analyse_parsed(parse_source(source), "k").facts.loops, key=lambda x: x.name)
    assert outer.is_exact is is_exact


@given(st.integers(-50, 6000), st.integers(-40, 40).filter(bool), st.sampled_from(Relation))
def test_loops_end_where_trying_says(start: int, slope: int, relation: Relation) -> None:
    """A condition on a sum is solved, with the result of trying one iteration after the other."""
    k = Symbol(SymbolKind.LOOP, "k")
    condition = compare(slope * Expr.symbol(k) + start, relation)
    tried = next((one for one in range(4096) if not condition.evaluate({k: one})), None)
    if tried is not None and condition.symbols():
        assert count_iterations(condition, k, {}) == (Expr.constant(tried), True)


def test_the_last_iterations_that_are_tried() -> None:
    """Longer loops are left to formulas, which agree."""
    k = Symbol(SymbolKind.LOOP, "k")
    for count in (4094, 4095, 4096, 5000):
        assert count_iterations(less(k, count), k, {}) == (Expr.constant(count), True)
