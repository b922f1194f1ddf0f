"""What kernels are compiled to, a form of code for a processor, and by which options of OpenCL."""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from kernelcast.records.errors import InputError


class CodeFormat(StrEnum):
    IR = "ir"
    """LLVM IR of a device with OpenCL's own address spaces; built-in functions stay calls."""
    PTX = "ptx"
    AMD = "amd"
    X86 = "x86"
    """Assembly of x86-64 processors, of one work-item at a time."""


_FORMATS = {
    CodeFormat.IR: ("spir64-unknown-unknown", "", "no processor"),
    CodeFormat.PTX: ("nvptx64-nvidia-cuda", r"sm_\d{2,3}[af]?", "sm_90"),
    CodeFormat.AMD: ("amdgcn-amd-amdhsa", r"gfx\d+[0-9a-f]*", "gfx90a"),
    CodeFormat.X86: ("x86_64-unknown-linux-gnu", r"\w[\w.-]*", "skylake-avx512"),
}
"""Their triples, how names of their processors are written, and one of those."""


def choose_processor(wanted: str, known: Iterable[str]) -> str:
    """Choose the newest GPU that is known and no newer than the wanted, else the oldest."""
    names = [*known]
    if wanted in names or not names:
        return wanted
    numbers = sorted(int(name[3:]) for name in names if re.fullmatch(r"sm_\d+", name))
    limit = int(re.sub(r"\D", "", wanted))
    fitting = [number for number in numbers if number <= limit]
    return f"sm_{fitting[-1] if fitting else numbers[0]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A form of code and a processor as clang names it; empty for LLVM IR."""

    format: CodeFormat
    processor: str = ""
    as_written: bool = False
    """Whether it holds each operation of the source, as facts are read from."""

    def __post_init__(self) -> None:
        _, pattern, example = _FORMATS[self.format]
        if not re.fullmatch(pattern, self.processor):
            msg = f"target {self.format}: {self.processor!r} is no processor; give {example}"
            raise InputError(msg)

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
        return _FORMATS[self.format][0]

    def __str__(self) -> str:
        return self.processor or ("ir" if self.as_written else "ir-O3")


_LANGUAGE = re.compile(r"-cl-std=(CL(?:1\.[012]|[23]\.0))", re.IGNORECASE)
# Options begin so; a word of a macro's value such as the -1 in `-DLESS=x -1` does not.
_OPTION = re.compile(r"-(?:[DUI]|cl-|[wgx]$|W|f|O|include|spir|save|m)")
_WITH_VALUE = frozenset({"-D", "-U", "-I", "-x", "-include"})
_PASSED = frozenset({
    "-w", "-cl-single-precision-constant", "-cl-no-signed-zeros", "-cl-unsafe-math-optimizations",
    "-cl-finite-math-only", "-cl-fast-relaxed-math", "-cl-mad-enable", "-cl-kernel-arg-info",
    "-cl-fp32-correctly-rounded-divide-sqrt",
})  # fmt: skip
_NUL_OR_SURROGATE = re.compile("[\0\ud800-\udfff]")


@dataclass(slots=True)
class ReadOptions:
    flags: list[str] = field(default_factory=list)
    language: str | None = None
    folders: list[str] = field(default_factory=list)
    """Of -I, in their order."""
    dropped: list[str] = field(default_factory=list)


def read_options(options: Sequence[str]) -> ReadOptions:
    """Sort options of a program, given one by one or several in a string."""
    found, split = ReadOptions(), list[str]()
    for text in options:
        if _NUL_OR_SURROGATE.search(text):
            raise InputError(
                f"build options {text!r}: they hold what is not text; give UTF-8 without NUL bytes"
            )
        try:
            parts = shlex.split(text)
        except ValueError as error:
            msg = f"build options {text!r}: {error}; close every quotation mark"
            raise InputError(msg) from error
        for place, word in enumerate(parts):
            before = split[-1] if place else ""
            # A macro whose value holds blanks stays together, which a shell would split.
            if before.startswith("-D") and before != "-D" and not _OPTION.match(word):
                split[-1] += f" {word}"
            else:
                split.append(word)
    words = iter(split)
    for word in words:
        option = word + next(words, "") if word in _WITH_VALUE else word
        if option[:2] in {"-D", "-U"} and option[2:].strip():
            found.flags.append(option)
        elif option[:2] == "-I" and option != "-include":
            found.folders.append(option[2:])
        elif match := _LANGUAGE.fullmatch(option):
            found.language = match[1].upper()
        elif option in _PASSED:
            found.flags.append(option)
        elif option == "-cl-denorms-are-zero":
            found.flags.append("-fdenormal-fp-math-f32=preserve-sign,preserve-sign")
        else:
            found.dropped.append(option)
    return found
