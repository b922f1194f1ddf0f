"""Reads expressions and conditions, with C's operators and C's division."""

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

from kernelcast.expressions import (
    Condition,
    Expr,
    Symbol,
    SymbolKind,
    conjunction,
    disjunction,
    equal,
    less,
    less_equal,
    maximum,
    minimum,
    negation,
    not_equal,
    trunc_div,
    trunc_mod,
)
from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import MAX_DIMENSIONS

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
    """Cut a text into tokens; the last one is its end."""
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
    """Raise an error that points at a character."""
    msg = f"{complaint}\n  {text}\n  {' ' * place}^"
    raise InputError(msg)


_AXES = "xyz"
_COORDINATES = {
    "": SymbolKind.GLOBAL_ID,
    "local_": SymbolKind.LOCAL_ID,
    "group_": SymbolKind.GROUP_ID,
}
FUNCTIONS = {
    "get_global_id": SymbolKind.GLOBAL_ID,
    "get_local_id": SymbolKind.LOCAL_ID,
    "get_group_id": SymbolKind.GROUP_ID,
    "get_local_size": SymbolKind.LOCAL_SIZE,
    "get_global_size": SymbolKind.GLOBAL_SIZE,
    "get_num_groups": SymbolKind.GROUP_COUNT,
    "get_global_offset": SymbolKind.GLOBAL_OFFSET,
}
"""Functions of OpenCL C that take a dimension."""
COORDINATES = {
    f"{prefix}{letter}": Symbol(kind, axis=axis)
    for prefix, kind in _COORDINATES.items()
    for axis, letter in enumerate(_AXES)
}
"""``x``, ``local_y``, ``group_z`` and so on."""
KEYWORDS = frozenset({"for", "in", "if", "and", "or", "not", "range", "min", "max"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Names that expressions may use."""

    scalars: Collection[str] = ()
    """Names of scalar arguments."""
    arrays: Collection[str] = ()
    """Names of arrays, which no expression may use: their content is not known."""
    loops: Mapping[str, Expr] = field(default_factory=dict)
    """Values of loop variables."""

    def find(self, name: str) -> Expr | None:
        """Give what a name stands for; None if it stands for no number."""
        if name in self.loops:
            return self.loops[name]
        if name in self.scalars:
            return Expr.symbol(Symbol(SymbolKind.SCALAR, name))
        symbol = COORDINATES.get(name)
        return None if symbol is None else Expr.symbol(symbol)

    def explain(self, name: str) -> str:
        """Say why a name cannot be used, and which ones can."""
        if name in self.arrays:
            return (
                f"an address that depends on the content of {name!r} is not affine; model the "
                "kernel from its source, with `--device` to record the addresses"
            )
        known = [*self.loops, *self.scalars, *COORDINATES, *FUNCTIONS]
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        hint = f", did you mean {close[0]!r}?" if close else ""
        scalars = ", ".join(self.scalars) or "none"
        return (
            f"{name!r} is not known{hint}; there are x, y, z (global ids), local_x, group_x and so "
            f"on, OpenCL's functions of ids and sizes, variables of loops, and scalars ({scalars})"
        )


Term: TypeAlias = Expr | Condition

_COMPARISONS: dict[str, Callable[[Expr, Expr], Condition]] = {
    "<": less,
    "<=": less_equal,
    ">": lambda left, right: less(right, left),
    ">=": lambda left, right: less_equal(right, left),
    "==": equal,
    "!=": not_equal,
}
_DIVISIONS = {"/": trunc_div, "%": trunc_mod}
_EXTREMA = {"min": minimum, "max": maximum}
_DEEPEST = 60


class Parser:
    """Reads one text from left to right."""

    def __init__(self, text: str, scope: Scope) -> None:
        self.text = text
        self.scope = scope
        self.tokens = tokenise(text)
        self.position = 0
        self._depth = 0

    @property
    def next(self) -> Token:
        """The token that comes next."""
        return self.tokens[self.position]

    def fail(self, complaint: str, token: Token | None = None) -> NoReturn:
        """Raise an error that points at a token; at the next one if none is given."""
        fail(self.text, (token or self.next).place, complaint)

    def take(self, *texts: str) -> Token | None:
        """Take the next token if it is one of these."""
        token = self.next
        if token.text not in texts or not token.text:
            return None
        self.position += 1
        return token

    def expect(self, text: str) -> Token:
        """Take the next token, which must be this one."""
        token = self.take(text)
        if token is None:
            self.fail(f"expected {text!r}, found {self._found()}")
        return token

    def name(self) -> Token:
        """Take the next token, which must be a name of the writer's choice."""
        token = self.next
        if token.kind != "name" or token.text in KEYWORDS:
            self.fail(f"expected a name, found {self._found()}")
        self.position += 1
        return token

    def end(self) -> None:
        """Make sure that nothing follows."""
        if self.next.kind != "end":
            self.fail(f"expected the end, found {self._found()}")

    def expression(self) -> Expr:
        """Read a number."""
        token = self.next
        return self._number(self._either(), token)

    def condition(self) -> Condition:
        """Read something that holds or does not hold."""
        token = self.next
        return self._truth(self._either(), token)

    def loop_range(self) -> tuple[Expr, Expr, Expr]:
        """Read the start, the stop and the step of ``in range(START, STOP, STEP)``."""
        self.expect("in")
        self.expect("range")
        self.expect("(")
        parts = [self.expression()]
        place = self.next
        while self.take(","):
            place = self.next
            parts.append(self.expression())
        self.expect(")")
        step = parts[2] if len(parts) == 3 else Expr.constant(1)
        if len(parts) > 3 or step.is_zero or not step.is_parameter:
            self.fail(
                "expected range(STOP), range(START, STOP) or range(START, STOP, STEP) with a step "
                "that is a number other than 0 or a scalar",
                place,
            )
        return (Expr.constant(0), parts[0], step) if len(parts) == 1 else (parts[0], parts[1], step)

    def _found(self) -> str:
        return repr(self.next.text) if self.next.text else "the end"

    def _number(self, term: Term, token: Token) -> Expr:
        if isinstance(term, Condition):
            self.fail("expected a number, found a condition", token)
        return term

    def _truth(self, term: Term, token: Token) -> Condition:
        if isinstance(term, Expr):
            self.fail("expected a condition such as `x < n`, found a number", token)
        return term

    def _either(self) -> Term:
        token = self.next
        self._depth += 1
        if self._depth > _DEEPEST:
            self.fail("nested too deeply; write a simpler expression")
        found = self._conjunction()
        while self.take("or"):
            left, token_right = self._truth(found, token), self.next
            found = disjunction(left, self._truth(self._conjunction(), token_right))
        self._depth -= 1
        return found

    def _conjunction(self) -> Term:
        token = self.next
        found = self._negation()
        while self.take("and"):
            left, token_right = self._truth(found, token), self.next
            found = conjunction(left, self._truth(self._negation(), token_right))
        return found

    def _negation(self) -> Term:
        signs = 0
        while self.take("not"):
            signs += 1
        token = self.next
        found = self._comparison()
        if not signs:
            return found
        condition = self._truth(found, token)
        return negation(condition) if signs % 2 else condition

    def _comparison(self) -> Term:
        token = self.next
        left = self._sum()
        parts: list[Condition] = []
        while relation := self.take(*_COMPARISONS):
            first, place = self._number(left, token), self.next
            left, token = self._sum(), place
            parts.append(_COMPARISONS[relation.text](first, self._number(left, token)))
        return conjunction(*parts) if parts else left

    def _sum(self) -> Term:
        token = self.next
        found = self._product()
        while sign := self.take("+", "-"):
            left, place = self._number(found, token), self.next
            right = self._number(self._product(), place)
            found = left + right if sign.text == "+" else left - right
        return found

    def _product(self) -> Term:
        token = self.next
        found = self._factor()
        while sign := self.take("*", "/", "%"):
            left, place = self._number(found, token), self.next
            right = self._number(self._factor(), place)
            found = self._combine(left, right, sign)
        return found

    def _combine(self, left: Expr, right: Expr, sign: Token) -> Expr:
        if sign.text == "*":
            if not (left.is_parameter or right.is_parameter):
                self.fail(
                    f"not affine: {_spell(left)} times {_spell(right)}, and both change from "
                    "work-item to work-item; one factor must be a number or a scalar",
                    sign,
                )
            return left * right
        if not right.is_parameter:
            self.fail(f"not affine: {_spell(right)} divides; divide by a number or a scalar", sign)
        if right.is_zero:
            self.fail("division by zero", sign)
        return _DIVISIONS[sign.text](left, right)

    def _factor(self) -> Term:
        if self.take("-"):
            token = self.next
            return -self._number(self._factor(), token)
        if self.take("+"):
            token = self.next
            return self._number(self._factor(), token)
        if self.take("("):
            found = self._either()
            self.expect(")")
            return found
        return self._primary()

    def _primary(self) -> Expr:
        token = self.next
        if token.kind == "number":
            self.position += 1
            return Expr.constant(int(token.text))
        if token.text in _EXTREMA:
            return self._extremum()
        if token.text in FUNCTIONS:
            return self._function()
        word = self.name()
        found = self.scope.find(word.text)
        if found is None:
            self.fail(self.scope.explain(word.text), word)
        return found

    def _extremum(self) -> Expr:
        function = _EXTREMA[self.tokens[self.position].text]
        self.position += 1
        self.expect("(")
        found = self.expression()
        while self.take(","):
            found = function(found, self.expression())
        self.expect(")")
        return found

    def _function(self) -> Expr:
        kind = FUNCTIONS[self.next.text]
        self.position += 1
        self.expect("(")
        token = self.next
        axis = self.expression().constant_value
        if axis is None or not 0 <= axis < MAX_DIMENSIONS:
            self.fail(f"expected a dimension, 0 to {MAX_DIMENSIONS - 1}", token)
        self.expect(")")
        return Expr.symbol(Symbol(kind, axis=axis))


def _spell(expr: Expr) -> str:
    """Write an expression with the names that its writer uses."""
    text = str(expr)
    for name, symbol in COORDINATES.items():
        text = text.replace(str(symbol), name)
    return text
