"""Loops that go on until somebody else writes to memory, or for ever.

A loop that changes nothing of what its end depends on ends at once or waits. Where it waits for a
work-group that is not among the sampled ones, it never ends.
"""

import re
from dataclasses import dataclass

from kernelcast.features.analysis import Analysis
from kernelcast.features.blocks.model import Site
from kernelcast.features.dependence import condition_of, list_reached
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.tree import Node, strip

_LEAVING = frozenset((kinds.BREAK, kinds.RETURN, kinds.GOTO, kinds.INDIRECT_GOTO))
_TESTING = frozenset((kinds.IF, kinds.SWITCH, kinds.CONDITIONAL))
_COUNTING = re.compile(r"atom(?:ic)?_(?:fetch_)?(?:inc|dec|add|sub)(?:_explicit)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitLoop:
    """A loop that need not end."""

    line: int
    is_endless: bool

    def __str__(self) -> str:
        where = f"line {self.line}: the loop" if self.line else "a loop of an included file"
        if self.is_endless:
            return f"{where} has no end"
        return f"{where} ends when somebody else writes to memory"


def find_wait_loop(analysis: Analysis) -> WaitLoop | None:
    """Find a loop that changes nothing of what its end depends on.

    Returns
    -------
    WaitLoop or None
        None where every loop may go on by itself.
    """
    sites = {one.node.key: one for one in analysis.blocks.sites}
    for function in list_reached(analysis.tree, [analysis.function]):
        for loop in function.walk():
            if loop.kind not in kinds.LOOPS:
                continue
            test = condition_of(loop)
            if test is not None and test.constant == 0:
                continue
            nodes = [
                node for one in list_reached(analysis.tree, [loop]) for node in one.walk()
            ]  # fmt: skip
            is_tested = test is not None and test.constant is None
            if not is_tested and not any(one.kind in _LEAVING for one in nodes):
                return WaitLoop(line=loop.line, is_endless=True)
            met = [sites[one.key] for one in nodes if one.key in sites]
            if met and all(map(_changes_nothing, met)) and not _goes_on(nodes, test):
                return WaitLoop(line=loop.line, is_endless=False)
    return None


def _changes_nothing(site: Site) -> bool:
    """Tell a load, and an atomic operation that does the same each time, as a lock's."""
    if not site.is_atomic:
        return not site.is_store
    if site.name.startswith(("atomic_store", "atomic_init")):
        return False
    operands = [one.constant for one in site.node.children[2:] if one.type.is_number]
    if _COUNTING.fullmatch(site.name):
        return operands[:1] == [0]
    return None not in operands


def _goes_on(nodes: list[Node], test: Node | None) -> bool:
    """Tell whether a test of a loop asks for a variable whose value follows from its last one."""
    tests = [one.children[0] for one in nodes if one.kind in _TESTING]
    tests += [found for one in nodes if one.kind in kinds.LOOPS and (found := condition_of(one))]
    asked = {name for one in (*tests, *([test] if test else [])) for name in _names(one)}
    uses = _list_uses(nodes)
    return any(
        one in _reach(uses, uses.get(one, set())) for one in asked | _reach(uses, asked)
    )  # fmt: skip


def _list_uses(nodes: list[Node]) -> dict[int, set[int]]:
    """Give the variables that each variable's new values are made of."""
    uses: dict[int, set[int]] = {}
    for node in nodes:
        if node.kind == kinds.VARIABLE:
            made_of = {name for one in node.children for name in _names(one)}
            uses.setdefault(node.key, set()).update(made_of)
            continue
        is_step = node.kind == kinds.UNARY and node.operator in kinds.STEPS
        is_plain = node.kind == kinds.BINARY and node.operator == kinds.ASSIGN
        if is_step or is_plain or node.kind == kinds.COMPOUND_ASSIGNMENT:
            made_of = set() if is_step else _names(node.children[1])
            for target in _names(node.children[0]):
                uses.setdefault(target, set()).update(made_of if is_plain else {target, *made_of})
        elif node.kind == kinds.CALL:  # what a function does with an address is not followed
            addresses = [one for one in map(strip, node.children[1:]) if one.kind == kinds.UNARY]
            for target in (name for one in addresses for name in _names(one)):
                uses.setdefault(target, set()).add(target)
    return uses


def _reach(uses: dict[int, set[int]], names: set[int]) -> set[int]:
    """Give some variables and all that their values are made of."""
    found, waiting = set(names), list(names)
    while waiting:
        new = uses.get(waiting.pop(), set()) - found
        found |= new
        waiting.extend(new)
    return found


def _names(node: Node) -> set[int]:
    """Give the keys of the variables that an expression mentions."""
    return {one.referenced_key for one in node.walk() if one.kind == kinds.DECLARATION_REFERENCE}
