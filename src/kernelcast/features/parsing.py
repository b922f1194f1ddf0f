"""Parses OpenCL C 1.0 to 3.0 with libclang, also where a source is not quite right.

The wheel of libclang lacks OpenCL's own header; `header` writes the declarations it would hold.
Measured with libclang 18.1: 0.75 ms for an empty kernel, of which that header is 0.25 ms. A
precompiled header saves little: what it spares the parser, listing its declarations costs again.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from clang import cindex

from kernelcast.compiling import BASE_HEADER
from kernelcast.features.diagnostics import describe_errors, read_errors
from kernelcast.features.header import make_header
from kernelcast.features.parser_limits import check_source
from kernelcast.features.placeholders import Placeholder, find_placeholders
from kernelcast.features.syntax import bindings as clang
from kernelcast.features.syntax import kinds
from kernelcast.records.dialect import Dialect
from kernelcast.records.errors import CompileError, InputError
from kernelcast.records.kernel import Kernel

MAIN_FILE = "/kernelcast-virtual/kernel.cl"
_HEADER_FILE = "/kernelcast-virtual/types.h"
_HEADER = make_header()
_DEVICE_HEADER = BASE_HEADER.read_text(encoding="utf-8")
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
_VERSION_MACRO = re.compile(r"__OPENCL_C_VERSION__|__opencl_c_")
_FUNCTIONS = frozenset((kinds.FUNCTION,))
_KERNEL_KEYWORD = re.compile(r"\b(?:__)?kernel\b")
# Options of OpenCL compilers that change how a source reads; the others are left out.
_PREPROCESSOR = ("-D", "-I", "-U")
_KEPT_OPTIONS = ("-cl-fast-relaxed-math", "-cl-single-precision-constant")
# Words without quotation marks need no parser of a shell's.
_QUOTING, _WORD = re.compile(r"[\"'\\]"), re.compile(r"[^ \t\r\n]+")
_SHOWN_ERRORS = 20
_PLACEHOLDER_ROUNDS = 4
# libclang's numbers, which its Python module does not name.
_KEEP_GOING = 0x200  # go on after a header that is not there
_TERSE_OUTPUT = 17  # print a declaration without its body


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ParsedSource:
    """A source as libclang understands it."""

    source: str
    """The text that was parsed."""
    unit: cindex.TranslationUnit
    """Its syntax tree; incomplete near the errors."""
    errors: tuple[str, ...]
    """The first 20 errors, each as ``name:line:column: message``."""
    language: str
    """The version of OpenCL C it was parsed as, such as ``CL3.0``."""
    placeholders: tuple[Placeholder, ...] = ()
    """Names that the source does not define; they are declared in `unit`, which is otherwise the
    same. The errors are those of the source as it is."""

    @property
    def is_clean(self) -> bool:
        """Whether libclang found no error."""
        return not self.errors


def parse_source(
    source: str,
    build_options: Sequence[str] = (),
    *,
    source_name: str = "<source>",
    dialect: Dialect | None = None,
) -> ParsedSource:
    """Parse a source as the version of OpenCL C that gives the fewest errors.

    Parameters
    ----------
    build_options : sequence of str
        Options for the device's compiler; the preprocessor's, ``-cl-std`` (the version that is
        tried first), ``-cl-fast-relaxed-math`` and ``-cl-single-precision-constant`` are used.
    source_name : str
        What error messages call the source.
    dialect : Dialect, optional
        Macros of the device; without it, or where the source has errors with them, those of a
        device that has everything.

    Returns
    -------
    ParsedSource
        The syntax tree and the errors.

    Raises
    ------
    InputError
        If the source or an option cannot be text of a program, a quotation mark of the options is
        not closed, or the source is so deep or expands so far that libclang fails on it.
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
    wanted = [word for word in words if _LANGUAGE_OPTION.fullmatch(word)][-1:]
    options = [*_select_options(words), *wanted]
    check_source(source, options)
    return parse_unchecked(source, options, source_name=source_name, dialect=dialect)


def parse_unchecked(
    source: str,
    options: Sequence[str],
    *,
    source_name: str = "<source>",
    dialect: Dialect | None = None,
) -> ParsedSource:
    """Parse a source that is known not to crash libclang.

    Raises
    ------
    CompileError
        If libclang makes nothing at all of the source.
    """
    kept = [word for word in options if not _LANGUAGE_OPTION.fullmatch(word)]
    best: _Attempt | None = None
    for language, flags, header in _order_variants(list(options), dialect):
        complete = [*_OPTIONS, f"-cl-std={language}", "-Xclang", *flags, *kept]
        unit = _parse(source, complete, header)
        if unit is None:
            continue
        attempt = _Attempt(source, unit, read_errors(unit), language, complete, header)
        is_first = best is None
        if best is None or len(attempt.messages) < len(best.messages):
            best = attempt
        if not attempt.messages or (is_first and _lacks_only_names(attempt)):
            break
    if best is None:
        msg = f"{source_name}: libclang can make nothing of this source; is it OpenCL C?"
        raise CompileError(msg)
    return _finish(best, source_name)


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
        clang.take_string(clang.cursor_spelling(cursor))
        for cursor in clang.list_top_level(parsed.unit.obj, _FUNCTIONS)
        if clang.is_definition(cursor) and _is_kernel(cursor)
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
        parsed = parse_source(kernel.source, kernel.build_options, dialect=kernel.dialect)
    except InputError:
        return None
    return parsed.unit if parsed.is_clean else None


@dataclass(slots=True)
class _Attempt:
    """A source parsed as one version of the language, and with the names that it lacks."""

    source: str
    unit: cindex.TranslationUnit
    messages: list[str]
    language: str
    options: list[str]
    header: str
    filled: cindex.TranslationUnit | None = None
    placeholders: list[Placeholder] = field(default_factory=list)


def _lacks_only_names(attempt: _Attempt) -> bool:
    """Tell whether names that a host program would define are all that is wrong.

    Then no other version of the language can help, unless the source asks which one it is.
    """
    return not _fill_in(attempt) and _VERSION_MACRO.search(attempt.source) is None


def _fill_in(attempt: _Attempt) -> list[str]:
    """Declare names that nothing declares, so that the tree has no holes there.

    Each round may bring forth errors that those of the round before hid; those of the last one
    are returned.
    """
    attempt.filled, messages = attempt.unit, attempt.messages
    for _ in range(_PLACEHOLDER_ROUNDS):
        more = find_placeholders(messages, attempt.placeholders, attempt.source)
        if not more:
            break
        attempt.placeholders += more
        declarations = "\n".join(one.declaration for one in attempt.placeholders)
        unit = _parse(attempt.source, attempt.options, attempt.header + declarations)
        if unit is None:
            break
        attempt.filled, messages = unit, read_errors(unit)
    return messages


def _finish(best: _Attempt, source_name: str) -> ParsedSource:
    if best.messages and best.filled is None:
        _fill_in(best)
    errors = describe_errors(best.unit, MAIN_FILE, source_name) if best.messages else iter(())
    return ParsedSource(
        source=best.source, unit=best.filled or best.unit, language=best.language,
        errors=tuple(islice(errors, _SHOWN_ERRORS)), placeholders=tuple(best.placeholders),
    )  # fmt: skip


def _parse(source: str, options: list[str], header: str) -> cindex.TranslationUnit | None:
    # An index of its own for each parse: it costs 2 us, and threads must not share one.
    try:
        return cindex.Index.create().parse(
            MAIN_FILE,
            args=options,
            unsaved_files=[(MAIN_FILE, source), (_HEADER_FILE, header)],
            options=_KEEP_GOING,
        )
    except cindex.TranslationUnitLoadError:
        return None


def _is_kernel(cursor: clang.CXCursor) -> bool:
    """Tell a kernel by its declaration as clang prints it.

    Neither the calling convention nor the kind of the attribute tells it, and the tokens of the
    source may come from a macro.
    """
    policy = clang.printing_policy(cursor)
    clang.set_printing_property(policy, _TERSE_OUTPUT, 1)
    try:
        declaration = clang.take_string(clang.pretty_printed(cursor, policy))
    finally:
        clang.dispose_policy(policy)
    return _KERNEL_KEYWORD.search(declaration) is not None


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
    if not _QUOTING.search(text):
        return _WORD.findall(text)
    try:
        return shlex.split(text)
    except ValueError as error:
        msg = f"build options {text!r}: {error}; close every quotation mark"
        raise InputError(msg) from error


def _order_variants(
    words: list[str], dialect: Dialect | None
) -> Iterator[tuple[str, Sequence[str], str]]:
    """List versions, flags and headers: the device's first, the version that options name first."""
    matches = [found for found in map(_LANGUAGE_OPTION.fullmatch, words) if found]
    wanted = [found[1].upper() for found in matches[-1:]]
    if dialect is not None:
        for language in dict.fromkeys([*wanted, dialect.language, "CL3.0"]):
            yield language, dialect.list_flags(language), _DEVICE_HEADER
    named = [(language, _EXTENSIONS) for language in wanted]
    for language, extensions in dict.fromkeys([*named, *_VARIANTS]):
        yield language, (extensions,), _HEADER


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
