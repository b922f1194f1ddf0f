from pathlib import Path

import pytest
from clang import cindex

from kernelcast.features.parsing import MAIN_FILE, parse_source
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.tree import SyntaxTree

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*/*.cl"))
OPTIONS = ("-DTILE=8", "-DGROUP=64", "-DRADIUS=3", "-DELEMENTS=4", "-DPER_WORK_ITEM=8")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_places_are_those_that_libclang_gives(path: Path) -> None:
    """Reads the same offsets out of raw locations as the official calls give."""
    source = path.read_text(encoding="utf-8")
    parsed = parse_source(source, OPTIONS)
    tree = SyntaxTree(parsed.unit, source, MAIN_FILE)
    official: set[tuple[int, int, int]] = set()
    for function in parsed.unit.cursor.get_children():
        if function.kind == cindex.CursorKind.FUNCTION_DECL and function.is_definition():
            for cursor in function.walk_preorder():
                extent = cursor.extent
                official.add((cursor.kind.value, extent.start.offset, extent.end.offset))
    found = 0
    for function in tree.functions.values():
        for node in function.walk():
            span = node.span
            if span is not None and span.is_exact and node.kind != kinds.FUNCTION:
                assert (node.kind, span.start, span.end) in official
                found += 1
    assert found > 10
