"""Refuses sources and definitions that could make a compiler open a file.

What is checked are the tokens of the whole text, of branches that are not taken as well, and every
word that pasting could make of them. It holds for whatever macros a runtime defines.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

from kernelcast.features.file_reach.lexing import Line, ReachError, split_lines
from kernelcast.features.file_reach.pasting import find_pasted
from kernelcast.features.file_reach.words import (
    ATTRIBUTES,
    DIRECTIVES,
    OF_FILES,
    PRAGMAS,
    is_refused,
)
from kernelcast.records.errors import InputError

T = TypeVar("T")
_ATTRIBUTE = frozenset({"__attribute__", "__attribute"})
_HASH, _PASTE = "#", "##"


def check_reach(source: str, definitions: Sequence[str] = ()) -> None:
    r"""Refuse a source that could reach files, together with what is defined for it.

    Parameters
    ----------
    definitions : sequence of str
        Of ``-D``, each ``NAME`` or ``NAME=VALUE``.

    Raises
    ------
    InputError
        If it could.

    Examples
    --------
    >>> check_reach("#define N 4\nkernel void k() {}", ["M=2"])
    >>> check_reach('# include "/etc/passwd"')  # doctest: +ELLIPSIS
    Traceback (most recent call last):
     ...
    kernelcast.records.errors.InputError: code: holds the directive #include; no file is ...
    """
    options = _try("build options", lambda: [line for one in definitions for line in _define(one)])
    code = _try("code", lambda: split_lines(source))
    defined = frozenset(line[2] for line in (*options, *code) if line[1:2] == ("define",))
    _try("build options", lambda: _check_lines(options, defined))
    _try("code", lambda: _check_lines(code, defined))
    _try("code", lambda: _check_pasting([*options, *code]))


def _try(subject: str, work: Callable[[], T]) -> T:
    """Do a piece of work; say of what it complains."""
    try:
        return work()
    except ReachError as error:
        msg = f"{subject}: holds {error.what}; no file is reached from here: {error.advice}"
        raise InputError(msg) from error


def _define(definition: str) -> list[Line]:
    """Give the line that a definition of the options stands for."""
    name, _, value = definition.partition("=")
    if "//" in value or "/*" in value:
        what = f"a comment in -D{definition[:80]}"
        raise ReachError(what, "leave it out")
    return split_lines(f"#define {name} {value}\n")


def _check_lines(lines: Sequence[Line], defined: frozenset[str]) -> None:
    for line in lines:
        _check_hashes(line)
    for part in _group(lines):
        _check_words(part, defined)


def _check_pasting(lines: Sequence[Line]) -> None:
    found = find_pasted(lines)
    if found is not None:
        word, pieces = found
        told = ", ".join(f"`{one}`" for one in pieces)
        what = f"## that could make the word {word} of {told}"
        raise ReachError(what, "rename one of them")


def _check_hashes(line: Line) -> None:
    """Refuse directives that are not known to be harmless, and # where none belongs."""
    body = line
    if line[0] == _HASH:
        name = line[1] if len(line) > 1 else ""
        if len(line) > 1 and (name not in DIRECTIVES or not _is_usual(name, line[2:])):
            msg = f"the directive #{name}"
            raise ReachError(msg)
        body = line[2:]
        if name == "define":
            for one, after in pairwise(body):
                if one == _HASH and after in OF_FILES:
                    msg = f"the directive #{after}"
                    raise ReachError(msg)
            return
        if name in {"error", "warning"}:
            return
    if _HASH in body or _PASTE in body:
        msg = "# in the middle of a line that is no #define"
        raise ReachError(msg)


def _is_usual(name: str, rest: Line) -> bool:
    if name != "pragma":
        return True
    return bool(rest) and (rest[0] in PRAGMAS or rest[:2] == ("clang", "loop"))


def _group(lines: Sequence[Line]) -> Iterator[list[str]]:
    """Give each directive, and the text between two of them as one piece.

    Nothing of a message (#error) is a token of the program.
    """
    text: list[str] = []
    for line in lines:
        if line[0] != _HASH:
            text += line
            continue
        yield text
        text = []
        if line[1:2] not in {("error",), ("warning",)}:
            yield list(line)
    yield text


def _check_words(tokens: list[str], defined: frozenset[str]) -> None:
    """Refuse words of compilers, and attributes that are not known to be harmless."""
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if is_refused(token):
            msg = f"the word {token}"
            raise ReachError(msg, "leave it out, or give it another name")
        if token == "[" and tokens[place + 1 : place + 2] == ["["]:
            msg = "[["
            raise ReachError(msg, "write attributes as __attribute__((...))")
        place = _skip_attributes(tokens, place, defined) if token in _ATTRIBUTE else place + 1


def _skip_attributes(tokens: list[str], place: int, defined: frozenset[str]) -> int:
    """Check the attributes at a place; give where they end."""
    if tokens[place + 1 : place + 3] != ["(", "("]:
        msg = "__attribute__ without ((...))"
        raise ReachError(msg, "write its attributes after it")
    place, depth = place + 3, 2
    while depth >= 2 and place < len(tokens):
        token = tokens[place]
        name = token.removeprefix("__").removesuffix("__")
        if depth == 2 and token not in {",", "(", ")"}:
            if name not in ATTRIBUTES or token in defined:
                msg = f"the attribute {token}"
                raise ReachError(msg, "leave it out")
        elif is_refused(token):
            msg = f"the word {token}"
            raise ReachError(msg, "leave it out, or give it another name")
        depth += {"(": 1, ")": -1}.get(token, 0)
        place += 1
    return place
