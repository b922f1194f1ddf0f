import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.features.rewriting import SourceEdits
from kernelcast.records.errors import InputError


def test_nothing_to_do_changes_nothing() -> None:
    """Gives the source itself where there are no edits."""
    assert SourceEdits("int a;\r\n").apply() == "int a;\r\n"


def test_edits_are_made_in_any_order() -> None:
    """Applies edits by their place, whichever was added first."""
    edits = SourceEdits("a+b")
    edits.insert_after(3, ";")
    edits.replace(1, 2, "-")
    edits.insert_before(0, "x=")
    assert edits.apply() == "x=a-b;"


def test_offsets_count_bytes() -> None:
    """Takes offsets in bytes of UTF-8, as libclang gives them."""
    edits = SourceEdits("/* ü€ */ a")
    edits.wrap(12, 13, "(", ")")
    assert edits.apply() == "/* ü€ */ (a)"


def test_wraps_of_one_range_nest() -> None:
    """Puts later texts around earlier ones, so that brackets stay well-formed."""
    edits = SourceEdits("x")
    for before, after in ("()", "[]", "{}"):
        edits.wrap(0, 1, before, after)
    assert edits.apply() == "{[(x)]}"


def test_neighbours_do_not_swap() -> None:
    """Closes what ends at a place before it opens what begins there."""
    edits = SourceEdits("ab")
    edits.wrap(1, 2, "[", "]")
    edits.wrap(0, 1, "(", ")")
    assert edits.apply() == "(a)[b]"


def test_a_replaced_range_can_be_wrapped() -> None:
    """Keeps insertions at both ends of a replaced range outside it."""
    edits = SourceEdits("a b c")
    edits.replace(2, 3, "B")
    edits.wrap(2, 3, "(", ")")
    assert edits.apply() == "a (B) c"


def test_apply_can_be_asked_again() -> None:
    """Gives the same text twice, and takes more edits in between."""
    edits = SourceEdits("a")
    edits.insert_after(1, "b")
    assert edits.apply() == edits.apply() == "ab"
    edits.insert_after(1, "c")
    assert edits.apply() == "abc"


@pytest.mark.parametrize("other", [(1, 3), (0, 4), (2, 4)])
def test_a_part_is_replaced_once(other: tuple[int, int]) -> None:
    """Refuses two replacements of one byte."""
    edits = SourceEdits("abcd")
    edits.replace(1, 3, "x")
    edits.replace(*other, "y")
    with pytest.raises(InputError, match="already replaced"):
        edits.apply()


def test_nothing_is_inserted_into_a_replaced_part() -> None:
    """Refuses a text inside a range that is no more."""
    edits = SourceEdits("abcd")
    edits.replace(1, 3, "x")
    edits.insert_before(2, "y")
    with pytest.raises(InputError, match="bytes 2 to 2"):
        edits.apply()


@pytest.mark.parametrize(("start", "end"), [(-1, 1), (0, 4), (2, 1)])
def test_ranges_lie_inside_the_source(start: int, end: int) -> None:
    """Names the range and the length where they do not fit."""
    with pytest.raises(InputError, match=rf"bytes {start} to {end}: .* 3 bytes"):
        SourceEdits("abc").replace(start, end, "x")


def test_empty_ranges_are_not_replaced() -> None:
    """Refuses to replace nothing, whose place among insertions would be unclear."""
    with pytest.raises(InputError, match="insert instead"):
        SourceEdits("abc").replace(1, 1, "x")


def test_characters_are_not_cut() -> None:
    """Refuses an offset inside a character of several bytes."""
    with pytest.raises(InputError, match="inside a character"):
        SourceEdits("ü").insert_before(1, "x")


@given(st.text(), st.lists(st.tuples(st.integers(0, 50), st.text(max_size=3)), max_size=6))
def test_insertions_take_nothing_away(source: str, texts: list[tuple[int, str]]) -> None:
    """Keeps every character of source and insertions, at a length that adds up."""
    source = source.encode(errors="replace").decode()
    texts = [(place, text.encode(errors="replace").decode()) for place, text in texts]
    edits = SourceEdits(source)
    for place, text in texts:
        edits.insert_before(len(source[:place].encode()), text)
    edited = edits.apply()
    assert len(edited) == len(source) + sum(len(text) for _, text in texts)
    assert sorted(edited) == sorted(source + "".join(text for _, text in texts))
