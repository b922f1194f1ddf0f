"""Words that ``##`` could make, whatever the macros are defined as and whichever branch is taken.

What a macro is given can come from anywhere: a parameter beside ``##`` stands for any word of the
text. So this finds all words that a preprocessor can make, and a few that none would.
"""

import re
from collections.abc import Iterator, Sequence

from kernelcast.features.file_reach.lexing import OPENS_PARAMETERS, Line
from kernelcast.features.file_reach.words import PASTED, PASTED_BEGINNINGS

_HASH, _PASTE = "#", "##"
_IS_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
# Some targets define a macro as it.
_KNOWN_PIECES = frozenset({"_"})


def find_pasted(lines: Sequence[Line]) -> tuple[str, tuple[str, ...]] | None:
    r"""Find a word of `PASTED` that can be made of words of a text.

    Returns
    -------
    (str, tuple of str) or None
        The word and its pieces.

    Examples
    --------
    >>> from kernelcast.features.file_reach.lexing import split_lines
    >>> find_pasted(split_lines("#define JOIN(a, b) a##b\nJOIN(as, m)"))
    ('asm', ('as', 'm'))
    >>> find_pasted(split_lines("#define SUM(t) sum_##t\nint as, m;"))
    """
    firsts: set[str] = set()
    nexts: set[str] = set()
    words = _list_words(lines)
    for line in lines:
        for left, right in _list_operands(line):
            firsts |= words if left is None else {left}
            nexts |= words if right is None else {right}
    if not nexts:
        return None
    wanted = [(word, False) for word in sorted(PASTED, key=len)]
    wanted += [(word, True) for word in PASTED_BEGINNINGS]
    for word, is_beginning in wanted:
        pieces = _take_apart(word, firsts, nexts, is_beginning=is_beginning)
        if pieces is not None:
            return "".join(pieces), pieces
    return None


def _list_words(lines: Sequence[Line]) -> frozenset[str]:
    """Give the words of a text; a parameter is none, it stands for what it is given.

    Nor is a directive's own name: nothing hands it to a macro.
    """
    found = set(_KNOWN_PIECES)
    for line in lines:
        parameters, body = _split_definition(line)
        head = line[2:3] if line[0] == _HASH else line[:3]
        found.update(one for one in (*head, *body) if one not in parameters)
    return frozenset(one for one in found if _IS_WORD.fullmatch(one))


def _list_operands(line: Line) -> Iterator[tuple[str | None, str | None]]:
    """Give what stands left and right of each ``##``; None for what may be any word."""
    if _PASTE not in line:
        return
    parameters, body = _split_definition(line)
    for place, token in enumerate(body):
        if token == _PASTE:
            left = body[place - 1] if place else ""
            right = body[place + 1] if place + 1 < len(body) else ""
            yield _name_operand(left, parameters), _name_operand(right, parameters)


def _name_operand(token: str, parameters: frozenset[str]) -> str | None:
    """Give an operand as it stands; None for a parameter, and for the end of __VA_OPT__(...)."""
    return None if token in parameters or token in {")", "__VA_ARGS__", "__VA_OPT__"} else token


def _split_definition(line: Line) -> tuple[frozenset[str], Line]:
    """Give parameters and body of ``# define NAME(...) ...``."""
    body = line[3:]
    if body[:1] != (OPENS_PARAMETERS,) or ")" not in body:
        return frozenset(), body
    end = body.index(")")
    return frozenset(body[1:end]) - {",", "."}, body[end + 1 :]


def _take_apart(
    word: str, firsts: set[str], nexts: set[str], *, is_beginning: bool
) -> tuple[str, ...] | None:
    """Give at least two pieces that make a word, or a word that begins so."""
    known: dict[int, tuple[str, ...]] = {0: ()}
    for place in range(len(word)):
        pieces = known.get(place)
        if pieces is None:
            continue
        pool = nexts if pieces else firsts
        for end in range(place + 1, len(word) + 1):
            if word[place:end] in pool and not (place == 0 and end == len(word)):
                known.setdefault(end, (*pieces, word[place:end]))
        if is_beginning and pieces:
            longer = min((one for one in pool if one.startswith(word[place:])), default=None)
            if longer is not None:
                return (*pieces, longer)
    return known.get(len(word))
