"""Parses OpenCL C 1.0 to 3.0 with libclang, also where a source is not quite right.

The wheel of libclang lacks OpenCL's own header; `header` writes the declarations it would hold.
Measured with libclang 18.1: 0.75 ms for an empty kernel, of which that header is 0.25 ms, so a
precompiled header (a file to keep somewhere) would save little.
"""

import ctypes
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from clang import cindex

from kernelcast.features.header import make_header
from kernelcast.records.errors import CompileError, InputError
from kernelcast.records.kernel import Kernel

MAIN_FILE = "/kernelcast-virtual/kernel.cl"
_HEADER_FILE = "/kernelcast-virtual/types.h"
_HEADER = make_header()
_OPTIONS = (
    "-x", "cl", "-target", "spir64-unknown-unknown",
    "-Xclang", "-fdeclare-opencl-builtins",
    "-cl-no-stdinc", "-nostdinc", "-include", _HEADER_FILE,
    "-fno-spell-checking", "-ferror-limit=0", "-w",
    # Errors since clang 15, remarks in the compilers that most public sources were written for.
    "-Wno-int-conversion", "-Wno-implicit-int", "-Wno-incompatible-function-pointer-types",
)  # fmt: skip
# Sources ask for a vendor's extensions by their macros before they leave the common path.
_EXTENSIONS = "-cl-ext=+all" + "".join(
    f",-cl_{name}"
    for name in (
        "intel_subgroups", "intel_subgroups_short", "intel_device_side_avc_motion_estimation",
        "amd_media_ops", "amd_media_ops2",
    )
)  # fmt: skip
_PRIVATE_POINTERS = _EXTENSIONS + "".join(
    f",-__opencl_c_{name}" for name in ("generic_address_space", "pipes", "device_enqueue")
)
# What is tried: 3.0 with all its options; 3.0 on a device where a pointer that names no address
# space is private, as many are; 1.2, which has fewer words that a source can collide with.
_VARIANTS = (("CL3.0", _EXTENSIONS), ("CL3.0", _PRIVATE_POINTERS), ("CL1.2", _EXTENSIONS))
_LANGUAGE_OPTION = re.compile(r"-cl-std=(CL(1\.[012]|[23]\.0|C\+\+(1\.0|2021)?))", re.IGNORECASE)
_KERNEL_KEYWORD = re.compile(r"\b(?:__)?kernel\b")
# Options of OpenCL compilers that change how a source reads; the others are left out.
_PREPROCESSOR = ("-D", "-I", "-U")
_KEPT_OPTIONS = ("-cl-fast-relaxed-math", "-cl-single-precision-constant")
_SHOWN_ERRORS = 20
# libclang's numbers, which its Python module does not name.
_KEEP_GOING = 0x200  # go on after a header that is not there
_TERSE_OUTPUT = 17  # print a declaration without its body


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedSource:
    """A source as libclang understands it.

    Parameters
    ----------
    source : str
        The text that was parsed.
    unit : clang.cindex.TranslationUnit
        Its syntax tree; incomplete near the errors.
    errors : tuple of str
        The first 20 errors, each as ``name:line:column: message``.
    language : str
        The version of OpenCL C it was parsed as, such as ``CL3.0``.
    """

    source: str
    unit: cindex.TranslationUnit
    errors: tuple[str, ...]
    language: str

    @property
    def is_clean(self) -> bool:
        """Whether libclang found no error."""
        return not self.errors


def parse_source(
    source: str,
    build_options: Sequence[str] = (),
    *,
    source_name: str = "<source>",
    include_folders: Sequence[str | Path] = (),
) -> ParsedSource:
    """Parse a source as the version of OpenCL C that gives the fewest errors.

    Parameters
    ----------
    source : str
        OpenCL C text.
    build_options : sequence of str
        Options for the device's compiler; the preprocessor's, ``-cl-std`` (the version that is
        tried first), ``-cl-fast-relaxed-math`` and ``-cl-single-precision-constant`` are used.
    source_name : str
        What error messages call the source.
    include_folders : sequence of str or Path
        Where included files are looked for, after the folders of ``-I``.

    Returns
    -------
    ParsedSource
        The syntax tree and the errors.

    Raises
    ------
    InputError
        If the source or an option cannot be text of a program, or a quotation mark of the
        options is not closed.
    CompileError
        If libclang makes nothing at all of the source.

    Examples
    --------
    >>> parsed = parse_source("kernel void k(global N *a) { a[0] = 1; }", ["-DN=float4"])
    >>> parsed.is_clean, parsed.language, list_kernels(parsed)
    (True, 'CL3.0', ('k',))
    >>> parse_source("kernel void k() { x; }", source_name="k.cl").errors
    ("k.cl:1:19: use of undeclared identifier 'x'",)
    """
    _check_text("source", source, source_name)
    words = _split_options(build_options)
    options = [*_OPTIONS, *_select_options(words), *(f"-I{folder}" for folder in include_folders)]
    best: ParsedSource | None = None
    fewest = 0
    for language, extensions in _order_variants(words):
        unit = _parse(source, [*options, f"-cl-std={language}", "-Xclang", extensions])
        if unit is None:
            continue
        errors = tuple(_describe_errors(unit, source_name))
        if best is None or len(errors) < fewest:
            fewest = len(errors)
            shown = errors[:_SHOWN_ERRORS]
            best = ParsedSource(source=source, unit=unit, errors=shown, language=language)
        if not errors:
            break
    if best is None:
        msg = f"{source_name}: libclang can make nothing of this source; is it OpenCL C?"
        raise CompileError(msg)
    return best


def list_kernels(parsed: ParsedSource) -> tuple[str, ...]:
    """List the names of the kernels that a source defines, in its order.

    Parameters
    ----------
    parsed : ParsedSource
        The source; it may have errors.

    Returns
    -------
    tuple of str
        The names, each once.
    """
    names = (
        cursor.spelling
        for cursor in parsed.unit.cursor.get_children()
        if cursor.kind == cindex.CursorKind.FUNCTION_DECL
        and cursor.is_definition()
        and _is_kernel(cursor)
    )
    return tuple(dict.fromkeys(names))


def parse_kernel(kernel: Kernel) -> cindex.TranslationUnit | None:
    """Parse a kernel's source.

    Parameters
    ----------
    kernel : Kernel
        The kernel; of its build options those of the preprocessor are used.

    Returns
    -------
    clang.cindex.TranslationUnit or None
        None if libclang cannot make anything of the source, or reports errors in it: facts from
        a half-understood source would be wrong.
    """
    try:
        parsed = parse_source(kernel.source, kernel.build_options)
    except InputError:
        return None
    return parsed.unit if parsed.is_clean else None


def find_kernel(unit: cindex.TranslationUnit, name: str) -> cindex.Cursor | None:
    """Find the definition of a function by its name."""
    for cursor in unit.cursor.get_children():
        if (
            cursor.kind == cindex.CursorKind.FUNCTION_DECL
            and cursor.spelling == name
            and cursor.is_definition()
        ):
            return cursor
    return None


def _parse(source: str, options: list[str]) -> cindex.TranslationUnit | None:
    # An index of its own for each parse: it costs 2 us, and threads must not share one.
    try:
        return cindex.Index.create().parse(
            MAIN_FILE,
            args=options,
            unsaved_files=[(MAIN_FILE, source), (_HEADER_FILE, _HEADER)],
            options=_KEEP_GOING,
        )
    except cindex.TranslationUnitLoadError:
        return None


def _describe_errors(unit: cindex.TranslationUnit, source_name: str) -> Iterator[str]:
    for one in unit.diagnostics:
        if one.severity < cindex.Diagnostic.Error:
            continue
        file, line, column = one.location.file, one.location.line, one.location.column
        if file is None:
            yield f"{source_name}: {one.spelling}"
        else:
            name = source_name if file.name == MAIN_FILE else file.name
            yield f"{name}:{line}:{column}: {one.spelling}"


def _is_kernel(cursor: cindex.Cursor) -> bool:
    """Tell a kernel by its declaration as clang prints it.

    Neither the calling convention nor the kind of the attribute tells it, and the tokens of the
    source may come from a macro.
    """
    library = _load_printer()
    policy = library.clang_getCursorPrintingPolicy(cursor)
    library.clang_PrintingPolicy_setProperty(policy, _TERSE_OUTPUT, 1)
    try:
        declaration = str(library.clang_getCursorPrettyPrinted(cursor, policy))
    finally:
        library.clang_PrintingPolicy_dispose(policy)
    return _KERNEL_KEYWORD.search(declaration) is not None


@cache
def _load_printer() -> Any:  # noqa: ANN401 - functions of a C library
    """Describe to ctypes the functions of libclang that its Python module leaves out."""
    library = cindex.conf.lib
    library.clang_getCursorPrintingPolicy.restype = ctypes.c_void_p
    library.clang_getCursorPrintingPolicy.argtypes = [cindex.Cursor]
    library.clang_PrintingPolicy_setProperty.restype = None
    library.clang_PrintingPolicy_setProperty.argtypes = [
        ctypes.c_void_p, ctypes.c_int, ctypes.c_uint,
    ]  # fmt: skip
    library.clang_PrintingPolicy_dispose.restype = None
    library.clang_PrintingPolicy_dispose.argtypes = [ctypes.c_void_p]
    library.clang_getCursorPrettyPrinted.restype = cindex._CXString  # noqa: SLF001 - libclang's own
    library.clang_getCursorPrettyPrinted.argtypes = [cindex.Cursor, ctypes.c_void_p]
    library.clang_getCursorPrettyPrinted.errcheck = cindex._CXString.from_result  # noqa: SLF001
    return library


def _check_text(what: str, text: str, source_name: str) -> None:
    """Refuse what no compiler takes: NUL, and halves of characters (text that was not UTF-8)."""
    found = re.search("[\0\ud800-\udfff]", text)
    if found is None:
        return
    before = text[: found.start()]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    msg = (
        f"{source_name}:{line}:{column}: the {what} holds U+{ord(found[0]):04X}, which is not"
        " text; give OpenCL C as UTF-8 without NUL bytes"
    )
    raise InputError(msg)


def _split_options(build_options: Sequence[str]) -> list[str]:
    text = " ".join(build_options)
    _check_text("build option", text, "build options")
    try:
        return shlex.split(text)
    except ValueError as error:
        msg = f"build options {text!r}: {error}; close every quotation mark"
        raise InputError(msg) from error


def _order_variants(words: list[str]) -> tuple[tuple[str, str], ...]:
    """Put the last version that the options name before the usual ones."""
    matches = [found for found in map(_LANGUAGE_OPTION.fullmatch, words) if found]
    wanted = [(found[1].upper(), _EXTENSIONS) for found in matches[-1:]]
    return tuple(dict.fromkeys([*wanted, *_VARIANTS]))


def _select_options(words: list[str]) -> list[str]:
    """Keep -D, -U and -I, written together with their value or apart from it, and a few more."""
    kept: list[str] = []
    remaining = iter(words)
    for word in remaining:
        if word in _PREPROCESSOR:
            kept += [word + value for value in (next(remaining, ""),) if value]
        elif word.startswith(_PREPROCESSOR) or word in _KEPT_OPTIONS:
            kept.append(word)
    return kept
