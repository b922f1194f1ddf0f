"""What a submitted problem may hold: no way to files of this machine, nothing too large.

A kernel's source goes to a compiler that reads files when it is told to. Directives are looked for
in the text as compilers splice it, also inside comments and strings: what is refused too much can
be written in another way, what is let through cannot be taken back.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kernelcast.records.arguments import BufferArgument
from kernelcast.records.errors import InputError
from kernelcast.records.problem import Problem
from kernelcast.service.settings import Limits

_SPLICE = re.compile(r"(?:\\|\?\?/)[ \t\v\f\r]*\n")
_HASH: Final = r"(?:\#|%:|\?\?=)[^\S\n]*+"
_DIRECTIVE = re.compile(rf"{_HASH}(?P<name>[A-Za-z_]\w*+)(?=(?P<rest>[^\n]{{0,80}}))")
# Compilers allow a comment there; nobody needs one.
_HIDDEN = re.compile(rf"{_HASH}/[*/]")
_DEFINITION = re.compile(rf"[^\S\n]*+{_HASH}define\b")
# Directives that cannot name a file.
_HARMLESS = frozenset({
    "define", "undef", "if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif",
    "error", "warning",
})  # fmt: skip
# Directives that can, wherever they stand.
_OF_FILES = frozenset({"include", "include_next", "import", "embed", "line", "pragma", "ident"})
_PRAGMA = re.compile(r"\s*(?:OPENCL|unroll|nounroll|STDC|clang\s+loop|ivdep)\b")
_WORD = re.compile(
    r"\b(?P<word>__has_include\w*|__has_embed|include_next|_Pragma|__pragma|asm|__asm|__asm__)\b"
)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_OPTION = re.compile(
    r"-D[A-Za-z_]\w*(?:=[\w.+*/()<>,:&|^~!%=\[\]{}?-]*)?|-cl-[a-z0-9-]+(?:=CLC?(?:\+\+)?[0-9.]*)?|-w"
    r"|-Werror"
)
_LONGEST_OPTION: Final = 1000
_MOST_OPTIONS: Final = 200


def check_content(content: Mapping[str, Any], limits: Limits) -> None:
    """Refuse a problem by its text, before anything reads it.

    Parameters
    ----------
    content : mapping
        The problem as it came.
    limits : Limits
        Of sources.

    Raises
    ------
    InputError
        If source or build options could reach files, or are too long.
    """
    code = content.get("code")
    if isinstance(code, str):
        check_source(code, limits)
    options = content.get("build_options")
    if isinstance(options, list):
        check_options(options)


def check_problem(problem: Problem, limits: Limits) -> None:
    """Refuse a problem by what was read of it: also options whose names were filled in.

    Raises
    ------
    InputError
        If its buffers are too large, or a file would be read.
    """
    check_options(problem.kernel.build_options)
    if problem.buffer_bytes > limits.buffer_bytes:
        msg = (
            f"problem {problem.name}: its buffers have {problem.buffer_bytes:,} bytes, this "
            f"service takes at most {limits.buffer_bytes:,}"
        )
        raise InputError(msg)
    for one in problem.arguments:
        if isinstance(one, BufferArgument) and one.path is not None:
            msg = f"problem {problem.name}: names the file {one.path}; give a recipe of its content"
            raise InputError(msg)


def check_source(code: str, limits: Limits) -> None:
    r"""Refuse a source that could read files, or is too long.

    Raises
    ------
    InputError
        If it is so.

    Examples
    --------
    >>> check_source("#define N 4\nkernel void k() {}", Limits())
    >>> check_source('# include "/etc/passwd"', Limits())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
     ...
    kernelcast.records.errors.InputError: code: holds the directive #include; this service ...
    """
    size = len(code.encode(errors="replace"))
    if size > limits.source_bytes:
        msg = f"code: has {size:,} bytes, this service takes at most {limits.source_bytes:,}"
        raise InputError(msg)
    control = _CONTROL.search(code)
    if control is not None:
        msg = f"code: holds the control character U+{ord(control[0]):04X}; give plain text"
        raise InputError(msg)
    spliced = _SPLICE.sub("", code.replace("\r\n", "\n").replace("\r", "\n"))
    if _HIDDEN.search(spliced) is not None:
        _refuse("a comment right after #")
    for match in _DIRECTIVE.finditer(spliced):
        name = match["name"]
        if name in _HARMLESS or (name == "pragma" and _PRAGMA.match(match["rest"])):
            continue
        if name in _OF_FILES or not _is_in_definition(spliced, match.start()):
            _refuse(f"the directive #{name}")
    word = _WORD.search(spliced)
    if word is not None:
        _refuse(f"the word {word['word']}")


def check_options(options: Iterable[object]) -> None:
    """Refuse build options that could name files.

    Raises
    ------
    InputError
        If one is neither a definition nor a language option.
    """
    for number, option in enumerate(options):
        text = str(option)
        # Braces name parameters; what they become is checked once more.
        if number >= _MOST_OPTIONS or len(text) > _LONGEST_OPTION or not _OPTION.fullmatch(text):
            msg = (
                f"build option {text[:80]!r} is refused: this service takes up to {_MOST_OPTIONS} "
                "of -DNAME=VALUE without blanks and quotes, -cl-..., -w and -Werror"
            )
            raise InputError(msg)


def _is_in_definition(spliced: str, place: int) -> bool:
    """Tell whether a # stands in a macro's body, where it makes a text of a parameter."""
    begins = spliced.rfind("\n", 0, place) + 1
    return _DEFINITION.match(spliced, begins, place) is not None


def _refuse(what: str) -> None:
    msg = f"code: holds {what}; this service reaches no files: put everything into `code`"
    raise InputError(msg)
