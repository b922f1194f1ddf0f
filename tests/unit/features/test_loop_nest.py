"""Plain loops of C, against the reference's descriptions and against what they say."""

import itertools

import pytest

from kernelcast.expressions import TRUE, Expr, Symbol, SymbolKind
from kernelcast.expressions.loop_nest import LoopNest
from kernelcast.features.loop_nest import read_loop_nest
from kernelcast.records.errors import InputError
from kernelcast.records.operations import MemorySpace, NumberClass
from kernelcast.records.operations import OperationKind as Kind

HEAD = "double a[N][N], b[N][N], s, t; "
NEST = HEAD + "for (int j = 0; j < N; j++) for (int i = 0; i < N; i++) "


def read(source: str, **constants: int) -> LoopNest:
    return read_loop_nest(source, constants, name="x.c")


def test_heads_of_loops_in_all_forms() -> None:
    """Steps up and down, bounds that are reached, mirrored conditions, triangles."""
    nest = read(
        "double a[N][N]; int i, j;\n"
        "#pragma omp parallel for\n"
        "for (j = 0; N > j; j = j + 3)\n"
        "    for (i = N - 1; i >= j; i -= 2) a[j][i] = 1;"
    )
    j, n = Symbol(SymbolKind.LOOP, "j"), Symbol(SymbolKind.SCALAR, "N")
    outer, inner = nest.loops
    assert [(one.name, one.step) for one in nest.loops] == [("j", Expr.of(3)), ("i", Expr.of(-2))]
    # Of ten the third is 6, from where 9 and 7 are reached.
    assert [one.trips.evaluate({n: 10, j: 2}) for one in nest.loops] == [4, 2]
    [access] = nest.accesses
    by_j, by_i, start = (one.evaluate({n: 10}) for one in (*access.strides, access.offset))
    assert start + 2 * by_j + by_i == 8 * (6 * 10 + 7)
    assert (outer.line, inner.line) == (3, 4)


@pytest.mark.parametrize(
    "condition",
    ["i < min(ii + B, N)", "i <= MIN(ii + B - 1, N - 1)", "i < ii + B && i < N",
     "i < (ii + B < N ? ii + B : N)", "i < (ii + B > N ? N : ii + B)"],
)  # fmt: skip
def test_blocked_loops_end_with_the_block_or_the_array(condition: str) -> None:
    """All ways to write the least of two ends say the same; steps may be constants."""
    source = (
        "double a[N]; for (int ii = 0; ii < N; ii += B) "
        f"for (int i = ii; {condition}; i++) a[i] = 1;"
    )
    nest = read(source)
    outer, inner = nest.loops
    b, n, ii = (Symbol(SymbolKind.SCALAR, "B"), Symbol(SymbolKind.SCALAR, "N"),
                Symbol(SymbolKind.LOOP, "ii"))  # fmt: skip
    assert (outer.step, inner.step) == (Expr.of(b), Expr.of(1))
    assert outer.trips.evaluate({b: 32, n: 100}) == 4
    for block in range(4):
        assert inner.trips.evaluate({b: 32, n: 100, ii: block}) == min(32, 100 - 32 * block)


def test_several_statements_of_mixed_types() -> None:
    """Unrolled bodies, compound assignments, local scalars and widths of their own."""
    nest = read(
        "float a[N]; double b[N]; const double s = 2;\n"
        "for (int i = 0; i < N; i += 2) {\n"
        "    const int next = i + 1;\n"
        "    double t = s * a[i];\n"
        "    b[i] += t;\n"
        "    b[next] += exp(t) / a[next];\n"
        "}"
    )
    assert [(one.array, one.offset, one.bytes, one.is_store) for one in nest.accesses] == [
        ("a", Expr.of(0), 4, False), ("b", Expr.of(0), 8, False), ("a", Expr.of(4), 4, False),
        ("b", Expr.of(8), 8, False), ("b", Expr.of(0), 8, True), ("b", Expr.of(8), 8, True),
    ]  # fmt: skip
    assert (nest.accesses[3].strides, nest.accesses[3].offset) == ((Expr.of(16),), Expr.of(8))
    assert nest.executed.count(Kind.SPECIAL) == nest.executed.count(Kind.DIVIDE) == 1
    assert nest.executed.count(Kind.ADD, number=NumberClass.FLOAT) == 2
    assert nest.executed.count(Kind.MULTIPLY, number=NumberClass.FLOAT) == 1
    assert nest.executed.count_memory(MemorySpace.GLOBAL, is_store=False, in_bytes=True) == 24


def test_registers_spare_repeated_accesses() -> None:
    """An element is loaded once, not at all after its store, and stored once; a note tells."""
    nest = read("double a[N], b[N]; for (int i = 0; i < N; i++) "
                "{ a[i] = b[i] * b[i]; a[i] = a[i] + b[i]; }")  # fmt: skip
    assert [(one.array, one.is_store) for one in nest.accesses] == [("b", False), ("a", True)]
    assert nest.notes[0].startswith("4 repeated accesses")


@pytest.mark.parametrize(
    ("body", "chain"),
    [
        ("s += a[i] * b[i];", ("add fp64",)),
        ("s = s * a[i] + b[i];", ("multiply fp64", "add fp64")),
        ("t = a[i]; b[i] = t + 1;", ()),
        ("b[i] = b[i-1] * a[i];", ("multiply fp64",)),
        ("b[i] = b[i+1] * a[i];", ()),
        ("b[3] += a[i];", ("add fp64",)),
        ("if (a[i] > t) s += a[i];", ("add fp64",)),
        ("if (a[i] > s) s = b[i];", ("compare fp64", "select fp64")),
        ("if (a[i] > s) s = a[i];", ("select fp64",)),
        ("s = s > a[i] ? s : a[i];", ("select fp64",)),
    ],
)
def test_chains_from_iteration_to_iteration(body: str, chain: tuple[str, ...]) -> None:
    """Sums, products and recurrences through memory wait for the iteration before."""
    nest = read(f"double a[N], b[N], s, t; for (int i = 1; i < N; i++) {{ {body} }}")
    assert nest.chain == chain
    if chain == ("select fp64",):  # the greater of two is one instruction
        assert not nest.has_branches
        assert nest.executed.count(Kind.COMPARE) == 0


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("double a[N]; int x[N];\nfor (int i = 0; i < N; i++) a[x[i]] = 1;",
         r"x\.c:2:\d+: .*a\[x\[i\]\] is not affine"),
        ("double a[N]; for (int i = 0; i < N; i++) a[i*i] = 1;", r"a\[i\*i\] is not affine"),
        ("double *p; for (int i = 0; i < N; i++) p[i] = 1;", "p is a pointer"),
        ("double a[N]; for (int i = 0; i < N; i++) a[i] = foo(a[i]);", r"x\.c:1:\d+: .*'foo'"),
        ("double a[N], f(double); for (int i = 0; i < N; i++) a[i] = f(a[i]);", "neither numbers"),
        ("double a[N];", "x.c: no loop"),
        ("double a[N]; for (int j = 0; j < N; j++) { a[j] = 0; "
         "for (int i = 0; i < N; i++) a[i] = 1; }", "statements beside an inner loop"),
        ("double a[N]; for (int j = 0; j < N; j++) { for (int i = 0; i < N; i++) a[i] = 1;\n"
         "for (int k = 0; k < N; k++) a[k] = 1; }", r"x\.c:2:1: a second loop"),
        ("double a[N]; for (int i = 0; i < N; i++) a[i] = 1; "
         "for (int i = 0; i < N; i++) a[i] = 2;", "a second loop nest"),
        ("double a[N]; for (int i = 1; i < N; i *= 2) a[i] = 1;",
         "no sum of loop variables and constants"),
        ("double a[N]; for (int i = 0; i < N; i--) a[i] = 1;", "by -1 goes on while"),
        ("double a[N]; int i = 0; while (a[i] > 0) a[i] = 1;", "without start, condition and step"),
        ("double a[N]\nfor (int i = 0; i < N; i++) a[i] = 1;", r"x\.c:1:12: expected ';'"),
        ("double a[N], s; for (int i = 0; i < N; i++) s = 1;", "no array is read or written"),
        ("double a[]= {1, 2}; for (int i = 0; i < 2; i++) a[i] = 1;", "of unknown size"),
        (NEST + "{ if (a[j][i] > t) break; a[j][i] = 1; }", "break.*if, else and continue"),
        (HEAD + "for (int j = 0; j < N; j++) if (a[j][0] > 0) for (int i = 0; i < N; i++) "
         "b[j][i] = 1;", "between loops depends on data.*in the innermost loop"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named_with_its_place(source: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read(source)


def list_executed(nest: LoopNest, size: int, decided: int = 1) -> dict[str, set[tuple[int, int]]]:
    """Give the iterations (j, i) that execute each access, by its kind and array."""
    loops = [Symbol(SymbolKind.LOOP, name) for name in "ji"]
    return {
        ("store " if one.is_store else "load ") + one.array: {
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
        "b[j][i] = i > 0 && i + 1 < N ? a[j][i] : 0;",
        "{ if (i < 1) { b[j][i] = 0; } else if (i == N - 1) b[j][i] = 0; else b[j][i] = a[j][i]; }",
    ],
)  # fmt: skip
def test_the_same_branch_in_other_words_is_the_same(body: str) -> None:
    inner = {place for place in ALL if 0 < place[1] < 8}
    assert list_executed(read(NEST + body), 9) == {"load a": inner, "store b": ALL}


def test_data_decide() -> None:
    """A condition on data is a decision; what it loads itself is loaded anyhow."""
    nest = read(NEST + "if (a[j][i] > t) b[j][i] = 2 * a[j][i];")
    assert [one.name for one in nest.decisions] == ["a[j][i] > t in line 1"]
    assert list_executed(nest, 9) == {"load a": ALL, "store b": ALL}
    assert list_executed(nest, 9, decided=0) == {"load a": ALL, "store b": set()}
    [(_, branch)] = nest.branches
    assert branch.count(Kind.MULTIPLY) == 1
    assert nest.executed.count(Kind.MULTIPLY) == nest.executed.count(Kind.COMPARE) == 1


def test_a_second_condition_is_asked_where_the_first_holds() -> None:
    """`&&` loads what stands on its right only where its left holds, `||` where it does not."""
    for word, share in (("&&", {3}), ("||", set(range(9)) - {3})):
        nest = read(NEST + f"if (i == 3 {word} a[j][i] > t) s += 1;")
        assert {i for _, i in list_executed(nest, 9)["load a"]} == share


def test_an_element_of_both_sides_is_loaded_once() -> None:
    """A load of both sides counts once, and again where only one side had it."""
    both = read(NEST + "if (t > 0) s += a[j][i]; else s -= a[j][i];")
    assert [one.condition for one in both.accesses] == [TRUE]
    one = read(NEST + "{ if (t > 0) s += a[j][i]; b[j][i] = a[j][i]; }")
    assert [access.condition for access in one.accesses] == [TRUE, TRUE]


def test_what_a_branch_assigns_is_selected() -> None:
    for condition, count in (("a[j][i] > t", 1), ("j > 2", 0)):
        nest = read(NEST + f"if ({condition}) s += a[j][i];")
        assert nest.executed.count(Kind.SELECT) == count
