"""Branches of loop bodies: which iterations execute what."""

import itertools

import pytest

from kernelcast.expressions import TRUE, Symbol, SymbolKind
from kernelcast.expressions.loop_nest import LoopNest
from kernelcast.features.loop_nest import read_loop_nest
from kernelcast.records.errors import InputError
from kernelcast.records.operations import OperationKind as Kind

HEAD = "double a[N][N], b[N][N], s, t; "
NEST = HEAD + "for (int j = 0; j < N; j++) for (int i = 0; i < N; i++) "


def list_executed(nest: LoopNest, size: int, decided: int = 1) -> dict[str, set[tuple[int, int]]]:
    """Give the iterations (j, i) that execute each access, by its text and kind."""
    loops = [Symbol(SymbolKind.LOOP, name) for name in "ji"]
    return {
        ("store " if one.is_store else "load ") + one.text: {
            place
            for place in itertools.product(range(size), repeat=2)
            if one.condition.evaluate({
                Symbol(SymbolKind.SCALAR, "N"): size, **dict(zip(loops, place, strict=True)),
                **dict.fromkeys(nest.decisions, decided),
            })
        }
        for one in nest.accesses
    }  # fmt: skip


ALL = set(itertools.product(range(9), repeat=2))


@pytest.mark.parametrize(
    "body",
    [
        "if (i > 0 && i < N - 1) b[j][i] = a[j][i]; else b[j][i] = 0;",
        "{ if (!(i > 0 && i < N - 1)) { b[j][i] = 0; continue; } b[j][i] = a[j][i]; }",
        "{ if (i == 0 || i >= N - 1) b[j][i] = 0; else { double x = a[j][i]; b[j][i] = x; } }",
        "b[j][i] = i > 0 && i + 1 < N ? a[j][i] : 0;",
        "{ if (i < 1) { b[j][i] = 0; } else if (i == N - 1) b[j][i] = 0; else b[j][i] = a[j][i]; }",
    ],
)  # fmt: skip
def test_the_same_branch_in_other_words_is_the_same(body: str) -> None:
    """`else`, `continue`, `? :` and negations tell the same iterations apart."""
    found = list_executed(read_loop_nest(NEST + body, {}), 9)
    inner = {place for place in ALL if 0 < place[1] < 8}
    assert found == {"load a[j][i]": inner, "store b[j][i]": ALL}


@pytest.mark.parametrize(
    "source",
    [
        "for (int j = 0; j < N; j++) if (j % 3 == 1) for (int i = 0; i < N; i++) a[j][i] = 1;",
        "for (int j = 0; j < N; j++) { if (j % 3 != 1) continue; "
        "for (int i = 0; i < N; i++) a[j][i] = 1; }",
    ],
)
def test_conditions_stand_between_loops(source: str) -> None:
    """A condition around an inner loop is one of all that stands in it."""
    found = list_executed(read_loop_nest(HEAD + source, {}), 9)
    assert found == {"store a[j][i]": {place for place in ALL if place[0] % 3 == 1}}


def test_data_decide() -> None:
    """A condition on data is a decision; what it loads itself is loaded anyhow."""
    nest = read_loop_nest(NEST + "if (a[j][i] > t) b[j][i] = 2 * a[j][i];", {})
    assert [one.name for one in nest.decisions] == ["a[j][i] > t in line 1"]
    assert list_executed(nest, 9) == {"load a[j][i]": ALL, "store b[j][i]": ALL}
    assert list_executed(nest, 9, decided=0) == {"load a[j][i]": ALL, "store b[j][i]": set()}
    [(_, branch)] = nest.branches
    assert branch.count(Kind.MULTIPLY) == 1
    assert nest.executed.count(Kind.MULTIPLY) == nest.executed.count(Kind.COMPARE) == 1


def test_a_second_condition_is_asked_where_the_first_holds() -> None:
    """`&&` loads what stands on its right only where its left holds, `||` where it does not."""
    for word, share in (("&&", {3}), ("||", set(range(9)) - {3})):
        nest = read_loop_nest(NEST + f"if (i == 3 {word} a[j][i] > t) s += 1;", {})
        found = list_executed(nest, 9)["load a[j][i]"]
        assert {i for _, i in found} == share


def test_an_element_of_both_sides_is_loaded_once() -> None:
    """A load of both sides counts once, and again where only one side had it."""
    both = read_loop_nest(NEST + "if (t > 0) s += a[j][i]; else s -= a[j][i];", {})
    assert [one.condition for one in both.accesses] == [TRUE]
    one = read_loop_nest(NEST + "{ if (t > 0) s += a[j][i]; b[j][i] = a[j][i]; }", {})
    assert [access.condition for access in one.accesses] == [TRUE, TRUE]


def test_what_a_branch_assigns_is_selected() -> None:
    """A sum under a mask waits for the sum; a condition on it must be known first."""
    nest = read_loop_nest(NEST + "if (a[j][i] > t) s += a[j][i];", {})
    assert nest.chain == ("add fp64",)
    assert nest.executed.count(Kind.SELECT) == 1
    assert read_loop_nest(NEST + "if (j > 2) s += a[j][i];", {}).executed.count(Kind.SELECT) == 0
    waiting = read_loop_nest(NEST + "if (a[j][i] > s) s = b[j][i];", {})
    assert waiting.chain == ("compare fp64", "select fp64")
    inside = "{ double x = 0; if (a[j][i] > t) { double y = 2 * a[j][i]; x = y; } b[j][i] = x; }"
    assert read_loop_nest(NEST + inside, {}).executed.count(Kind.SELECT) == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("{ if (a[j][i] > t) break; a[j][i] = 1; }", "break.*if, else and continue"),
        ("{ if (i > 3) return; a[j][i] = 1; }", "return.*if, else and continue"),
        ("if (f(i)) a[j][i] = 1;", "f is not known|undeclared|implicit"),
        ("switch (i) { case 1: a[j][i] = 1; }", "switch.*no assignment"),
    ],
)
def test_other_ways_are_refused(body: str, said: str) -> None:
    """Says what was given and what is expected."""
    with pytest.raises(InputError, match=said):
        read_loop_nest(NEST + body, {})


def test_data_between_loops_are_refused() -> None:
    """Says where such a condition may stand instead."""
    source = (
        HEAD
        + "for (int j = 0; j < N; j++) if (a[j][0] > 0) for (int i = 0; i < N; i++) b[j][i] = 1;"
    )
    with pytest.raises(InputError, match=r"between loops depends on data.*in the innermost loop"):
        read_loop_nest(source, {})


@pytest.mark.parametrize(
    "body",
    [
        "if (a[j][i] > s) s = a[j][i];",
        "if (s <= a[j][i]) s = a[j][i];",
        "s = s > a[j][i] ? s : a[j][i];",
        "{ double x = a[j][i]; if (x < s) { s = x; } }",
    ],
)
def test_the_greater_of_two_is_one_operation(body: str) -> None:
    """No branch: processors have an instruction for it."""
    nest = read_loop_nest(NEST + body, {})
    assert not nest.has_branches
    assert nest.chain == ("select fp64",)
    assert nest.executed.count(Kind.COMPARE) == 0


def test_a_declared_scalar_is_no_constant() -> None:
    """A condition on one is on data, and needs no value."""
    nest = read_loop_nest(
        "double a[N], s, t; for (int i = 0; i < N; i++) if (t > 0) s += a[i];", {}
    )
    assert [one.name for one in nest.decisions] == ["t > 0 in line 1"]
    assert nest.name_constants() == {"N"}
