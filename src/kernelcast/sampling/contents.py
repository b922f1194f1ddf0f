"""Fills buffers as their recipes say, at the speed of memory."""

import math
import threading
from typing import Any

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

from kernelcast.records.arguments import BufferArgument, Init
from kernelcast.records.errors import InputError

Array = npt.NDArray[Any]

RANDOM_PERIOD = 16_777_213
"""Random contents repeat after so many numbers: to draw 500 million takes longer than all launches
on them. A prime, so that no stride of a kernel meets the same values again."""
_KEPT_BYTES = 256 << 20
# Whole numbers in a row are made in pieces that stay in a core's cache until they are converted.
_PIECE = 1 << 16

_drawn: LRUCache[tuple[object, ...], Array] = LRUCache(_KEPT_BYTES, getsizeof=lambda a: a.nbytes)
_drawn_lock = threading.Lock()


def shape_of(argument: BufferArgument) -> tuple[int, ...]:
    """Give the shape of a buffer as an array of base types: vectors have a second axis."""
    lanes = argument.element.stored_lanes
    return (argument.count,) if lanes == 1 else (argument.count, lanes)


def make_array(argument: BufferArgument, *, seed: int) -> Array:
    """Make the initial content of a buffer, on the host.

    Parameters
    ----------
    argument : BufferArgument
        The recipe.
    seed : int
        Seed of the random recipes; the same seed gives the same content.

    Raises
    ------
    InputError
        If a file cannot be read or does not hold `count` elements of the type, or if a uniform
        range holds no number of the type.
    """
    dtype = argument.element.dtype
    if argument.init is Init.FILE:
        return _load(argument)
    if argument.init is Init.ZEROS:
        return np.zeros(shape_of(argument), dtype=dtype)
    array = np.empty(shape_of(argument), dtype=dtype)
    fill_array(argument, array, seed=seed)
    return array


def fill_array(argument: BufferArgument, array: Array, *, seed: int) -> None:
    """Write the initial content of a buffer where it belongs.

    Parameters
    ----------
    argument : BufferArgument
        The recipe.
    array : ndarray
        Contiguous, of the recipe's type and shape.
    seed : int
        As of `make_array`, which has the errors too.
    """
    flat = array.reshape(-1)
    match argument.init:
        case Init.FILE:
            array[...] = _load(argument)
        case Init.ZEROS | Init.ONES:
            array.fill(argument.init is Init.ONES)
        case Init.ARANGE:
            _count_up(flat)
        case Init.PERMUTATION:
            # 2^26 numbers take 2.7 s so; to shuffle them where they lie, in 32 bits, takes 3.3 s.
            order = np.random.default_rng(seed).permutation(flat.size)
            np.copyto(flat, order, casting="unsafe")
        case Init.UNIFORM | Init.NORMAL:
            drawn = _draw_once(argument, min(flat.size, RANDOM_PERIOD), seed)
            for begin in range(0, flat.size, drawn.size):
                part = flat[begin : begin + drawn.size]
                part[...] = drawn[: part.size]


def _count_up(flat: Array) -> None:
    for begin in range(0, flat.size, _PIECE):
        part = flat[begin : begin + _PIECE]
        np.copyto(part, np.arange(begin, begin + part.size), casting="unsafe")


def _draw_once(argument: BufferArgument, count: int, seed: int) -> Array:
    """Draw numbers, or take the first of those that were drawn of the same recipe and seed."""
    key = (argument.init, argument.element.base, argument.low, argument.high, seed)
    with _drawn_lock:
        kept = _drawn.get(key)
    if kept is None or kept.size < count:
        kept = _draw(argument, count, np.random.default_rng(seed))
        with _drawn_lock:
            _drawn[key] = kept
    return kept[:count]


def _draw(argument: BufferArgument, count: int, rng: np.random.Generator) -> Array:
    dtype = argument.element.dtype
    if argument.init is Init.NORMAL:
        return rng.standard_normal(count, dtype=np.float32).astype(dtype)
    complaint = argument.complain_about_range()
    if complaint:
        msg = f"uniform buffer of {argument.element}: {complaint}"
        raise InputError(msg)
    low, high = argument.uniform_range
    if dtype.kind == "f":
        unit = rng.random(count, dtype=np.float64 if dtype.itemsize == 8 else np.float32)
        return (unit * (high - low) + low).astype(dtype)
    return rng.integers(math.ceil(low), math.ceil(high), count, dtype=dtype)


def _load(argument: BufferArgument) -> Array:
    path, dtype, shape = argument.path, argument.element.dtype, shape_of(argument)
    try:
        content: Array = np.load(str(path), allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        msg = f"{path}: cannot be read as a .npy file ({error}); write it with numpy.save"
        raise InputError(msg) from error
    if content.dtype != dtype or content.size != np.prod(shape):
        msg = (
            f"{path}: holds {content.size} values of {content.dtype}, "
            f"the buffer wants {int(np.prod(shape))} of {dtype}"
        )
        raise InputError(msg)
    return np.ascontiguousarray(content).reshape(shape)
