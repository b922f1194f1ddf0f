"""What a kernel of the benchmark of unseen launches is made of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Content = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer in global memory."""

    content: Content


@dataclass(frozen=True, slots=True)
class Restored(Buffer):
    """A buffer that gets its content back before each launch: what the kernel does hangs on it."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image of two dimensions that the kernel reads, of four floats a pixel."""

    content: Content


@dataclass(frozen=True, slots=True)
class Local:
    """Local memory that the host sizes."""

    size_bytes: int


Argument = Buffer | Image | Local | np.generic


@dataclass(frozen=True, slots=True)
class Case:
    """A launch of one kernel."""

    source: str
    """Name of the file beside this one, without its ending."""
    kernel: str
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None
    """Left to the runtime if None."""
    arguments: tuple[Argument, ...]


Make = Callable[[np.random.Generator], Case]
CASES: dict[str, Make] = {}
"""By name: makes the case from a generator that is seeded with that name."""


def case(make: Make) -> Make:
    """Enter a function that makes a case under its own name."""
    CASES[make.__name__] = make
    return make


def random_floats(rng: np.random.Generator, *shape: int) -> Content:
    """Give numbers between 0 and 1 in single precision."""
    return rng.random(shape, dtype=np.float32)


def random_words(rng: np.random.Generator, count: int, least: int = 0) -> Content:
    """Give words of 32 bits."""
    return rng.integers(least, 1 << 32, count, dtype=np.uint64).astype(np.uint32)


def zeros(*shape: int, dtype: type[np.generic] = np.float32) -> Buffer:
    """Give a buffer for results."""
    return Buffer(np.zeros(shape, dtype))


def round_up(count: int, unit: int) -> int:
    """Give the next multiple."""
    return -(-count // unit) * unit
