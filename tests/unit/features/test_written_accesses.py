import re
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.expressions import Expr, Symbol, SymbolKind, minimum
from kernelcast.expressions.accesses import AccessKind
from kernelcast.features.generated_stencils import read_assignments
from kernelcast.features.written_accesses import WrittenKernel, read_access, read_array
from kernelcast.records.errors import InputError
from kernelcast.records.operations import MemorySpace

X, Y, Z = (Expr.symbol(Symbol(SymbolKind.GLOBAL_ID, axis=axis)) for axis in range(3))
N = Expr.symbol(Symbol(SymbolKind.SCALAR, "n"))
ARRAYS = {
    one.name: one
    for one in (
        read_array("src:float64:640x512x512"),
        read_array("image:float32:n,n + 2", ["n"]),
        read_array("index:int32"),
        read_array("tile:local float32x4:16x17"),
    )
}


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("src[x-1][y][z]", 8 * (X - 1 + 640 * (Y + 512 * Z))),
        ("src[x-1, y, z]", 8 * (X - 1 + 640 * (Y + 512 * Z))),
        ("image[min(x, n - 1)][2*y]", 4 * (minimum(X, N - 1) + 2 * Y * N)),
        ("index[-(x + 3) / 2 % n]", None),
        ("index[get_global_id(1) * n + get_global_id(0)]", 4 * (Y * N + X)),
    ],
)
def test_reads_addresses(text: str, offset: Expr | None) -> None:
    """Takes the first index for the contiguous one, and divides as C does."""
    found = read_access(text, ARRAYS, scalars=("n",)).offset_bytes
    if offset is None:
        assert "rem n" in str(found)
        offset = found
    assert found == offset


def test_reads_loops_outermost_first() -> None:
    """Gives loops their values: start plus step times the iteration."""
    text = "index[i + j] for i in range(0, n, 16) for j in range(i, 0, -1) if j > 2"
    access = read_access(text, ARRAYS, scalars=("n",), site=7)
    outer, inner = (Symbol(SymbolKind.LOOP, loop.name) for loop in access.loops)
    assert access.offset_bytes == 4 * (16 * Expr.symbol(outer) * 2 - inner)
    values = {Symbol(SymbolKind.SCALAR, "n"): 32, outer: 2}
    assert [loop.trip_count.evaluate(values) for loop in access.loops if loop.trip_count] == [2, 32]
    assert access.guard.evaluate({outer: 2, inner: 29})
    assert not access.guard.evaluate({outer: 2, inner: 30})


def test_reads_chained_and_joined_conditions() -> None:
    """Understands chains of comparisons, and, or, not, and C's signs for them."""
    guard = read_access(
        "index[x] if 0 < x < n and (y == 0 || !(z >= 4))", ARRAYS, scalars=("n",)
    ).guard
    values = {Symbol(SymbolKind.SCALAR, "n"): 10}
    ids = [Symbol(SymbolKind.GLOBAL_ID, axis=axis) for axis in range(3)]
    for place, holds in (((1, 0, 9), True), ((1, 1, 3), True), ((1, 1, 4), False),
                         ((0, 0, 0), False), ((10, 0, 0), False)):  # fmt: skip
        assert guard.evaluate({**values, **dict(zip(ids, place, strict=True))}) is holds


@pytest.mark.parametrize(
    ("text", "complaint", "column"),
    [
        ("src[x*y][y][z]", "not affine", 4),
        ("index[index[x]]", "content of 'index' is not affine", 6),
        ("nowhere[x]", "not declared; declared are: src, image", 0),
        ("src[x][y]", "has 3 dimensions, found 2 indices", 0),
        ("index[m]", "'m' is not known", 6),
        ("index[groupx]", "did you mean 'group_x'", 6),
        ("index[x", "cannot be read", 7),
        ("index[x] if x", "expected a condition", 12),
        ("index[x < 3]", "expected a number", 6),
        ("index[x << 3]", "no meaning", 6),
        ("index[x] if x in y", "no meaning", 12),
        ("index[x] for x in range(3)", "has a meaning already", 13),
        ("index[k] for k in range(0, 9, 0)", "a step", 30),
        ("index[k] for k in y", "expected range", 18),
        ("index[x % 0]", "division by zero", 10),
        ("index[get_global_id(3)]", "expected a dimension", 20),
        ("", "expected the name", 0),
        ("index[" + "(" * 300 + "x", "cannot be read", None),
        ("index[" + "-" * 20000 + "x]", "too deeply", None),
        ("index[x] if " + "not " * 1200 + "x < 3", "too deeply", None),
    ],
)
def test_points_at_what_is_wrong(text: str, complaint: str, column: int | None) -> None:
    with pytest.raises(InputError, match=re.escape(complaint)) as caught:
        read_access(text, ARRAYS, scalars=("n",))
    *_, shown, mark = str(caught.value).split("\n")
    assert shown.strip() == text
    if column is not None:
        assert mark == " " * (column + 2) + "^"


@pytest.mark.parametrize(
    "text",
    ["src", "src:float65:4", "1src:float32:4", "range:float32:4", "a:float32:0",
     "a:float32:n", "a:float32:x", "a:float32:4x", "a:private float32:4"],
)  # fmt: skip
def test_refuses_bad_declarations(text: str) -> None:
    with pytest.raises(InputError):
        read_array(text)


def test_describes_what_a_source_would_have_told() -> None:
    """Gives facts with parameters, guards and loops as analysis does."""
    accesses = tuple(
        read_access(text, ARRAYS, kind=kind, scalars=("n",), site=site)
        for site, (text, kind) in enumerate(
            [("src[x, y, z]", AccessKind.LOAD), ("index[x] if x < n", AccessKind.STORE),
             ("tile[x, k] for k in range(4)", AccessKind.LOAD), ("index[x]", AccessKind.ATOMIC)]
        )
    )  # fmt: skip
    kernel = WrittenKernel(
        name="k", arrays=tuple(ARRAYS.values()), accesses=accesses, scalars={"n": 8},
        operations={"fp64": 25, "int32": 0},
    )  # fmt: skip
    facts = kernel.facts()
    assert {one.name: (one.is_read, one.is_written) for one in facts.parameters} == {
        "src": (True, False), "image": (False, False), "index": (True, True), "tile": (True, False),
    }  # fmt: skip
    assert facts.local_bytes == 16 * 17 * 16
    assert len(facts.reaches) == len(facts.blocks) - 1 == 4
    assert len(facts.blocks[0].operations.operations) == 1
    assert accesses[2].space is MemorySpace.LOCAL


@pytest.mark.parametrize(
    "changes",
    [{"accesses": ()}, {"operations": {"fp63": 1.0}}, {"operations": {"fp64": -1.0}},
     {"arrays": (ARRAYS["src"], ARRAYS["src"])}],
)  # fmt: skip
def test_refuses_kernels_that_make_no_sense(changes: dict[str, object]) -> None:
    usual = {
        "name": "k", "arrays": (ARRAYS["src"],), "accesses": (read_access("src[x, y, z]", ARRAYS),),
    }  # fmt: skip
    with pytest.raises(InputError):
        WrittenKernel(**(usual | changes))


NUMBERS = st.integers(0, 30).map(str)
ATOMS = NUMBERS | st.sampled_from(["x", "y", "n"])


def _join(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    sums = st.tuples(parts, st.sampled_from("+-"), parts).map(lambda each: f"({''.join(each)})")
    products = st.tuples(NUMBERS, parts).map("*".join)
    extrema = st.tuples(st.sampled_from(["min", "max"]), parts, parts).map(
        lambda each: f"{each[0]}({each[1]}, {each[2]})"
    )
    return sums | products | extrema | parts.map("-{}".format)


@given(text=st.recursive(ATOMS, _join, max_leaves=8), values=st.tuples(*[st.integers(-9, 9)] * 3))
def test_means_what_the_text_says(text: str, values: tuple[int, int, int]) -> None:
    """Evaluates to what the same text means in Python, where both agree on the operators."""
    bytes_only = {"byte": read_array("byte:int8")}
    found = read_access(f"byte[{text}]", bytes_only, scalars=("n",)).offset_bytes
    names = dict(zip("xyn", values, strict=True))
    symbols = [*(Symbol(SymbolKind.GLOBAL_ID, axis=axis) for axis in range(2)),
               Symbol(SymbolKind.SCALAR, "n")]  # fmt: skip
    wanted = eval(text, {"min": min, "max": max}, names)
    assert found is not None
    assert found.evaluate(dict(zip(symbols, values, strict=True))) == wanted


@pytest.fixture
def pystencils() -> ModuleType:
    module: ModuleType = pytest.importorskip("pystencils")
    return module


def test_takes_over_a_stencil(pystencils: ModuleType) -> None:
    """Gives the interior as index space, offsets by the field's strides, and operations."""
    src, dst = pystencils.fields("src, dst: double[40, 30, 20]", layout="fzyx")
    update = pystencils.Assignment(dst.center, src[1, 0, 0] + src[-2, 0, 0] * src[0, 0, 1])
    kernel, ndrange = read_assignments([update], local_size=(8, 4, 1))
    assert ndrange.global_size == (36, 26, 16)
    assert ndrange.global_offset == (2, 2, 2)
    offsets = {one.text: str(one.offset_bytes) for one in kernel.accesses}
    cell = "8*global_id(0) + 320*global_id(1) + 9600*global_id(2)"
    assert offsets == {
        "src[1,0,0]": f"{cell} + 8", "src[-2,0,0]": f"{cell} - 16", "src[0,0,1]": f"{cell} + 9600",
        "dst[0,0,0]": cell,
    }  # fmt: skip
    assert [one.kind for one in kernel.accesses].count(AccessKind.STORE) == 1
    assert kernel.operations["fp64"] == 2


def test_dimension_0_is_the_contiguous_one(pystencils: ModuleType) -> None:
    """Orders dimensions by strides, whatever the order of the field's coordinates."""
    src, dst = pystencils.fields("src, dst: float[3D]", layout="zyxf")
    kernel, ndrange = read_assignments(
        [pystencils.Assignment(dst.center, src[0, 0, 1])], sizes=(10, 20, 30), ghost_layers=0
    )
    assert ndrange.global_size in {(30, 20, 10), (10, 20, 30)}
    strides = {"global_id(0)": 4, "global_id(1)": 4 * ndrange.global_size[0]}
    text = str(kernel.accesses[-1].offset_bytes)
    assert text.startswith(f"4*global_id(0) + {strides['global_id(1)']}*global_id(1)")


def test_counts_values_of_a_cell(pystencils: ModuleType) -> None:
    """Places the values of a cell by the stride of their index."""
    pdf, rho = pystencils.fields("pdf(3), rho: float[8, 8]", layout="fzyx")
    total = sum(pdf.center(index) for index in range(3))
    kernel, _ = read_assignments([pystencils.Assignment(rho.center, total)])
    constants = sorted(
        one.offset_bytes.constant_term for one in kernel.accesses if one.offset_bytes
    )
    assert constants == [0, 0, 256, 512]


def test_refuses_what_it_cannot_place(pystencils: ModuleType) -> None:
    """Refuses fields of unknown size, and assignments that write nothing."""
    src, dst = pystencils.fields("src, dst: float[2D]")
    with pytest.raises(InputError, match="variable size"):
        read_assignments([pystencils.Assignment(dst.center, src.center)])
    with pytest.raises(InputError, match="no assignment writes"):
        read_assignments([])
