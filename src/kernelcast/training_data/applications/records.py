"""What the corpus says about an application, its kernels and the sizes they can take."""

import math
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import MAX_DIMENSIONS


class Suite(StrEnum):
    """Where an application's namesake comes from."""

    AMD = "AMD"
    NVIDIA = "NVIDIA"
    PARBOIL = "Parboil"
    SHOC = "SHOC"
    SNU_NPB = "SNU NPB"
    OWN = "own"


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRange:
    """The parameter that makes a kernel's launch larger, and how far it goes."""

    parameter: str
    """Name of the problem's parameter."""
    least: int
    most: int
    """First and last value; both can be taken."""
    multiple_of: int = 1
    """Values are multiples of this."""
    is_power_of_two: bool = False
    """Whether values are powers of two."""
    exponent: float = 1.0
    """The launch's time grows about as value ** exponent."""

    def __post_init__(self) -> None:
        if not 1 <= self.least < self.most:
            msg = f"size: least {self.least} and most {self.most}; give 1 <= least < most"
            raise InputError(msg)
        if self.multiple_of < 1 or not (math.isfinite(self.exponent) and self.exponent > 0):
            msg = (
                f"size: multiple_of {self.multiple_of} and exponent {self.exponent}; give a "
                "whole number of at least 1 and a number above 0"
            )
            raise InputError(msg)
        for value in (self.least, self.most):
            if not self.can_be(value):
                kind = "power of two and " if self.is_power_of_two else ""
                msg = f"size: {value} is no {kind}multiple of {self.multiple_of}; give one"
                raise InputError(msg)

    def can_be(self, value: int) -> bool:
        """Tell whether the parameter can have a value."""
        is_fine = not self.is_power_of_two or value & (value - 1) == 0
        return self.least <= value <= self.most and value % self.multiple_of == 0 and is_fine

    def fit(self, value: float) -> int:
        """Give the allowed value nearest to a wanted one.

        Examples
        --------
        >>> SizeRange(parameter="N", least=64, most=4096, multiple_of=64).fit(1000)
        1024
        >>> SizeRange(parameter="N", least=64, most=4096, is_power_of_two=True).fit(1500)
        2048
        """
        wanted = min(max(value, self.least), self.most)
        if self.is_power_of_two:
            return 1 << round(math.log2(wanted))
        # a multiple beyond the ends is never nearer than the end, which is a multiple itself
        return int(wanted / self.multiple_of + 0.5) * self.multiple_of

    def scale(self, value: float, time_factor: float) -> int:
        """Give the allowed value at which the launch takes about `time_factor` times as long.

        Examples
        --------
        >>> square = SizeRange(parameter="N", least=16, most=8192, multiple_of=16, exponent=2.0)
        >>> square.scale(512, 4.0)
        1024
        """
        return self.fit(value * time_factor ** (1.0 / self.exponent))


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusKernel:
    """A kernel of the corpus with its problem file."""

    application: str
    """Name of the application's folder."""
    problem_path: Path
    """The problem file; its stem names the kernel within the application."""
    size: SizeRange
    """What makes it larger."""
    local_sizes: tuple[tuple[int, ...], ...]
    """Local sizes it is meant for, usual one first."""
    suite: str = ""
    """Its application's suite; empty for kernels of one's own."""
    sizes: tuple[int, ...] = ()
    """Values of the size parameter that it is collected at; empty: searched on each device."""
    table_2: str | None = None
    """Its name in Table 2 of the sampling paper."""
    uses_fp64: bool = False
    """Whether the device needs double precision."""
    note: str = ""
    """What is special about it, or empty."""

    def __post_init__(self) -> None:
        dimensions = {len(one) for one in self.local_sizes}
        is_sound = all(extent >= 1 for one in self.local_sizes for extent in one)
        if len(dimensions) != 1 or not (is_sound and 1 <= min(dimensions) <= MAX_DIMENSIONS):
            msg = (
                f"local_sizes: found {[list(one) for one in self.local_sizes]}, expected lists of "
                "one to three whole numbers, all of the same length, for example [[64], [256]]"
            )
            raise InputError(msg)

    @property
    def stem(self) -> str:
        """Name within the application."""
        return self.problem_path.stem

    @property
    def name(self) -> str:
        """Name within the corpus: ``application/stem``; the stem of a kernel without one."""
        return f"{self.application}/{self.stem}".lstrip("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """An application of the corpus."""

    folder: Path
    """Where it lies; the folder's name is that of its package."""
    name: str
    """How its suite calls it."""
    suite: Suite
    """Where its namesake comes from."""
    title: str
    """What it computes, in a few words."""
    kernels: tuple[CorpusKernel, ...]
    """In the order of application.yaml."""
