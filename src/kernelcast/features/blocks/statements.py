"""Walks a function's statements and divides them into blocks.

Counts obey flow conservation: what enters a statement leaves it at its end, or by one of the jumps
in it. So only branches, loop bodies and labels need counters; the counts of everything else
follow, the evaluations of a loop's condition for instance.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from kernelcast.features.blocks.expressions import ExpressionCounter
from kernelcast.features.blocks.model import (
    NEVER,
    ONCE,
    Block,
    BlockKind,
    BlockList,
    CounterForm,
    LinearCount,
)
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.semicolons import split_for
from kernelcast.features.syntax.tree import Node, SyntaxTree


@dataclass(slots=True)
class _Exits:
    """Where jumps go that leave the innermost loop or switch."""

    breaks: LinearCount = NEVER
    continues: LinearCount = NEVER
    arrivals: LinearCount = NEVER
    """How often a switch has gone to one of its labels."""


@dataclass(slots=True)
class _Function:
    """What is known of the function while its statements are walked."""

    node: Node
    exits: list[_Exits] = field(default_factory=list)
    loops: list[_Exits] = field(default_factory=list)
    switches: list[_Exits] = field(default_factory=list)


class StatementWalker:
    """Divides one function into blocks.

    Parameters
    ----------
    found : BlockList
        Where blocks, counters and sites are added.
    """

    def __init__(self, tree: SyntaxTree, found: BlockList, function: Node) -> None:
        self._found = found
        self._state = _Function(function)
        self._name = function.spelling
        self._expressions = ExpressionCounter(tree, found, function)

    def walk(self, count: LinearCount) -> None:
        """Add the function's blocks."""
        body = self._state.node.children[-1]
        entry = self._found.new_block(self._name, BlockKind.ENTRY, count, body, None)
        self._statement(body, entry)

    def _statement(self, node: Node, block: Block) -> Block:
        """Walk a statement; give the block that its end belongs to."""
        self._found.note_place(node, block)
        handler = self._HANDLERS.get(node.kind)
        if handler is not None:
            return handler(self, node, block)
        if node.kind == kinds.DECLARATION:
            for variable in node.children:
                self._declare(variable, block)
        elif kinds.FIRST_EXPRESSION <= node.kind <= kinds.LAST_EXPRESSION:
            self._expressions.value(node, block)
        elif node.kind == kinds.ASSEMBLER:
            self._found.gaps.append((node.line, "inline assembler is not understood"))
        elif node.kind != kinds.EMPTY:
            for child in node.children:
                block = self._statement(child, block)
        self._note_line(node, block)
        return block

    def _declare(self, variable: Node, block: Block) -> None:
        """Count a variable's initial value; sizes of arrays are constants."""
        if variable.kind != kinds.VARIABLE or not variable.children:
            return
        last = variable.children[-1]
        if not (variable.type.target and last.constant is not None):
            self._expressions.value(last, block)

    def _compound(self, node: Node, block: Block) -> Block:
        for child in node.children:
            block = self._statement(child, block)
        self._note_line(node, block)
        return block

    def _if(self, node: Node, block: Block) -> Block:
        test, then_node, *rest = node.children
        known = test.constant
        if known is not None:
            chosen = then_node if known else (rest[0] if rest else None)
            return block if chosen is None else self._statement(chosen, block)
        self._expressions.condition(test, block)
        then = self._counted_block(BlockKind.THEN, then_node, block)
        end = self._statement(then_node, then)
        missing = block.count - then.count
        if not rest:
            return self._continue_with(block, end.count + missing, node)
        otherwise = self._found.new_block(self._name, BlockKind.ELSE, missing, rest[0], block)
        other_end = self._statement(rest[0], otherwise)
        return self._continue_with(block, end.count + other_end.count, node)

    def _for(self, node: Node, block: Block) -> Block:
        parts = split_for(node)
        if parts.initial is not None:
            block = self._statement(parts.initial, block)
        body, end, exits = self._loop_body(parts.body, block)
        completed = end.count + exits.continues
        if parts.step is not None:
            step = self._found.new_block(
                self._name, BlockKind.LOOP_STEP, completed, parts.step, body
            )
            self._expressions.value(parts.step, step)
        self._loop_condition(parts.condition, block.count + completed, block, branchless=None)
        returned = body.count - completed - exits.breaks
        return self._continue_with(block, block.count - returned, node)

    def _while(self, node: Node, block: Block) -> Block:
        return self._tested_loop(node, block, node.children[0], node.children[-1], is_first=True)

    def _do(self, node: Node, block: Block) -> Block:
        return self._tested_loop(node, block, node.children[-1], node.children[0], is_first=False)

    def _tested_loop(
        self, node: Node, block: Block, test: Node, body_node: Node, *, is_first: bool
    ) -> Block:
        """Divide a loop without counter, whose test comes first or last."""
        body, end, exits = self._loop_body(body_node, block)
        completed = end.count + exits.continues
        tested = block.count + completed if is_first else completed
        self._loop_condition(test, tested, block, branchless=int(is_first))
        returned = body.count - completed - exits.breaks
        return self._continue_with(block, block.count - returned, node)

    def _loop_body(self, body_node: Node, block: Block) -> tuple[Block, Block, _Exits]:
        exits = _Exits()
        self._state.exits.append(exits)
        self._state.loops.append(exits)
        body = self._counted_block(BlockKind.LOOP_BODY, body_node, block)
        end = self._statement(body_node, body)
        self._state.exits.pop()
        self._state.loops.pop()
        return body, end, exits

    def _loop_condition(
        self, test: Node | None, count: LinearCount, block: Block, *, branchless: int | None
    ) -> None:
        """Count a loop's condition; `branchless` is the constant that needs none, if one does."""
        if test is None or (test.constant is not None and test.constant == branchless):
            return
        condition = self._found.new_block(self._name, BlockKind.LOOP_CONDITION, count, test, block)
        self._expressions.value(test, condition)

    def _switch(self, node: Node, block: Block) -> Block:
        test, body = node.children[0], node.children[-1]
        self._expressions.value(test, block)
        exits = _Exits()
        self._state.exits.append(exits)
        self._state.switches.append(exits)
        # Statements before the first label are never reached.
        inside = self._found.new_block(self._name, BlockKind.CASE, NEVER, body, block)
        end = self._statement(body, inside)
        self._state.exits.pop()
        self._state.switches.pop()
        skipped = NEVER if _has_default(body) else block.count - exits.arrivals
        return self._continue_with(block, end.count + exits.breaks + skipped, node)

    def _case(self, node: Node, block: Block) -> Block:
        inner = node.children[-1]
        if inner.kind in (kinds.CASE, kinds.DEFAULT):
            return self._statement(inner, block)
        count = self._found.new_counter(CounterForm.LABELLED, inner)
        labelled = self._found.new_block(self._name, BlockKind.CASE, count, inner, block)
        if self._state.switches:
            self._state.switches[-1].arrivals += labelled.count - block.count
        return self._statement(inner, labelled)

    def _label(self, node: Node, block: Block) -> Block:
        inner = node.children[-1]
        count = self._found.new_counter(CounterForm.LABELLED, inner)
        labelled = self._found.new_block(self._name, BlockKind.LABEL, count, inner, block)
        return self._statement(inner, labelled)

    def _return(self, node: Node, block: Block) -> Block:
        for child in node.children:
            self._expressions.value(child, block)
        return self._unreachable(block, node)

    def _break(self, node: Node, block: Block) -> Block:
        if self._state.exits:
            self._state.exits[-1].breaks += block.count
        return self._unreachable(block, node)

    def _continue(self, node: Node, block: Block) -> Block:
        if self._state.loops:
            self._state.loops[-1].continues += block.count
        return self._unreachable(block, node)

    def _goto(self, node: Node, block: Block) -> Block:
        self._found.gaps.append((node.line, "goto: counts of what follows need counters"))
        return self._unreachable(block, node)

    def _unreachable(self, block: Block, node: Node) -> Block:
        self._note_line(node, block)
        return self._found.new_block(self._name, BlockKind.AFTER, NEVER, node, block)

    def _continue_with(self, block: Block, count: LinearCount, node: Node) -> Block:
        """Give the block of what follows a statement."""
        self._note_line(node, block)
        if count == block.count:
            return block
        return self._found.new_block(self._name, BlockKind.AFTER, count, node, block)

    def _counted_block(self, kind: BlockKind, node: Node, parent: Block) -> Block:
        is_compound = node.kind == kinds.COMPOUND
        form = CounterForm.COMPOUND if is_compound else CounterForm.STATEMENT
        count = self._found.new_counter(form, node)
        return self._found.new_block(self._name, kind, count, node, parent)

    def _note_line(self, node: Node, block: Block) -> None:
        span = node.span
        if span:
            block.last_line = max(block.last_line, node.unit.places.line_of(span.end))

    _HANDLERS: ClassVar[dict[int, Callable[["StatementWalker", Node, Block], Block]]] = {
        kinds.COMPOUND: _compound,
        kinds.IF: _if,
        kinds.FOR: _for,
        kinds.WHILE: _while,
        kinds.DO: _do,
        kinds.SWITCH: _switch,
        kinds.CASE: _case,
        kinds.DEFAULT: _case,
        kinds.LABEL: _label,
        kinds.RETURN: _return,
        kinds.BREAK: _break,
        kinds.CONTINUE: _continue,
        kinds.GOTO: _goto,
    }


def _has_default(body: Node) -> bool:
    """Tell whether a switch has a default label of its own."""
    stack = [body]
    while stack:
        node = stack.pop()
        if node.kind == kinds.DEFAULT:
            return True
        if node.kind == kinds.SWITCH:
            continue
        stack.extend(node.children)
    return False


def divide(tree: SyntaxTree, kernel: Node) -> BlockList:
    """Divide a kernel and the functions it calls into blocks.

    Returns
    -------
    BlockList
        Counts of helper functions add up over all their calls. Recursion, which OpenCL C
        forbids (6.11), is a gap: such functions are counted as if called once.
    """
    found = BlockList()
    order, recursive = _order_by_calls(tree, kernel)
    for function in recursive:
        found.gaps.append((function.line, f"{function.spelling} calls itself: OpenCL C forbids it"))
    entries: dict[int, LinearCount] = {kernel.key: ONCE}
    for function in order:
        known = len(found.calls)
        StatementWalker(tree, found, function).walk(entries.get(function.key, NEVER))
        for _, callee, count in found.calls[known:]:
            entries[callee] = entries.get(callee, NEVER) + count
    return found


def _order_by_calls(tree: SyntaxTree, kernel: Node) -> tuple[list[Node], list[Node]]:
    """Give the functions reached, callers before those they call, and those in a cycle."""
    finished: list[Node] = []
    state: dict[int, bool] = {}
    recursive: dict[int, Node] = {}
    stack: list[tuple[Node, list[Node]]] = [(kernel, _callees(tree, kernel))]
    state[kernel.key] = False
    while stack:
        function, callees = stack[-1]
        if not callees:
            state[function.key] = True
            finished.append(function)
            stack.pop()
            continue
        callee = callees.pop()
        if callee.key not in state:
            state[callee.key] = False
            stack.append((callee, _callees(tree, callee)))
        elif not state[callee.key]:
            recursive[callee.key] = callee
    return finished[::-1], list(recursive.values())


def _callees(tree: SyntaxTree, function: Node) -> list[Node]:
    found: dict[int, Node] = {}
    stack = [function]
    while stack:
        node = stack.pop()
        if node.kind == kinds.CALL:
            definition = tree.definition_of(node)
            if definition is not None:
                found.setdefault(definition.key, definition)
        stack += node.children[::-1]
    return list(found.values())[::-1]
