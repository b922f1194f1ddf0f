"""Reads the options of OpenCL programs: what clang's frontend is given of them, and what is not."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from kernelcast.records.errors import InputError

_LANGUAGE = re.compile(r"-cl-std=(CL(?:1\.[012]|[23]\.0))", re.IGNORECASE)
# Options begin so; a word of a macro's value such as the -1 in `-DLESS=x -1` does not.
_OPTION = re.compile(r"-(?:[DUI]|cl-|[wgx]$|W|f|O|include|spir|save|m)")
_WITH_VALUE = frozenset({"-D", "-U", "-I", "-x", "-include"})
_PASSED = frozenset({
    "-w", "-cl-single-precision-constant", "-cl-no-signed-zeros", "-cl-unsafe-math-optimizations",
    "-cl-finite-math-only", "-cl-fast-relaxed-math", "-cl-mad-enable", "-cl-kernel-arg-info",
    "-cl-fp32-correctly-rounded-divide-sqrt",
})  # fmt: skip
_DENORMS_ARE_ZERO = "-cl-denorms-are-zero"
_NUL_OR_SURROGATE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    flags: tuple[str, ...]
    language: str | None
    """The last -cl-std, such as ``CL2.0``."""
    folders: tuple[str, ...]
    """Of -I, in their order."""
    dropped: tuple[str, ...]


def read_options(options: Sequence[str]) -> ReadOptions:
    """Sort options of a program, given one by one or several in a string."""
    flags: list[str] = []
    folders: list[str] = []
    dropped: list[str] = []
    language = None
    words = iter([word for option in options for word in _split(option)])
    for word in words:
        option = word + next(words, "") if word in _WITH_VALUE else word
        if option[:2] in {"-D", "-U"} and option[2:].strip():
            flags.append(option)
        elif option[:2] == "-I" and option != "-include":
            folders.append(option[2:])
        elif match := _LANGUAGE.fullmatch(option):
            language = match[1].upper()
        elif option in _PASSED:
            flags.append(option)
        elif option == _DENORMS_ARE_ZERO:
            flags.append("-fdenormal-fp-math-f32=preserve-sign,preserve-sign")
        else:
            dropped.append(option)
    return ReadOptions(
        flags=tuple(flags), language=language, folders=tuple(folders), dropped=tuple(dropped)
    )


def _split(text: str) -> list[str]:
    """Split as a shell does, but leave together a macro whose value holds blanks."""
    if _NUL_OR_SURROGATE.search(text):
        msg = f"build options {text!r}: they hold what is not text; give UTF-8 without NUL bytes"
        raise InputError(msg)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"build options {text!r}: {error}; close every quotation mark") from error
    joined: list[str] = []
    for word in words:
        follows_macro = bool(joined) and joined[-1].startswith("-D") and joined[-1] != "-D"
        if follows_macro and not _OPTION.match(word):
            joined[-1] += f" {word}"
        else:
            joined.append(word)
    return joined
