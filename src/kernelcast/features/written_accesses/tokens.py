"""Cuts the text of an access into tokens that know their place."""

import re
from dataclasses import dataclass
from typing import NoReturn

from kernelcast.records.errors import InputError

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+)|(?P<name>[A-Za-z_][\w.]*)|"
    r"(?P<sign><=|>=|==|!=|&&|\|\||[-+*/%()\[\],<>!]))"
)
_WORDS = {"&&": "and", "||": "or", "!": "not"}


@dataclass(frozen=True, slots=True)
class Token:
    """A number, a name or a sign."""

    text: str
    """Its characters; empty at the end of the text."""
    place: int
    """Index of its first character."""
    kind: str
    """``number``, ``name``, ``sign`` or ``end``."""


def tokenise(text: str) -> list[Token]:
    """Cut a text into tokens; the last one is its end.

    Raises
    ------
    InputError
        If it holds a character that no access has.

    Examples
    --------
    >>> [one.text for one in tokenise("src[x-1] if x >= 4")]
    ['src', '[', 'x', '-', '1', ']', 'if', 'x', '>=', '4', '']
    """
    tokens, place = [], 0
    end = len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            place += len(text[place:]) - len(text[place:].lstrip())
            fail(text, place, f"{text[place]!r} has no meaning here")
        kind = str(match.lastgroup)
        word = match[kind]
        tokens.append(Token(_WORDS.get(word, word), match.start(kind), kind))
        place = match.end()
    tokens.append(Token("", end, "end"))
    return tokens


def fail(text: str, place: int, complaint: str) -> NoReturn:
    """Raise an error that points at a character.

    Raises
    ------
    InputError
        Always.
    """
    msg = f"{complaint}\n  {text}\n  {' ' * place}^"
    raise InputError(msg)
