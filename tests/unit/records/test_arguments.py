from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.arguments import (
    RANDOM_PERIOD,
    BufferArgument,
    ElementType,
    Init,
    ScalarArgument,
    make_array,
    make_scalar,
)
from kernelcast.records.errors import InputError
from kernelcast.testing import strategies


@given(element=strategies.element_types())
def test_element_types_survive_their_text(element: ElementType) -> None:
    """Reads back every element type from what it prints."""
    assert ElementType.parse(str(element)) == element


@pytest.mark.parametrize(
    ("text", "base", "lanes", "size_bytes"),
    [
        ("float", "float32", 1, 4), ("double8", "float64", 8, 64), ("uchar", "uint8", 1, 1),
        ("half4", "float16", 4, 8), ("ulong2", "uint64", 2, 16), ("int3", "int32", 3, 16),
        ("unsigned int", "uint32", 1, 4), ("size_t", "uint64", 1, 8),
    ],
)  # fmt: skip
def test_reads_opencl_names(text: str, base: str, lanes: int, size_bytes: int) -> None:
    """Reads OpenCL C's type names with the sizes its standard gives, three lanes stored as four."""
    element = ElementType.from_opencl(text)
    assert element == ElementType(base, lanes)
    assert element.bytes == size_bytes


@pytest.mark.parametrize(
    "text", ["", "float5", "int32x7", "complex64", "float32x", "struct S", "x4"]
)
def test_refuses_unknown_types(text: str) -> None:
    """Refuses a type that OpenCL has not, listing the names there are."""
    with pytest.raises(InputError, match="is unknown; use int8"):
        ElementType.parse(text)


@given(argument=strategies.buffer_arguments(), seed=st.integers(0, 1000))
def test_arrays_are_as_described(argument: BufferArgument, seed: int) -> None:
    """Fills a buffer with as many bytes of the type as described, the same for the same seed."""
    with np.errstate(over="ignore"):
        array = make_array(argument, seed=seed)
        again = make_array(argument, seed=seed)
    assert array.dtype == argument.element.dtype
    assert array.nbytes == argument.bytes
    assert len(array) == argument.count
    assert array.tobytes() == again.tobytes()


@pytest.mark.parametrize("base", ["int8", "uint8", "int16", "int32", "uint64", "float32"])
def test_uniform_stays_in_its_range(base: str) -> None:
    """Draws uniform numbers from the half-open range that was given."""
    argument = BufferArgument(
        element=ElementType(base), count=5000, init=Init.UNIFORM, low=3, high=9
    )
    array = make_array(argument, seed=1)
    assert array.min() >= 3
    assert array.max() < 9
    assert len(np.unique(array)) >= 6


def test_recipes_differ_by_seed_and_permute() -> None:
    """Gives other random numbers for another seed, and every index once in a permutation."""
    uniform = BufferArgument(element=ElementType("float32"), count=100, init=Init.UNIFORM)
    assert not np.array_equal(make_array(uniform, seed=1), make_array(uniform, seed=2))
    order = BufferArgument(element=ElementType("int32"), count=100, init=Init.PERMUTATION)
    assert sorted(make_array(order, seed=1)) == list(range(100))


@pytest.mark.parametrize(
    ("base", "low", "high"),
    [("int32", 300, None), ("uint8", -5, 10), ("int8", 0, 1000), ("int32", 0.2, 0.8)],
)
def test_refuses_ranges_without_numbers(base: str, low: float, high: float | None) -> None:
    """Refuses a uniform range that holds no number of the type as bad input."""
    argument = BufferArgument(
        element=ElementType(base), count=4, init=Init.UNIFORM, low=low, high=high
    )
    with pytest.raises(InputError):
        make_array(argument, seed=0)


@given(argument=strategies.scalar_arguments())
def test_scalars_have_the_size_of_their_type(argument: ScalarArgument) -> None:
    """Makes a scalar or vector of exactly the bytes that a kernel expects."""
    assert argument.complain_about_range() is None
    value = make_scalar(argument)
    assert value.nbytes == argument.element.bytes
    assert np.array_equal(
        np.atleast_1d(value)[: argument.element.lanes],
        np.array(argument.values, dtype=argument.element.dtype),
    )


@pytest.mark.parametrize(("base", "value"), [("uint8", 256), ("int8", -129), ("uint32", -1)])
def test_complains_about_values_out_of_range(base: str, value: int) -> None:
    """Says which value does not fit its type and the type's range."""
    complaint = ScalarArgument(element=ElementType(base), values=(value,)).complain_about_range()
    assert complaint is not None
    assert f"value {value} does not fit {base} (" in complaint


def test_reads_files(tmp_path: Path) -> None:
    """Fills a buffer from a .npy file of the right type and size."""
    content = np.arange(8, dtype=np.int32)
    np.save(tmp_path / "content.npy", content)
    argument = BufferArgument(
        element=ElementType("int32"), count=8, init=Init.FILE, path=tmp_path / "content.npy"
    )
    assert np.array_equal(make_array(argument, seed=0), content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (np.arange(7, dtype=np.int32), r"holds 7 values of int32, the buffer wants 8 of int32"),
        (np.arange(8, dtype=np.float32), r"holds 8 values of float32"),
        (None, r"cannot be read as a \.npy file"),
    ],
)
def test_refuses_files_that_do_not_fit(
    tmp_path: Path, content: np.ndarray | None, message: str
) -> None:
    """Refuses a file of another type or size, or that is no .npy file, naming the file."""
    path = tmp_path / "content.npy"
    if content is None:
        path.write_text("no array")
    else:
        np.save(path, content)
    argument = BufferArgument(element=ElementType("int32"), count=8, init=Init.FILE, path=path)
    with pytest.raises(InputError, match=message) as caught:
        make_array(argument, seed=0)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("init", [Init.UNIFORM, Init.NORMAL])
def test_long_random_contents_repeat(init: Init) -> None:
    """Draws no more numbers than matter, and fills the buffer with them."""
    count = RANDOM_PERIOD + 1000
    content = make_array(
        BufferArgument(element=ElementType("float32"), count=count, init=init), seed=3
    )
    assert content.shape == (count,)
    assert np.array_equal(content[RANDOM_PERIOD:], content[:1000])
    assert np.unique(content[:1000]).size > 990
