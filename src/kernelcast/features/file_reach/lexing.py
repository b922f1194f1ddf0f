"""Tokens of OpenCL C as every compiler reads them; what compilers read differently is refused.

No file is opened, no directive is obeyed and no macro is expanded: each branch of each condition
is read, whichever of them a compiler would take.
"""

import re
from collections.abc import Generator, Iterator

Line = tuple[str, ...]
"""Tokens of one line; backslashes before its end continue it, comments are gone."""
OPENS_PARAMETERS = "#("
"""Token of a parenthesis right after a macro's name: its parameters follow."""

_NEWLINE = re.compile(r"\r\n?")
_TRIGRAPH = re.compile(r"\?\?[=/'()!<>-]")
_SPLICE = re.compile(r"\\\n")
_BLANK_SPLICE = re.compile(r"\\[ \t\v\f]+\n")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_TOKEN = re.compile(
    r"""
      (?P<blank>[ \t\v\f]++|//[^\n]*+|/\*[^*]*+\*++(?:[^/*][^*]*+\*++)*+/)
    | (?P<newline>\n)
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*+)
    | (?P<number>\.?[0-9](?:[eEpP][+-]|[A-Za-z0-9_.])*+)
    | (?P<literal>"(?:[^"\\\n]|\\[^\n])*+"|'(?:[^'\\\n]|\\[^\n])*+')
    | (?P<quote>["'])
    | (?P<refused>/\*|%:)
    | (?P<sign>\#\#|[!#%&()*+,\-./:;<=>?\[\]^{|}~])
    | (?P<other>.)
    """,
    re.VERBOSE,
)
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|##?")
# Compilers differ in where a line ends that an odd quotation mark has begun to quote.
_AMBIGUOUS = re.compile(r"/\*|\*/|//|[\"\\]")
_RAW_TEXT = re.compile(r"(?:u8|[uUL])?R")
_PREFIX = re.compile(r"u8|[uUL]")
_REFUSED = {"/*": "a comment without an end", "%:": "the sign %: in place of #"}


class ReachError(Exception):
    """Is raised for what a text may not hold.

    Parameters
    ----------
    advice : str
        What to do.
    """

    def __init__(self, what: str, advice: str = "put everything into the source") -> None:
        super().__init__(what)
        self.what = what
        self.advice = advice


def split_lines(source: str) -> list[Line]:
    r"""Give the tokens of each line that has any.

    Raises
    ------
    ReachError
        If compilers would read the text differently, or it holds signs that are none of C.

    Examples
    --------
    >>> split_lines("#def\\\nine N /* four */ 4\n\nint a; // N")
    [('#', 'define', 'N', '4'), ('int', 'a', ';')]
    """
    lines: list[Line] = []
    current: list[str] = []
    for token, is_glued in _split(_splice(source)):
        if token != "\n":
            is_macro = is_glued and token == "(" and current[:-1] == ["#", "define"]
            current.append(OPENS_PARAMETERS if is_macro else token)
        elif current:
            lines.append(tuple(current))
            current = []
    return [*lines, tuple(current)] if current else lines


def _splice(source: str) -> str:
    """Join continued lines."""
    text = _NEWLINE.sub("\n", source)
    found = _CONTROL.search(text)
    if found is not None:
        what = f"the control character U+{ord(found[0]):04X}"
        raise ReachError(what, "give plain text")
    found = _TRIGRAPH.search(text)
    if found is not None:
        what = f"the trigraph {found[0]}"
        raise ReachError(what, "write the character itself, or set the question marks apart")
    text = _SPLICE.sub("", text)
    for found in _BLANK_SPLICE.finditer(text):
        # Some compilers join the lines all the same; then the next one is quoted, or a comment.
        line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        if "//" in line or '"' in line or "'" in line:
            what = "blanks between a backslash and the end of a line that quotes or comments"
            raise ReachError(what, "remove them")
    return _BLANK_SPLICE.sub("", text)


def _split(text: str) -> Iterator[tuple[str, bool]]:
    """Give the tokens, and of each whether it stands right after a word."""
    place, before, ended = 0, "", -1
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:  # the pattern takes any character but a newline, which it names
            msg = f"the character {text[place]!r}"
            raise ReachError(msg)
        kind, token = match.lastgroup, match[0]
        is_glued = ended == place and (before[:1].isalnum() or before[:1] == "_")
        if kind == "quote" or (token[0] == "'" and is_glued and not _PREFIX.fullmatch(before)):
            place = yield from _take_odd_quote(text, place)
            continue
        _check(kind, token, before if is_glued else "")
        place = match.end()
        if kind != "blank":
            yield token, is_glued
            before, ended = token, place


def _check(kind: str | None, token: str, glued: str) -> None:
    """Refuse tokens that are none, or that only some compilers take for one."""
    if kind == "refused":
        raise ReachError(_REFUSED[token], "write it as usual")
    if kind == "other":
        what = f"the character {token!r} outside comments and texts"
        raise ReachError(what.encode("ascii", "backslashreplace").decode(), "use the letters of C")
    if kind == "literal" and token[0] == '"' and _RAW_TEXT.fullmatch(glued):
        msg = "a raw text"
        raise ReachError(msg, 'write it as "..."')


def _take_odd_quote(text: str, place: int) -> Generator[tuple[str, bool], None, int]:
    """Give the words of a line after a quotation mark that may quote them or may not.

    Such are lines that no compiler takes but where it skips them: apostrophes of a sentence.
    """
    end = text.find("\n", place)
    end = len(text) if end < 0 else end
    rest = text[place + 1 : end]
    if _AMBIGUOUS.search(rest):
        msg = "a quotation mark without its second one"
        raise ReachError(msg, "close it, or write a comment")
    yield from ((word, False) for word in _WORD.findall(rest))
    return end
