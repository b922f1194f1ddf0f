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
    IR = "ir"
    """LLVM IR of a device with OpenCL's own address spaces; built-in functions stay calls."""
    PTX = "ptx"
    AMD = "amd"
    X86 = "x86"
    """Assembly of x86-64 processors, of one work-item at a time."""


_NUMBER = re.compile(r"sm_(\d+)")


def choose_processor(wanted: str, known: Iterable[str]) -> str:
    """Choose the newest GPU that is known and no newer than the wanted, else the oldest."""
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
    """A form of code and a processor as clang names it; empty for LLVM IR."""

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
    def unoptimised(cls) -> Self:
        """Make the target of LLVM IR that holds each operation of the source, with its types."""
        return cls(format=CodeFormat.IR, as_written=True, is_unoptimised=True)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Make the target that a user names: ``ir``, ``ir-O3``, ``x86``, a GPU or a processor."""
        if text in {"ir", "ir-O3"}:
            return cls(format=CodeFormat.IR, as_written=text == "ir")
        if text.startswith("sm_"):
            return cls(format=CodeFormat.PTX, processor=text)
        if text.startswith("gfx"):
            return cls(format=CodeFormat.AMD, processor=text)
        processor = "x86-64-v3" if text == "x86" else text
        return cls(format=CodeFormat.X86, processor=processor)

    @property
    def triple(self) -> str:
        return _TRIPLES[self.format]

    def __str__(self) -> str:
        return self.processor or ("ir" if self.as_written else "ir-O3")
