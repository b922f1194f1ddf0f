"""Takes a listing apart: includes, arrays, scalars, and the loop itself."""

import re
from dataclasses import dataclass

from kernelcast.records.errors import InputError

_COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_LOOP = re.compile(r"\b(?:for|while|do)\b")
_DIRECTIVE = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_QUALIFIERS = frozenset({"const", "static", "register", "volatile", "restrict", "extern"})
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A variable of a listing."""

    name: str
    type_name: str
    """C type of it, or of an element."""
    dimensions: str = ""
    """``[M][N]`` of an array; empty for a scalar."""
    value: str = ""
    """Initial value of a scalar; empty without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The parts of a listing."""

    directives: tuple[str, ...]
    """Lines for the preprocessor that come before the loop."""
    variables: tuple[Declared, ...]
    """In their order."""
    loop: str
    """The loop nest."""

    @property
    def arrays(self) -> tuple[Declared, ...]:
        """Variables with dimensions."""
        return tuple(one for one in self.variables if one.dimensions)

    @property
    def scalars(self) -> tuple[Declared, ...]:
        """Variables without."""
        return tuple(one for one in self.variables if not one.dimensions)


def take_apart(source: str) -> Listing:
    """Take a listing apart; `kernelcast.features.loop_nest` checks what stands in it.

    Raises
    ------
    InputError
        If there is no loop, or a declaration is not of arrays and scalars.

    Examples
    --------
    >>> found = take_apart("double a[N], s; for (int i = 0; i < N; ++i) a[i] = s;")
    >>> [(one.name, one.dimensions) for one in found.variables]
    [('a', '[N]'), ('s', '')]
    """
    text = _COMMENTS.sub(" ", source)
    start = _LOOP.search(text)
    if start is None:
        msg = "no loop in the listing; give declarations and one loop nest"
        raise InputError(msg)
    before, loop = text[: start.start()], text[start.start() :]
    directives = tuple(one.strip() for one in _DIRECTIVE.findall(before))
    statements = _DIRECTIVE.sub(" ", before).split(";")
    variables = [found for one in statements if one.strip() for found in _read_statement(one)]
    return Listing(directives=directives, variables=tuple(variables), loop=loop.strip())


def _read_statement(statement: str) -> list[Declared]:
    parts = _split(statement)
    words = parts[0].split("[")[0].split("=")[0].split()
    kept = [one for one in words[:-1] if one not in _QUALIFIERS]
    if not kept:
        msg = (
            f"{' '.join(statement.split())!r} declares no array or scalar; only declarations may "
            "stand before the loop"
        )
        raise InputError(msg)
    type_name = " ".join(kept)
    first = parts[0].strip().split(None, len(words) - 1)[-1]
    return [_read_declarator(one, type_name) for one in (first, *parts[1:])]


def _read_declarator(text: str, type_name: str) -> Declared:
    left, _, value = text.partition("=")
    name, bracket, rest = left.strip().partition("[")
    if not _NAME.fullmatch(name.strip()) or (bracket and value):
        msg = f"{text.strip()!r} is no declaration of an array or a scalar that can be run"
        raise InputError(msg)
    return Declared(
        name=name.strip(), type_name=type_name, dimensions=f"{bracket}{rest}".strip(),
        value=value.strip(),
    )  # fmt: skip


def _split(statement: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(statement):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            parts.append(statement[start:place])
            start = place + 1
    return [*parts, statement[start:]]
