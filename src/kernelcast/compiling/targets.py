"""What kernels are compiled to: a form of code, and the processor that it is for."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from kernelcast.records.errors import InputError

_PTX = re.compile(r"sm_\d{2,3}[af]?")
_AMD = re.compile(r"gfx\d+[0-9a-f]*")
_PROCESSOR = re.compile(r"\w[\w.-]*")


class CodeFormat(StrEnum):
    """Forms of compiled code."""

    IR = "ir"
    """LLVM IR of a device with OpenCL's own address spaces; built-in functions stay calls."""
    PTX = "ptx"
    """NVIDIA's portable assembly."""
    AMD = "amd"
    """Assembly of AMD's GPUs."""
    X86 = "x86"
    """Assembly of x86-64 processors, of one work-item at a time."""


_NUMBER = re.compile(r"sm_(\d+)")


def choose_processor(wanted: str, known: Iterable[str]) -> str:
    """Choose the newest of NVIDIA's processors that is known and no newer than the wanted one.

    Code for it runs on the wanted one. Where all known ones are newer, it is the oldest of them;
    where none is known, the wanted one.

    Examples
    --------
    >>> known = ["sm_75", "sm_90", "sm_90a", "sm_100"]
    >>> choose_processor("sm_95", known), choose_processor("sm_90a", known)
    ('sm_90', 'sm_90a')
    >>> choose_processor("sm_70", known)
    'sm_75'
    """
    names = [*known]
    if wanted in names or not names:
        return wanted
    numbers = sorted(int(match[1]) for name in names if (match := _NUMBER.fullmatch(name)))
    limit = int(re.sub(r"\D", "", wanted))
    fitting = [number for number in numbers if number <= limit]
    return f"sm_{fitting[-1] if fitting else numbers[0]}"


_TRIPLES = {
    CodeFormat.IR: "spir64-unknown-unknown",
    CodeFormat.PTX: "nvptx64-nvidia-cuda",
    CodeFormat.AMD: "amdgcn-amd-amdhsa",
    CodeFormat.X86: "x86_64-unknown-linux-gnu",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A form of code and a processor.

    Parameters
    ----------
    format : CodeFormat
        What the compiler writes.
    processor : str
        As clang names it: ``sm_90``, ``gfx90a``, ``skylake-avx512``; empty for LLVM IR.
    as_written : bool
        Whether loops and accesses stay those of the source (-O1, nothing unrolled, line numbers),
        or become those of fully optimised code (-O3).
    is_unoptimised : bool
        Whether nothing was done but to inline functions and to keep variables in registers.

    Raises
    ------
    InputError
        If the form of code has no such processor.

    Examples
    --------
    >>> Target.parse("sm_90") == Target.ptx("sm_90")
    True
    """

    format: CodeFormat
    processor: str = ""
    as_written: bool = False
    is_unoptimised: bool = False

    def __post_init__(self) -> None:
        pattern, example = {
            CodeFormat.IR: (re.compile(""), "no processor"),
            CodeFormat.PTX: (_PTX, "sm_90"),
            CodeFormat.AMD: (_AMD, "gfx90a"),
            CodeFormat.X86: (_PROCESSOR, "skylake-avx512"),
        }[self.format]
        if not pattern.fullmatch(self.processor):
            msg = f"target {self.format}: {self.processor!r} is no processor; give {example}"
            raise InputError(msg)

    @classmethod
    def ir(cls, *, as_written: bool = True) -> Self:
        """Make the target of LLVM IR."""
        return cls(format=CodeFormat.IR, as_written=as_written)

    @classmethod
    def unoptimised(cls) -> Self:
        """Make the target of LLVM IR that holds each operation of the source, with its types."""
        return cls(format=CodeFormat.IR, as_written=True, is_unoptimised=True)

    @classmethod
    def ptx(cls, processor: str) -> Self:
        """Make the target of PTX for a GPU such as ``sm_90``."""
        return cls(format=CodeFormat.PTX, processor=processor)

    @classmethod
    def amd(cls, processor: str) -> Self:
        """Make the target of assembly for an AMD GPU such as ``gfx90a``."""
        return cls(format=CodeFormat.AMD, processor=processor)

    @classmethod
    def x86(cls, processor: str = "x86-64-v3") -> Self:
        """Make the target of assembly for a processor such as ``skylake-avx512``."""
        return cls(format=CodeFormat.X86, processor=processor)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Make the target that a user names: ``ir``, ``ir-O3``, ``x86``, a GPU or a processor.

        Raises
        ------
        InputError
            If the text cannot name a processor.
        """
        if text in {"ir", "ir-O3"}:
            return cls.ir(as_written=text == "ir")
        if text == "x86":
            return cls.x86()
        if text.startswith("sm_"):
            return cls.ptx(text)
        return cls.amd(text) if text.startswith("gfx") else cls.x86(text)

    @property
    def triple(self) -> str:
        """LLVM's name of the machine."""
        return _TRIPLES[self.format]

    def __str__(self) -> str:
        return self.processor or ("ir" if self.as_written else "ir-O3")
