"""Finds the parts of a `for` statement: libclang leaves those out that are missing."""

import re
from dataclasses import dataclass

from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.tree import Node

_SKIPPED = re.compile(
    rb'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[();]', re.DOTALL
)
_EVERYTHING = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ForParts:
    """A `for` statement's parts; None for those that are not there."""

    initial: Node | None
    condition: Node | None
    step: Node | None
    body: Node


def split_for(node: Node) -> ForParts:
    """Tell the parts of a `for` statement apart.

    Returns
    -------
    ForParts
        By the places of the semicolons; within macros, where these are not to be seen, by what the
        parts look like.
    """
    *head, body = node.children
    if len(head) == _EVERYTHING - 1:
        return ForParts(initial=head[0], condition=head[1], step=head[2], body=body)
    semicolons = _find_semicolons(node)
    parts: dict[int, Node] = {}
    for child in head:
        parts[_place_of(child, semicolons)] = child
    return ForParts(initial=parts.get(0), condition=parts.get(1), step=parts.get(2), body=body)


def _find_semicolons(node: Node) -> tuple[int, int] | None:
    span = node.span
    if span is None or not span.is_exact:
        return None
    depth, found = 0, []
    for match in _SKIPPED.finditer(node.unit.places.source, span.start, span.end):
        sign = match.group()
        if sign == b"(":
            depth += 1
        elif sign == b")":
            depth -= 1
            if depth == 0:
                break
        elif sign == b";" and depth == 1:
            found.append(match.start())
    return (found[0], found[1]) if len(found) > 1 else None


def _place_of(child: Node, semicolons: tuple[int, int] | None) -> int:
    """Give 0, 1 or 2: initial part, condition, step."""
    if semicolons is not None and child.span is not None:
        return sum(child.span.start > place for place in semicolons)
    if child.kind == kinds.DECLARATION:
        return 0
    if child.kind == kinds.BINARY:
        return 0 if child.operator == kinds.ASSIGN else 1
    return 2
