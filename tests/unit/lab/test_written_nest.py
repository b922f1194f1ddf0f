"""Loops and accesses that are typed."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.features.loop_nest import read_loop_nest
from kernelcast.lab.conditions import (
    ConditionsReport,
    ConditionsTask,
    find_layer_conditions,
)
from kernelcast.lab.local_sizes import MOST_LOCAL_SIZES, list_local_sizes
from kernelcast.lab.written_nest import FieldError, WrittenNestTask, read_written_nest
from kernelcast.records.ndrange import NDRange

LISTING = """double a[M][N][N];
double b[M][N][N];
double s;
for (int k = 1; k < M - 1; ++k)
    for (int j = 1; j < N - 1; ++j)
        for (int i = 1; i < N - 1; ++i)
            b[k][j][i] = (a[k][j][i-1] + a[k][j][i+1] + a[k][j-1][i] + a[k][j+1][i]
                          + a[k-1][j][i] + a[k+1][j][i]) * s;
"""
SEVEN_POINTS = WrittenNestTask(
    constants="M = 200, N = 300",
    loops="k in range(1, M - 1)\nj in range(1, N - 1)\ni in range(1, N - 1)",
    arrays="double a[M][N][N]\ndouble b[M][N][N]",
    loads="\n".join([
        "a[k][j][i-1]", "a[k][j][i+1]", "a[k][j-1][i]", "a[k][j+1][i]",
        "a[((k - 1)*N + j)*N + i]", "a[((k + 1)*N + j)*N + i]",
    ]),
    stores="b[k][j][i]",
)  # fmt: skip


def test_typed_loops_are_those_of_a_listing() -> None:
    """The same nest typed and written in C: the same loops, and the same addresses."""
    typed = read_written_nest(SEVEN_POINTS).nest
    listed = read_loop_nest(LISTING, {"M": 200, "N": 300}, name="listing")
    assert [(one.name, str(one.start), str(one.stop), one.step) for one in typed.loops] == [
        (one.name, str(one.start), str(one.stop), one.step) for one in listed.loops
    ]
    assert {(one.array, str(one.offset_bytes), one.is_store) for one in typed.accesses} == {
        (one.array, str(one.offset_bytes), one.is_store) for one in listed.accesses
    }


def test_conditions_of_the_published_stencil() -> None:
    """Kerncraft's example: six lines of a and one of b, less what each cache keeps."""
    report = find_layer_conditions(
        ConditionsTask(nest=SEVEN_POINTS, cache_bytes=(32768, 262144, 26214400), size="N"),
        lambda _: None,
    )
    assert isinstance(report, ConditionsReport)
    by_name = {one.name: one for one in report.levels}
    # 300 elements a row: rows fit L1 (L1 keeps j), layers of 300 * 300 * 8 bytes fit L3 only.
    assert by_name["L1"].misses == pytest.approx(4)
    assert by_name["L2"].misses == pytest.approx(4)
    assert by_name["L3"].misses == pytest.approx(2)
    assert by_name["MEM"].loaded_bytes == pytest.approx(16)
    assert [one.value for one in report.points] == sorted({one.value for one in report.points})
    volumes = [sum(one.bytes_by_boundary.values()) for one in report.points]
    assert volumes[-1] > volumes[0]
    levels = {one.level for one in report.transitions}
    assert levels == {"L1", "L2", "L3"}


def test_arrays_without_sizes_have_volumes_but_no_formulas() -> None:
    """The note says what to declare."""
    task = WrittenNestTask(
        constants="n = 100", loops="i in range(n)", arrays="", loads="a[i]", stores="b[i]"
    )
    report = find_layer_conditions(ConditionsTask(nest=task, cache_bytes=(32768,)), lambda _: None)
    assert isinstance(report, ConditionsReport)
    assert not report.transitions
    assert any("declare arrays" in one for one in report.notes)


@given(shift=st.integers(-3, 3), scale=st.integers(1, 4), size=st.integers(2, 40))
def test_addresses_mean_what_was_typed(shift: int, scale: int, size: int) -> None:
    """The offset of any affine index is the one that arithmetic gives."""
    task = WrittenNestTask(
        constants=f"n = {size}", loops="y in range(n)\nx in range(n)", arrays="",
        loads=f"a[{scale}*(y*n + x) + {shift}]", stores="", element="float",
    )  # fmt: skip
    [access] = read_written_nest(task).nest.accesses
    symbols = {str(one): one for one in access.offset_bytes.symbols()}
    values = {symbols["n"]: size, symbols["iteration(y)"]: 2, symbols["iteration(x)"]: 1}
    assert int(access.offset_bytes.evaluate(values)) == 4 * (scale * (2 * size + 1) + shift)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("constants", "n = 0"), ("constants", "for = 3"), ("constants", "x" * 5000),
        ("loops", "i in range(1, 2, 0)"), ("loops", "n in range(3)"), ("loads", "i[3]"),
        ("loads", "a[0]\n" * 70), ("loads", ""), ("arrays", "double"),
        ("loads", "(" * 200),
    ],
)  # fmt: skip
def test_what_cannot_be_read_names_its_field(field: str, text: str) -> None:
    """Every complaint belongs to a field."""
    held = {
        "constants": "n = 10", "loops": "i in range(n)", "arrays": "", "loads": "a[i]",
        "stores": "",
    }  # fmt: skip
    with pytest.raises(FieldError) as caught:
        read_written_nest(WrittenNestTask(**{**held, field: text}))
    assert caught.value.name == field


@given(
    sizes=st.lists(st.integers(1, 5000), min_size=1, max_size=3), most=st.sampled_from([64, 1024])
)
def test_local_sizes_can_be_launched(sizes: list[int], most: int) -> None:
    """Each divides the global size and is small enough; they are few, and each stands once."""
    found = list_local_sizes(NDRange(global_size=tuple(sizes)), most)
    assert found
    assert len(found) == len(set(found)) <= MOST_LOCAL_SIZES + 1
    for one in found:
        assert all(size % side == 0 for size, side in zip(sizes, one, strict=True))
    own = (1,) * len(sizes)
    assert own in list_local_sizes(NDRange(global_size=tuple(sizes), local_size=own), most)


def test_examples_of_the_repository_can_be_typed() -> None:
    """The listing above is the repository's example."""
    example = Path(__file__).parents[3] / "examples" / "loops" / "3d-7pt.c"
    wanted = read_loop_nest(example.read_text(), {"M": 200, "N": 300}, name="example")
    listed = read_loop_nest(LISTING, {"M": 200, "N": 300}, name="listing")
    assert wanted.accesses == listed.accesses or {
        str(one.offset_bytes) for one in wanted.accesses
    } == {str(one.offset_bytes) for one in listed.accesses}
