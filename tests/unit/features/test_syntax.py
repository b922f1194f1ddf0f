import pytest

from kernelcast.features.parsing import MAIN_FILE, parse_source
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.kinds import Implicit
from kernelcast.features.syntax.lvalues import classify, lanes_of
from kernelcast.features.syntax.semicolons import split_for
from kernelcast.features.syntax.tree import Node, SyntaxTree
from kernelcast.features.syntax.types import TypeClass


def read(source: str) -> SyntaxTree:
    """Read a source's tree."""
    return SyntaxTree(parse_source(source).unit, source, MAIN_FILE)


def find(source: str, kind: int) -> list[Node]:
    """Find the nodes of a kind in the kernel `k`."""
    kernel = read(source).function_named("k")
    assert kernel is not None
    return [node for node in kernel.walk() if node.kind == kind]


@pytest.mark.parametrize(
    ("head", "parts"),
    [
        ("int i = 0; i < 3; i++", (True, True, True)),
        ("; i < 3; i++", (False, True, True)),
        ("i = 0; ; i++", (True, False, True)),
        ("i = 0; i < 3;", (True, True, False)),
        ("; ; i++", (False, False, True)),
        ("; i < ';';", (False, True, False)),
        (";;", (False, False, False)),
    ],
)
def test_parts_of_loops_are_told_apart(head: str, parts: tuple[bool, ...]) -> None:
    """Finds which parts a `for` statement has, by its semicolons."""
    [loop] = find(f"kernel void k(int i) {{ for ({head}) {{ /* ; */ }} }}", kinds.FOR)
    found = split_for(loop)
    assert tuple(one is not None for one in (found.initial, found.condition, found.step)) == parts


@pytest.mark.parametrize(
    ("member", "lanes"),
    [("x", (0,)), ("wz", (3, 2)), ("s3", (3,)), ("lo", (0, 1)), ("hi", (2, 3)), ("odd", (1, 3))],
)
@pytest.mark.parametrize("macro", ["", "M"])
def test_lanes_are_read(member: str, lanes: tuple[int, ...], macro: str) -> None:
    """Reads which lanes are taken, within a macro's argument too."""
    source = f"#define M(y) (y)\nkernel void k(int4 v) {{ {macro}(v.{member}); }}"
    nodes = [one for one in find(source, kinds.UNEXPOSED) if one.children]
    taken = [one for one in nodes if classify(one) is Implicit.LANES]
    assert [lanes_of(one) for one in taken] == [lanes]


def test_places_are_bytes_and_lines() -> None:
    """Gives lines and texts behind characters of several bytes; macros' spans are not exact."""
    source = "#define ONE 1\nkernel void k(global int *a) { /* größe */\n a[ONE] = 2; }"
    [element] = find(source, kinds.SUBSCRIPT)
    assert (element.line, element.text()) == (3, "a[ONE]")
    numbers = find(source, kinds.INTEGER)
    assert [one.span is not None and one.span.is_exact for one in numbers] == [False, True]
    assert [one.constant for one in numbers] == [1, 2]


def test_types_are_described() -> None:
    """Tells class, lanes, width and space."""
    kernel = read("typedef uchar4 T; kernel void k(global T *p, float f, size_t s) {}")
    function = kernel.function_named("k")
    assert function is not None
    p, f, s = (one.type for one in function.children if one.kind == kinds.PARAMETER)
    assert p.target is not None
    assert (p.type_class, p.target.lanes, p.target.bits, p.target.bytes, p.target.space) == (
        TypeClass.POINTER, 4, 8, 4, "global",
    )  # fmt: skip
    assert (f.type_class, s.type_class, s.bits) == (TypeClass.FLOAT, TypeClass.UNSIGNED, 64)


def test_odd_types_have_no_size() -> None:
    """Does not ask for the size of what has none, which would end the process."""
    source = "kernel void k(global float *a) { a[0] = undeclared(max, sin)(a[1]); }"
    for node in find(source, kinds.UNEXPOSED):
        assert node.type.bytes >= 0


def test_members_have_their_offsets() -> None:
    """Lists a structure's members with offsets and types."""
    source = "struct S { char c; int4 v; float f; }; kernel void k(struct S s) { s; }"
    [node] = find(source, kinds.DECLARATION_REFERENCE)
    members = node.unit.members_of(node)
    assert [(offset, info.bytes) for offset, info in members] == [(0, 1), (16, 16), (32, 4)]
