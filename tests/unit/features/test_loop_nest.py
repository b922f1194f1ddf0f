"""Listings read into loop nests, against the reference's descriptions and against plain facts."""

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from kernelcast.expressions import Expr, Symbol, SymbolKind
from kernelcast.expressions.loop_nest import LoopNest, NestAccess, NestArray, NestLoop
from kernelcast.features.loop_nest import read_loop_nest
from kernelcast.records.errors import InputError
from kernelcast.records.operations import MemorySpace, NumberClass, OperationCounts
from kernelcast.records.operations import OperationKind as Kind

ROOT = Path(__file__).parents[3]
KERNELS = json.loads((ROOT / "../shared/reference/kerncraft/cases.json").read_text())["kernels"]
LISTINGS = ROOT / "tests/data/loop_nests"
DESCRIBED = sorted(one.stem for one in LISTINGS.glob("*.c") if one.stem in KERNELS)


def read_expression(text: str, loops: Iterable[str]) -> Expr:
    """Read a sum of names and numbers."""
    total = Expr.constant(0)
    for sign, term in re.findall(r"([+-]?)\s*(\w+)", text):
        kind = SymbolKind.LOOP if term in loops else SymbolKind.SCALAR
        value = Expr.of(int(term) if term.isdigit() else Symbol(kind, term))
        total = total - value if sign == "-" else total + value
    return total


def convert(name: str) -> LoopNest:
    """Make a nest of a description of the reference's: loops, arrays, reads, then writes."""
    described = KERNELS[name]
    loops = [one[0] for one in described["loop_stack"]]
    dimensions = {
        array: tuple(read_expression(one, ()) for one in sizes)
        for array, (_, sizes) in described["variables"].items()
        if sizes is not None
    }

    def list_accesses(key: str, *, is_store: bool) -> list[NestAccess]:
        found = []
        for array, indices in described[key].items():
            for text in (one for one in indices if one != "None"):
                offset = Expr.constant(0)
                parts = [one for one in text.strip("()").split(",") if one.strip()]
                for extent, part in zip(dimensions[array], parts, strict=True):
                    offset = offset * extent + read_expression(part, loops)
                found.append(
                    NestAccess(array=array, offset_bytes=8 * offset, is_store=is_store, bytes=8)
                )
        return found

    return LoopNest(
        name=name,
        loops=tuple(
            NestLoop(
                name=one, start=read_expression(start, ()), stop=read_expression(stop, ()),
                step=int(step),
            )
            for one, start, stop, step in described["loop_stack"]
        ),
        arrays=tuple(
            NestArray(name=array, element_bytes=8, dimensions=sizes)
            for array, sizes in dimensions.items()
        ),
        accesses=(
            *list_accesses("sources", is_store=False),
            *list_accesses("destinations", is_store=True),
        ),
        executed=OperationCounts(operations={}, memory={}),
    )  # fmt: skip


def plain(nest: LoopNest) -> tuple:
    """Give what both ways to write a nest must agree on."""
    return (
        [(one.name, one.start, one.stop, one.step) for one in nest.loops],
        nest.arrays,
        {(one.array, one.offset_bytes, one.is_store, one.bytes) for one in nest.accesses},
        len(nest.accesses),
    )


def read(source: str, **constants: int) -> LoopNest:
    """Read a listing."""
    return read_loop_nest(source, constants, name="x.c")


@pytest.mark.parametrize("name", DESCRIBED)
def test_listings_give_the_described_nests(name: str) -> None:
    """Loops, arrays, accesses and floating-point operations are those of the reference."""
    nest = read_loop_nest((LISTINGS / f"{name}.c").read_text(), {}, name=name)
    assert plain(nest) == plain(convert(name))
    flops = KERNELS[name]["flops"]
    assert nest.executed.count(Kind.ADD, number=NumberClass.FLOAT) == (
        flops.get("+", 0) + flops.get("-", 0)
    )
    assert nest.executed.count(Kind.MULTIPLY, number=NumberClass.FLOAT) == flops.get("*", 0)


def test_flattened_arrays_have_the_same_addresses() -> None:
    """`a[j*N + i]` touches what `a[j][i]` touches."""
    flat, deep = (
        read_loop_nest((LISTINGS / f"{name}.c").read_text(), {"N": 9})
        for name in ("2d-5pt-flat", "2d-5pt")
    )
    assert [one.offset_bytes for one in flat.accesses] == [
        one.offset_bytes for one in deep.accesses
    ]
    assert flat.constants == {"N": 9}


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
    assert (outer.name, outer.start, outer.stop, outer.step) == ("j", Expr.of(0), Expr.of(n), 3)
    assert (inner.start, inner.stop, inner.step) == (Expr.of(n) - 1, Expr.of(j) - 1, -2)
    assert (outer.line, inner.line) == (3, 4)
    reached = read("double a[9]; for (int i = 0; i <= 7; i++) a[i] = 1;").loops[0]
    assert reached.stop == Expr.of(8)


@pytest.mark.parametrize(
    "condition",
    ["i < min(ii + B, N)", "i <= MIN(ii + B - 1, N - 1)", "i < ii + B && i < N",
     "i < (ii + B < N ? ii + B : N)", "i < (N < ii + B ? N : ii + B)",
     "i < (ii + B > N ? N : ii + B)"],
)  # fmt: skip
def test_blocked_loops_end_with_the_block_or_the_array(condition: str) -> None:
    """All ways to write the least of two ends say the same; steps are constants with a value."""
    source = (
        "double a[N]; for (int ii = 0; ii < N; ii += B) "
        f"for (int i = ii; {condition}; i++) a[i] = 1;"
    )
    nest = read(source, B=32)
    outer, inner = nest.loops
    assert nest.notes == ("loop over ii: it steps by 32 whatever B is set to later",)
    assert (outer.step, inner.step) == (32, 1)
    assert str(inner.stop) == "min(N, iteration(ii) + B)"
    with pytest.raises(InputError, match=r"x\.c:1:39: .*give B a value"):
        read(source)


def test_downward_blocks_end_with_the_greatest() -> None:
    """A loop that counts down stops at the greater of two ends; starts take either."""
    source = (
        "double a[N]; for (int ii = N; ii > 0; ii -= 8) "
        "for (int i = min(ii, N - 1); i >= 0 && i > ii - 8; i--) a[i] = 1;"
    )
    inner = read(source).loops[1]
    assert str(inner.start) == "min(N - 1, iteration(ii))"
    assert str(inner.stop) == "max(iteration(ii) - 8, -1)"


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
    assert [(one.text, one.bytes, one.is_store, one.line) for one in nest.accesses] == [
        ("a[i]", 4, False, 4), ("b[i]", 8, False, 5), ("a[next]", 4, False, 6),
        ("b[next]", 8, False, 6), ("b[i]", 8, True, 5), ("b[next]", 8, True, 6),
    ]  # fmt: skip
    i = Symbol(SymbolKind.LOOP, "i")
    assert nest.accesses[3].offset_bytes == 8 * Expr.of(i) + 8
    assert nest.executed.count(Kind.SPECIAL) == 1
    assert nest.executed.count(Kind.DIVIDE) == 1
    assert nest.executed.memory_bytes(MemorySpace.GLOBAL, is_store=False) == 24


def test_registers_spare_repeated_accesses() -> None:
    """An element is loaded once, not at all after its store, and stored once; a note tells."""
    nest = read("double a[N], b[N]; for (int i = 0; i < N; i++) "
                "{ a[i] = b[i] * b[i]; a[i] = a[i] + b[i]; }")  # fmt: skip
    assert [(one.text, one.is_store) for one in nest.accesses] == [("b[i]", False), ("a[i]", True)]
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
        ("t = s; s = a[i]; b[i] = t;", ()),
        ("t = s + a[i]; s = exp(t);", ("add fp64", "exp fp64")),
    ],
)
def test_chains_from_iteration_to_iteration(body: str, chain: tuple[str, ...]) -> None:
    """Sums, products and recurrences through memory wait for the iteration before."""
    assert read(f"double a[N], b[N], s, t; for (int i = 1; i < N; i++) {{ {body} }}").chain == chain


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("double a[N]; int x[N];\nfor (int i = 0; i < N; i++) a[x[i]] = 1;",
         r"x\.c:2:31: x\[i\] is not affine"),
        ("double a[N]; for (int i = 0; i < N; i++) a[i*i] = 1;",
         r"x\.c:1:44: the index i\*i multiplies loop variables"),
        ("double a[N]; for (int i = 0; i < N; i++) a[i/2] = 1;", "i/2 is not affine"),
        ("double *p; for (int i = 0; i < N; i++) p[i] = 1;", "p is a pointer"),
        ("double a[N], *p; for (int i = 0; i < N; i++) *p = a[i];", "a store through a pointer"),
        ("double a[N]; for (int i = 0; i < N; i++) a[i] = foo(a[i]);",
         r"x\.c:1:49: .*function 'foo'"),
        ("double a[N], f(double); for (int i = 0; i < N; i++) a[i] = f(a[i]);",
         "function f is not known"),
        ("double a[N];", "x.c: no loop"),
        ("double a[N]; for (int j = 0; j < N; j++) { a[j] = 0; "
         "for (int i = 0; i < N; i++) a[i] = 1; }", "statements beside an inner loop"),
        ("double a[N]; for (int j = 0; j < N; j++) { for (int i = 0; i < N; i++) a[i] = 1;\n"
         "for (int k = 0; k < N; k++) a[k] = 1; }", r"x\.c:2:1: a second loop"),
        ("double a[N]; for (int i = 0; i < N; i++) a[i] = 1; "
         "for (int i = 0; i < N; i++) a[i] = 2;", "a second loop nest"),
        ("double a[N]; for (int i = 0; i < N; i++) while (i) a[i] = 1;", "without start"),
        ("double a[N]; for (int i = 0; i < (N < 9 ? 3 : N); i++) a[i] = 1;",
         r"x\.c:1:35: .*no least or greatest of two"),
        ("double a[N]; for (int i = 1; i < N; i *= 2) a[i] = 1;", r"steps by i \*= 2"),
        ("double a[N]; for (int i = 0; i < N; i--) a[i] = 1;", "by -1 that goes on while i < N"),
        ("double a[N]; int i = 0; while (i < N) a[i] = 1;", "without start, condition and step"),
        ("double a[N]; for (int i = 0; i < N; i++ a[i] = 1;", r"x\.c:1:41: expected '\)'"),
        ("double a[N], s; for (int i = 0; i < N; i++) s = 1;", "no array is read or written"),
        ("double a[]= {1, 2}; for (int i = 0; i < 2; i++) a[i] = 1;", "of unknown size"),
        ("double a[N][N]; for (int i = 0; i < N; i++) a[i][0] = *a[i];", "no arithmetic on"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named_with_its_place(source: str, said: str) -> None:
    """Errors say what was found where, and what was expected."""
    with pytest.raises(InputError, match=said):
        read(source)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples/loops").glob("*.c")), ids=lambda p: p.stem
)
def test_examples_can_be_read(path: Path) -> None:
    """Every example is a loop nest with accesses and operations."""
    nest = read_loop_nest(path.read_text(), {}, name=path.name)
    assert nest.accesses
    assert nest.executed.operations
