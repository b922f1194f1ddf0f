from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.features.counting.static import (
    count_statically,
    depends_on_contents,
    find_index_buffers,
)
from kernelcast.features.counting.work_profile import WorkProfile, may_differ, profile_work
from kernelcast.records.ndrange import GroupBox, NDRange
from support.kernel_facts import facts_of

_ROW = "int row = get_global_id(0); if (row < rows)"
ROWS = f"""kernel void k(global const int *begin, global const float *v,
    global float *out, int rows)
{{ {_ROW} for (int k = begin[row]; k < begin[row + 1]; ++k) out[row] += v[k]; }}"""
LISTED = f"""kernel void k(global const int *list, global const int *begin,
    global float *out, int rows)
{{ {_ROW} for (int k = begin[list[row]]; k < begin[list[row] + 1]; ++k) out[k] = 1; }}"""
CHAIN = """kernel void k(global const int *next, global float *out, int rows)
{ for (int at = get_global_id(0); at < rows; at = next[at]) out[at] += 1; }"""
LENGTHS = """kernel void k(global const uint *begin, global const float *v,
    global float *out, uint rows)
{ uint row = get_global_id(0); if (row >= rows) return;
  uint first = begin[row], count = begin[row + 1] - first;
  for (uint k = 0; k < count; ++k) out[row] += v[first + k]; }"""
LETTERS = """kernel void k(global const uchar *text, global float *out, int n)
{ int i = get_global_id(0); if (text[i] - 97u < 26u) for (int k = 0; k < n; ++k) out[i] += 1; }"""
LOCAL = 8
Contents = dict[str, npt.NDArray[np.integer]]


def count_turns(source: str, contents: Contents, items: int, **scalars: int) -> list[float]:
    facts = facts_of(source, known_buffers=contents)
    ndrange = NDRange(global_size=(items,), local_size=(LOCAL,))
    groups = range(ndrange.work_group_count)
    sample = count_statically(facts, ndrange, scalars, groups, contents=contents)
    counter = next(one.counter for one in facts.blocks if one.kind == "loop body")
    assert sample.is_exact[counter]
    return [float(one) for one in sample.counts[..., counter].ravel()[:items]]


def profile_of(
    source: str, launch: NDRange, scalars: dict[str, int], boxes: Sequence[GroupBox],
    contents: Contents = {},  # noqa: B006 - only read
) -> WorkProfile:  # fmt: skip
    profile = profile_work(
        facts_of(source, known_buffers=contents), launch, scalars, boxes, contents
    )
    assert profile is not None
    return profile


def box(start: int, groups: int) -> GroupBox:
    return GroupBox(start=(start,), shape=(groups,))


@pytest.mark.parametrize(
    ("source", "kind"), [(ROWS, "int32"), (ROWS.replace("int", "uint"), "uint32"),
                         (LENGTHS, "uint32"), (LISTED, "int32")],
)  # fmt: skip
@given(lengths=st.lists(st.integers(0, 9), min_size=1, max_size=40), seed=st.integers(0, 9))
def test_rows_run_as_often_as_the_buffer_says(
    source: str, kind: str, lengths: list[int], seed: int
) -> None:
    """Each work-item has its row's length, with and without sign, also where another buffer tells
    which row is its own; those behind have none."""
    contents = {"begin": np.cumsum([0, *lengths]).astype(kind)}
    items = -(-len(lengths) // LOCAL) * LOCAL
    expected = [*lengths, *[0] * (items - len(lengths))]
    if source == LISTED:
        order = np.random.default_rng(seed).permutation(len(lengths)).astype(kind)
        contents["list"] = order
        expected[: len(lengths)] = [lengths[row] for row in order]
    assert count_turns(source, contents, items, rows=len(lengths)) == expected


def test_a_range_is_tested_without_sign() -> None:
    """What lies below the range has wrapped: it is no letter."""
    text = np.frombuffer(b"a zA{9b.", dtype=np.uint8)
    assert count_turns(LETTERS, {"text": text}, 8, n=5) == [5, 0, 5, 0, 0, 0, 5, 0]


def test_a_chain_is_not_followed() -> None:
    """What is read at another place in each iteration is no number that holds for all."""
    facts = facts_of(CHAIN, known_buffers={"next"})
    assert facts.contents == ()
    assert not any(one.is_exact for one in facts.loops)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (ROWS, {"begin", "v"}),
        (LISTED, {"begin", "list"}),
        (ROWS.replace("const int *begin", "volatile int *begin"), set()),
        (ROWS.replace("global const int *begin", "global int *begin")
             .replace("out[row] +=", "begin[row] +="), set()),
        ("kernel void k(global const int *a, global int *b) { b[0] = a[0]; }", set()),
    ],
)  # fmt: skip
def test_finds_buffers_that_decide_and_are_only_read(source: str, expected: set[str]) -> None:
    """A buffer that the kernel writes, or that may change meanwhile, tells nothing."""
    assert find_index_buffers(facts_of(source)) == expected


def test_every_work_group_of_a_box_is_counted() -> None:
    """A few rows hold most of the entries: some work-groups of a box do not stand for it."""
    lengths = np.minimum(np.random.default_rng(5).pareto(1.2, 64_000) * 10, 10_000).astype(np.int64)
    begin = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    launch = NDRange(global_size=(64_000,), local_size=(64,))
    boxes = [box(start, 100) for start in (0, 300, 700)]
    profile = profile_of(ROWS, launch, {"rows": 64_000}, boxes, {"begin": begin})
    of_groups = lengths.reshape(-1, 64).sum(axis=1)
    expected = [of_groups[one.start[0] :][:100].mean() / of_groups.mean() for one in boxes]
    assert profile.weights == pytest.approx(expected, rel=0.02)


def test_work_items_in_step_wait_for_the_slowest() -> None:
    """One long row among eight makes a vector of eight as slow as eight long rows."""
    lengths = np.where(np.arange(6400) < 3200, np.where(np.arange(6400) % 8 == 0, 800, 0), 100)
    begin = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    boxes = [box(10, 20), box(70, 20)]
    profile = profile_of(ROWS, LAUNCH, {"rows": 6400}, boxes, {"begin": begin})
    some, all_alike = profile.weights
    assert some / all_alike == pytest.approx(1, rel=0.02)
    for parted, alike in profile.weights_in_step:
        assert parted / alike == pytest.approx(8, rel=0.05)


@pytest.mark.parametrize(
    ("parameter", "count", "depends"),
    [("const settings c", "c.steps", True), ("int2 c", "c.y", True), ("int c", "c", False)],
)
def test_members_by_value_decide_as_contents_do(parameter: str, count: str, depends: bool) -> None:
    """Takes a loop's end in a structure or vector for contents; a scalar's value is known."""
    source = f"""typedef struct {{ float scale; int steps; }} settings;
    kernel void k(global float *out, {parameter})
    {{ for (int k = 0; k < {count}; ++k) out[get_global_id(0)] += 1.0f; }}"""
    assert depends_on_contents(facts_of(source)) is depends


TRIANGLE = """kernel void k(global float *a, int n)
{ int row = get_global_id(0); for (int j = 0; j < row; ++j) a[n + row] += a[j]; }"""
EVEN = TRIANGLE.replace("j < row", "j < n")
DATA = TRIANGLE.replace("j < row", "j < (int)a[row]")
HALF = """kernel void k(global float *a, int n)
{ if (get_group_id(0) < 50) for (int j = 0; j < n; ++j) a[get_global_id(0)] += a[j]; }"""
LAUNCH = NDRange(global_size=(6400,), local_size=(64,))


@pytest.mark.parametrize(
    ("source", "expected"), [(TRIANGLE, True), (HALF, True), (EVEN, False), (DATA, False)]
)
def test_only_places_make_a_difference(source: str, expected: bool) -> None:
    """Loops that end by ids, and conditions on the work-group, differ between places."""
    assert may_differ(facts_of(source)) is expected


def test_rows_of_a_triangle_weigh_by_their_length() -> None:
    """Work-group g of 100 has 64 g + 31.5 turns on average, all of them have 3199.5; a loop on data
    inside is counted, as an assumption."""
    boxes = [box(0, 1), box(25, 1), box(99, 1), box(40, 20), box(0, 100)]
    profile = profile_of(TRIANGLE, LAUNCH, {"n": 6400}, boxes)
    assert profile.is_exact
    turns = [31.5, 25 * 64 + 31.5, 99 * 64 + 31.5, 49.5 * 64 + 31.5, 3199.5]
    assert profile.weights == pytest.approx([one / 3199.5 for one in turns], abs=0.01)
    assert profile.spread == pytest.approx(3**-0.5, rel=0.02)
    source = TRIANGLE.replace("a[n + row]", "for (int k = 0; k < (int)a[j]; ++k) a[n + row]")
    profile = profile_of(source, LAUNCH, {"n": 6400}, [box(0, 1), box(99, 1)])
    assert not profile.is_exact
    assert profile.weights[0] < 0.1 < 1.9 < profile.weights[1]


def test_typical_work_groups_do_about_the_mean_work() -> None:
    """In a triangle those in the middle; of two halves the heavy one: the other does nothing; where
    one in twenty does all the work, only those are worth a sample."""
    triangle = profile_of(TRIANGLE, LAUNCH, {"n": 6400}, [])
    assert triangle.typical_weight == pytest.approx(1.0, abs=0.1)
    assert 35 <= min(triangle.typical) < max(triangle.typical) <= 65
    half = profile_of(HALF, LAUNCH, {"n": 1000}, [])
    assert half.typical_weight == pytest.approx(2.0, abs=0.02)
    assert max(half.typical) < 50
    assert max(half.typical) - min(half.typical) > 10
    source = HALF.replace("get_group_id(0) < 50", "get_group_id(0) % 20 == 3")
    few = profile_of(source, LAUNCH, {"n": 1000}, [])
    assert few.typical == (3, 23, 43, 63, 83)
    assert few.typical_weight == pytest.approx(20, rel=0.05)


def test_boxes_of_a_grid_weigh_by_their_rows() -> None:
    """In two dimensions a box is counted where it is, and large spaces by some work-groups."""
    source = TRIANGLE.replace("get_global_id(0)", "get_global_id(1)")
    launch = NDRange(global_size=(4096, 4096), local_size=(8, 8))
    boxes = [
        GroupBox(start=(100, 0), shape=(8, 8)),
        GroupBox(start=(0, 255), shape=(512, 2)),
        GroupBox(start=(300, 504), shape=(8, 8)),
    ]
    profile = profile_of(source, launch, {"n": 4096}, boxes)
    assert profile.weights == pytest.approx([32 / 2048, 1.0, 4064 / 2048], abs=0.03)
