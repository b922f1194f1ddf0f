"""Loops in which work-groups fetch their work from a counter that all of them share.

Such persistent kernels do all the work however few of their work-groups run: a sampled one does
everybody's. What tells them is the loop's end: it depends on what an atomic addition to one place
of global memory has returned.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kernelcast.expressions import EvaluationError, Expr, Symbol, SymbolKind
from kernelcast.expressions.accesses import AccessKind, MemoryAccess
from kernelcast.features.analysis import Analysis
from kernelcast.features.dependence import CallEffects, Dependence, condition_of, list_reached
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.semicolons import split_for
from kernelcast.features.syntax.tree import Node, SyntaxTree, strip
from kernelcast.records.operations import MemorySpace

_COUNTING = re.compile(r"atom(?:ic)?_(?:fetch_)?(inc|dec|add|sub)(?:_explicit)?")
_DOWN = ("dec", "sub")
_SHARED = (MemorySpace.GLOBAL, MemorySpace.GENERIC)
_OWN = frozenset((SymbolKind.GLOBAL_ID, SymbolKind.CONTENT))
_GROUPS_TRIED_EACH = 64  # in each dimension
_LABEL = re.compile(r"goto\s+(\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkQueue:
    """A loop whose end depends on a shared counter.

    Parameters
    ----------
    line, operation_line : int
        Of the loop, and of the counter's change; 0 in an included file.
    operation : str
        The function that changes it.
    """

    line: int
    operation: str
    operation_line: int

    def __str__(self) -> str:
        where = f"line {self.line}: the loop" if self.line else "a loop of an included file"
        by = f"{self.operation} in line {self.operation_line}"
        return (
            f"{where} ends by what {by if self.operation_line else self.operation} returns, a "
            "counter that all work-groups share"
        )


def find_work_queue(analysis: Analysis) -> WorkQueue | None:
    """Find a loop that fetches work from a counter which all work-groups share.

    Returns
    -------
    WorkQueue or None
        None for a kernel without one, and where it cannot be told: a counter at an address that
        is not followed, or one that is advanced by compare-and-swap. Locks are none: what they
        take they give back. A loop over inputs that ends early where an output is full is none.
    """
    shared = _find_counters(analysis)
    if not shared:
        return None
    for function in list_reached(analysis.tree, [analysis.function]):
        for loop in _list_loops(function):
            for one in _choose(shared, loop, analysis.tree):
                if _ends_by(loop, one, analysis):
                    call = one.call
                    return WorkQueue(
                        line=loop.line, operation=call.spelling, operation_line=call.line
                    )
    return None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Loop:
    """A loop statement, or what lies between a label and a jump back to it."""

    line: int
    statements: tuple[Node, ...]
    condition: Node | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Counter:
    """An atomic addition to a place that all work-groups share."""

    call: Node
    access: MemoryAccess
    is_down: bool

    @property
    def place(self) -> tuple[str | None, Expr | None]:
        """Buffer and offset."""
        return self.access.buffer, self.access.offset_bytes


def _find_counters(analysis: Analysis) -> list[_Counter]:
    found = []
    for access in analysis.facts.accesses:
        if access.kind is not AccessKind.ATOMIC or access.space not in _SHARED:
            continue
        call = analysis.blocks.sites[access.site].node
        operation = _COUNTING.fullmatch(call.spelling)
        step = call.children[2].constant if len(call.children) > 2 else 1
        if operation is None or step == 0 or not _is_shared(access):  # adding 0 is reading
            continue
        is_down = (operation[1] in _DOWN) != (step is not None and step < 0)
        found.append(_Counter(call=call, access=access, is_down=is_down))
    return found


def _is_shared(access: MemoryAccess) -> bool:
    """Tell whether an address is known to be the same for several work-groups, again and again."""
    offset = access.offset_bytes
    if offset is None:
        return False
    symbols = offset.symbols()
    innermost = access.loops[-1].name if access.loops else None
    if any(one.kind in _OWN or one == Symbol(SymbolKind.LOOP, innermost or "-") for one in symbols):
        return False
    groups = [one for one in symbols if one.kind is SymbolKind.GROUP_ID]
    if not groups:
        return True
    # Queues that some work-groups share, as by `get_group_id(0) % queues`.
    places = np.indices((_GROUPS_TRIED_EACH,) * len(groups)).reshape(len(groups), -1)
    try:
        values = offset.evaluate(dict(zip(groups, places, strict=True)))
    except EvaluationError:
        return False
    return bool(np.unique(np.asarray(values)).size < places.shape[1])


def _list_loops(function: Node) -> Iterator[_Loop]:
    for node in function.walk():
        if node.kind in kinds.LOOPS:
            condition = condition_of(node)
            if condition is not None and condition.constant == 0:
                continue  # the braces of a macro, no loop
            head = split_for(node).initial if node.kind == kinds.FOR else None
            parts = tuple(one for one in node.children if one is not head)
            yield _Loop(line=node.line, statements=parts, condition=condition)
        elif node.kind == kinds.COMPOUND:
            yield from _list_jumps_back(node)


def _list_jumps_back(block: Node) -> Iterator[_Loop]:
    """Give what is repeated by a `goto` to a label of a block."""
    for first, child in enumerate(block.children):
        if child.kind != kinds.LABEL:
            continue
        for last in range(len(block.children) - 1, first - 1, -1):
            jumps = (one for one in block.children[last].walk() if one.kind == kinds.GOTO)
            if any(_target_of(one) == child.spelling for one in jumps):
                yield _Loop(line=child.line, statements=tuple(block.children[first : last + 1]))
                break


def _target_of(jump: Node) -> str:
    match = _LABEL.match(jump.text())
    return match[1] if match else ""


def _choose(counters: list[_Counter], loop: _Loop, tree: SyntaxTree) -> list[_Counter]:
    """Give the counters that a loop changes; not those that it changes back, as locks do."""
    reached = list_reached(tree, list(loop.statements))
    keys = {node.key for one in reached for node in one.walk() if node.kind == kinds.CALL}
    own = [one for one in counters if one.call.key in keys]
    ways = {(one.place, one.is_down) for one in own}
    return [one for one in own if (one.place, not one.is_down) not in ways]


def _ends_by(loop: _Loop, counter: _Counter, analysis: Analysis) -> bool:
    flow = Dependence(CallEffects(analysis.tree, {counter.call.key}), loop.statements)
    test = loop.condition
    if test is not None and flow.depends(test):
        return True
    return flow.leaves and (not _ends_itself(loop) or _chooses_input(counter, analysis))


def _chooses_input(counter: _Counter, analysis: Analysis) -> bool:
    """Tell whether the counter says what is read, and not only where results are put."""
    return any(
        one.kind is AccessKind.LOAD and counter.access.buffer in one.sources
        for one in analysis.facts.accesses
    )


def _ends_itself(loop: _Loop) -> bool:
    """Tell whether a loop's condition asks for a variable that the loop changes.

    Then what a counter returns may end it early, as where an output is full, and is not what
    keeps it going.
    """
    if loop.condition is None:
        return False
    asked = {
        one.referenced_key
        for one in loop.condition.walk()
        if one.kind == kinds.DECLARATION_REFERENCE
    }
    return any(_changed_by(one) in asked for part in loop.statements for one in part.walk())


def _changed_by(node: Node) -> int:
    """Give the key of the variable that an expression changes; 0 if it changes none."""
    is_step = node.kind == kinds.UNARY and node.operator in kinds.STEPS
    is_set = node.kind == kinds.COMPOUND_ASSIGNMENT or (
        node.kind == kinds.BINARY and node.operator == kinds.ASSIGN
    )
    target = strip(node.children[0]) if is_step or is_set else None
    is_variable = target is not None and target.kind == kinds.DECLARATION_REFERENCE
    return target.referenced_key if target is not None and is_variable else 0
