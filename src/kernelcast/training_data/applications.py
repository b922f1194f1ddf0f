"""The applications of the benchmark corpus: their kernels, sizes, inputs and reference checks.

``application.yaml`` of each folder says what there is (format: README.md of the corpus).
"""

import fnmatch
import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Annotated, TypeAlias, cast

from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import MAX_DIMENSIONS
from kernelcast.records.yaml_files import Sizes, load
from kernelcast.training_data import corpus
from kernelcast.training_data.reference import Reference

DESCRIPTION = "application.yaml"
InputMaker: TypeAlias = Callable[[Mapping[str, int], Path], dict[str, int]]
"""Writes .npy files into a folder; gives the parameters that depend on their content."""


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
    parameter: str
    least: int
    most: int
    """First and last value; both can be taken."""
    multiple_of: int = 1
    power_of_two: bool = False
    exponent: float = 1.0
    """The launch's time grows about as value ** exponent."""

    def __post_init__(self) -> None:
        if not 1 <= self.least < self.most:
            msg = f"size: least {self.least} and most {self.most}; give 1 <= least < most"
            raise InputError(msg)
        if self.multiple_of < 1 or not (math.isfinite(self.exponent) and self.exponent > 0):
            raise InputError(
                f"size: multiple_of {self.multiple_of} and exponent {self.exponent}; give a "
                "whole number of at least 1 and a number above 0"
            )
        for value in (self.least, self.most):
            if not self.can_be(value):
                kind = "power of two and " if self.power_of_two else ""
                msg = f"size: {value} is no {kind}multiple of {self.multiple_of}; give one"
                raise InputError(msg)

    def can_be(self, value: int) -> bool:
        is_fine = not self.power_of_two or value & (value - 1) == 0
        return self.least <= value <= self.most and value % self.multiple_of == 0 and is_fine

    def fit(self, value: float) -> int:
        wanted = min(max(value, self.least), self.most)
        if self.power_of_two:
            return 1 << round(math.log2(wanted))
        # a multiple beyond the ends is never nearer than the end, which is a multiple itself
        return int(wanted / self.multiple_of + 0.5) * self.multiple_of

    def scale(self, value: float, time_factor: float) -> int:
        """Return the allowed value at which the launch takes about `time_factor` times as long."""
        return self.fit(value * time_factor ** (1.0 / self.exponent))


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusKernel:
    application: str
    problem_path: Path
    """The problem file; its stem names the kernel within the application."""
    size: SizeRange
    local_sizes: tuple[tuple[int, ...], ...]
    """Local sizes it is meant for, usual one first."""
    suite: str = ""
    """Its application's suite; empty for kernels of one's own."""
    sizes: tuple[int, ...] = ()
    """Values of the size parameter that it is collected at; empty: searched on each device."""
    table_2: str | None = None
    uses_fp64: bool = False
    note: str = ""

    def __post_init__(self) -> None:
        dimensions = {len(one) for one in self.local_sizes}
        is_sound = all(extent >= 1 for one in self.local_sizes for extent in one)
        if len(dimensions) != 1 or not (is_sound and 1 <= min(dimensions) <= MAX_DIMENSIONS):
            raise InputError(
                f"local_sizes: found {[list(one) for one in self.local_sizes]}, expected lists of "
                "one to three whole numbers, all of the same length, for example [[64], [256]]"
            )

    @property
    def stem(self) -> str:
        return self.problem_path.stem

    @property
    def name(self) -> str:
        """Name within the corpus: ``application/stem``; the stem of a kernel without one."""
        return f"{self.application}/{self.stem}".lstrip("/")


def _make_kernel(
    problem: Path,
    size: SizeRange,
    local_sizes: tuple[Sizes, ...],
    table_2: str | None = None,
    fp64: bool = False,
    note: str = "",
) -> CorpusKernel:
    return CorpusKernel(
        application=problem.parent.name, problem_path=problem, size=size, local_sizes=local_sizes,
        table_2=table_2, uses_fp64=fp64, note=note,
    )  # fmt: skip


_Kernel: TypeAlias = Annotated[CorpusKernel, lambda one: one.call(_make_kernel)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    folder: Path
    name: str
    suite: Suite
    title: str
    kernels: tuple[_Kernel, ...]

    def __post_init__(self) -> None:
        if not self.kernels:
            raise InputError("kernels: expected at least one, found none")


def read_application(folder: Path) -> Application:
    """Read an application's folder; every complaint names the file and the key."""
    needs = "an application needs name, suite, title and kernels"
    made = load(folder / DESCRIPTION, "application", needs).call(Application, folder=folder)
    return replace(made, kernels=tuple(replace(one, suite=made.suite) for one in made.kernels))


def find_applications() -> tuple[Application, ...]:
    """Read every application of the corpus, in the order of their folders' names."""
    folder = Path(corpus.__path__[0])
    return tuple(read_application(path.parent) for path in sorted(folder.glob(f"*/{DESCRIPTION}")))


def find_kernels(*patterns: str) -> tuple[CorpusKernel, ...]:
    """Return the kernels whose name, ``application/stem``, matches a pattern, each once."""
    kernels = tuple(kernel for one in find_applications() for kernel in one.kernels)
    return choose_kernels(kernels, patterns, "the corpus", "; `kernelcast corpus ls` lists them")


def choose_kernels(
    kernels: Sequence[CorpusKernel], patterns: Sequence[str], where: str, advice: str = ""
) -> tuple[CorpusKernel, ...]:
    """Choose the kernels that match a pattern, as `find_kernels` does; none takes all."""
    found: dict[str, CorpusKernel] = {}
    for pattern in patterns or ("*",):
        matching = {}
        for one in kernels:
            names = [one.name]
            if "/" not in pattern:
                names += [one.application, one.stem, one.table_2 or ""]
            if any(fnmatch.fnmatchcase(name, pattern) for name in names):
                matching[one.name] = one
        if not matching:
            raise InputError(f"no kernel of {where} matches {pattern!r}{advice}")
        found |= matching
    return tuple(found.values())


def load_reference(kernel: CorpusKernel) -> Reference:
    references = _import(kernel.application, "reference").REFERENCES
    if kernel.stem not in references:
        msg = f"{kernel.name}: reference.py holds {sorted(references)}; add {kernel.stem!r}"
        raise InputError(msg)
    return cast("Reference", references[kernel.stem])


def load_input_maker(kernel: CorpusKernel) -> InputMaker | None:
    """Import what makes the .npy files of a kernel's application; None if it has none."""
    folder = kernel.problem_path.parent
    if folder.parent != Path(corpus.__path__[0]) or not (folder / "inputs.py").is_file():
        return None
    return cast("InputMaker", _import(kernel.application, "inputs").make)


def _import(application: str, module: str) -> ModuleType:
    return importlib.import_module(f"{corpus.__name__}.{application}.{module}")
