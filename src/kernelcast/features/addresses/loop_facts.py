"""Descriptions of loops, and of the labels of switches."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from kernelcast.expressions import (
    FALSE,
    TRUE,
    UNKNOWN,
    Condition,
    Expr,
    Symbol,
    disjunction,
    equal,
    less,
)  # fmt: skip
from kernelcast.expressions.accesses import LoopFacts
from kernelcast.features.addresses.assignments import Changes, Outline, is_assignment
from kernelcast.features.addresses.counting import count_iterations, ends_for_good
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.semicolons import split_for
from kernelcast.features.syntax.tree import Node

_NOTED = frozenset((kinds.CALL, kinds.SUBSCRIPT, kinds.MEMBER_REFERENCE, kinds.CONDITIONAL))


@dataclass(frozen=True)
class Loop:
    """A loop's parts, and what its source alone tells; it is followed many times."""

    node: Node
    outline: Outline
    """Of the function that it stands in."""
    test: Node | None
    body: Node
    step: Node | None = None
    is_tested_last: bool = False

    @cached_property
    def changes(self) -> Changes:
        """What it may change."""
        return self.outline.find_changes(self.node)

    @cached_property
    def is_test_noted(self) -> bool:
        """Whether the test accesses memory or holds counters."""
        return self.test is not None and any(
            node.kind in _NOTED
            or (node.kind == kinds.UNARY and node.operator == kinds.DEREFERENCE)
            or (node.kind == kinds.BINARY
                and node.operator in (kinds.LOGICAL_AND, kinds.LOGICAL_OR))
            for node in self.test.walk()
        )  # fmt: skip

    @cached_property
    def has_changing_test(self) -> bool:
        """Whether the test, which runs once more than the body, changes variables."""
        return (
            self.test is not None
            and not self.is_tested_last
            and any(node.kind == kinds.CALL or is_assignment(node) for node in self.test.walk())
        )

    @cached_property
    def may_be_left(self) -> bool:
        """Whether its body holds a jump out of it."""
        return self.outline.may_be_left(self.node, self.body)

    @property
    def tested(self) -> Node:
        """The test; the body where there is none."""
        return self.body if self.test is None else self.test


class LoopReader:
    """Reads loops, each once however often it is followed."""

    def __init__(self) -> None:
        self._loops: dict[int, Loop] = {}
        self._outlines: dict[int, Outline] = {}

    def read(self, node: Node, function: Node) -> Loop:
        """Give the parts of a loop of a function."""
        found = self._loops.get(node.key)
        if found is None:
            outline = self._outlines.get(function.key)
            if outline is None:
                outline = self._outlines[function.key] = Outline(function.children[-1])
            found = self._loops[node.key] = _read_loop(node, outline)
        return found


def _read_loop(node: Node, outline: Outline) -> Loop:
    if node.kind == kinds.FOR:
        parts = split_for(node)
        return Loop(node, outline, parts.condition, parts.body, parts.step)
    first, last = node.children[0], node.children[-1]
    if node.kind == kinds.WHILE:
        return Loop(node, outline, first, last)
    return Loop(node, outline, last, first, is_tested_last=True)


def describe(
    loop: Loop, symbol: Symbol, condition: Condition, *, leaves: bool, limits: Mapping[str, int]
) -> LoopFacts:
    """Describe a loop that is tested before each iteration.

    Parameters
    ----------
    condition : Condition
        On which the iteration of that number runs, if all before it did.
    leaves : bool
        Whether its body may leave it.
    limits : mapping of str to int
        Greatest values of scalar arguments and contents that cannot be negative.
    """
    count, is_counted = count_iterations(condition, symbol, limits)
    is_exact = is_counted or (condition != TRUE and ends_for_good(condition, symbol))
    if is_counted and count is not None and not ends_for_good(condition, symbol):
        condition = less(symbol, count)
    return LoopFacts(
        name=symbol.name, line=loop.node.line, condition=condition, trip_count=count,
        is_exact=is_exact and not leaves,
    )  # fmt: skip


def describe_do(
    loop: Loop, symbol: Symbol, again: Condition, *, leaves: bool, limits: Mapping[str, int]
) -> LoopFacts:
    """Describe a loop that is tested at its end: its first iteration always runs.

    Parameters
    ----------
    again : Condition
        On which another iteration follows the one of that number.
    loop, symbol, leaves, limits
        As of `describe`.
    """
    count, is_counted = count_iterations(again, symbol, limits)
    if again == FALSE:
        count, is_counted = Expr.constant(0), True
    total = None if count is None else count + 1
    if is_counted and total is not None:
        condition = less(symbol, total)
    else:
        earlier = again.substitute({symbol: Expr.symbol(symbol) - 1})
        condition = disjunction(equal(symbol, 0), earlier)
    is_exact = is_counted or (again != TRUE and ends_for_good(again, symbol))
    return LoopFacts(
        name=symbol.name, line=loop.node.line, condition=condition, trip_count=total,
        is_exact=is_exact and not leaves,
    )  # fmt: skip


def describe_test(facts: LoopFacts, symbol: Symbol) -> LoopFacts:
    """Describe how often a loop's test runs: once more than its body."""
    if not facts.is_exact or facts.trip_count is None:
        return replace(facts, condition=UNKNOWN, trip_count=None, is_exact=False)
    total = facts.trip_count + 1
    return replace(facts, condition=less(symbol, total), trip_count=total)


def find_labels(body: Node) -> Iterator[int | None]:
    """Give the numbers of a switch's own labels; None for its default."""
    stack = [body]
    while stack:
        node = stack.pop()
        if node.kind == kinds.DEFAULT:
            yield None
        elif node.kind == kinds.CASE:
            value = node.children[0].constant
            if isinstance(value, int):
                yield value
        if node.kind != kinds.SWITCH:
            stack.extend(node.children)
