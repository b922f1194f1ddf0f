from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.arguments import BufferArgument, ElementType, Init
from kernelcast.records.errors import InputError
from kernelcast.sampling import arguments as contents
from kernelcast.sampling.arguments import make_array
from support import strategies


def _describe(base: str, count: int, init: Init, **more: Any) -> BufferArgument:  # noqa: ANN401
    return BufferArgument(element=ElementType(base), count=count, init=init, **more)


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


def test_files_are_read_or_refused(tmp_path: Path) -> None:
    """Refuses a file of another type or size, or that is no .npy file, naming the file."""
    path, content = tmp_path / "content.npy", np.arange(8, dtype=np.int32)
    argument = _describe("int32", 8, Init.FILE, path=path)
    np.save(path, content)
    assert np.array_equal(make_array(argument, seed=0), content)
    for wrong in (content[:7], content.astype(np.float32)):
        np.save(path, wrong)
        message = f"content.npy.*holds {wrong.size} values of {wrong.dtype}, .* 8 of int32"
        with pytest.raises(InputError, match=message):
            make_array(argument, seed=0)
    path.write_text("no array")
    with pytest.raises(InputError, match=r"content.npy.*cannot be read as a \.npy file"):
        make_array(argument, seed=0)


@pytest.mark.parametrize(
    ("base", "init"),
    [("float32", Init.UNIFORM), ("float32", Init.NORMAL), ("int32", Init.UNIFORM),
     ("uint8", Init.UNIFORM)],
)  # fmt: skip
def test_long_random_contents_repeat(
    monkeypatch: pytest.MonkeyPatch, base: str, init: Init
) -> None:
    """Draws no more numbers than matter, and fills the buffer with them, by many threads too."""
    period = 5003
    monkeypatch.setattr(contents, "RANDOM_PERIOD", period)
    monkeypatch.setattr(contents, "_FILLED_AT_ONCE", 1000)
    count = 2 * period + 1000
    content = make_array(_describe(base, count, init), seed=3)
    assert content.shape == (count,)
    assert np.array_equal(content[period : 2 * period], content[:period])
    assert np.array_equal(content[2 * period :], content[:1000])
    if base != "uint8":
        assert np.unique(content[:1000]).size > (990 if base == "float32" else 200)


@pytest.mark.parametrize("counts", [(100_000, 7), (7, 100_000)])
@pytest.mark.parametrize("seed", [0, 2001])
def test_random_contents_are_those_of_numpys_generator(seed: int, counts: tuple[int, int]) -> None:
    """Gives for a seed what recordings of earlier versions were made with, whatever was drawn."""
    for count in counts:
        rngs = (np.random.default_rng(seed) for _ in range(5))
        expected = {
            _describe("float32", count, Init.UNIFORM, low=0.5, high=3.5):
                next(rngs).random(count, dtype=np.float32) * 3.0 + 0.5,
            _describe("int16", count, Init.UNIFORM):
                next(rngs).integers(0, 256, count, dtype=np.int16),
            _describe("uint8", count, Init.UNIFORM, low=3, high=9):
                next(rngs).integers(3, 9, count, dtype=np.uint8),
            _describe("float64", count, Init.NORMAL):
                next(rngs).standard_normal(count, dtype=np.float32),
            _describe("float32", count, Init.PERMUTATION): next(rngs).permutation(count),
        }  # fmt: skip
        for described, content in expected.items():
            assert np.array_equal(make_array(described, seed=seed), content)


def test_counts_over_lanes_and_wraps() -> None:
    """Counts on over the lanes of vectors, and from zero again where the type ends."""
    vectors = replace(_describe("float32", 100_000, Init.ARANGE), element=ElementType("float32", 2))
    assert np.array_equal(make_array(vectors, seed=0).reshape(-1), np.arange(200_000))
    small = _describe("uint8", 100_000, Init.ARANGE)
    assert np.array_equal(make_array(small, seed=0), np.arange(100_000) % 256)


def test_numbers_of_many_ranges_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of short ranges hold what the whole would hold there, and cost no more."""
    argument = _describe("int32", 1 << 16, Init.PERMUTATION)
    whole = make_array(argument, seed=3)
    opened = MagicMock(side_effect=contents._open_content)
    monkeypatch.setattr(contents, "_open_content", opened)
    array, recipe = np.zeros_like(whole), (argument, 3)
    contents.fill_ranges([
        contents.FillOrder(recipe, array, place, place + 8)
        for place in range(0, whole.size, 16)
    ])  # fmt: skip
    assert np.array_equal(array, np.where(np.arange(whole.size) % 16 < 8, whole, 0))
    assert opened.call_count == 1
