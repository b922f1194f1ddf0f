"""Walks a kernel and every function it calls."""

from kernelcast.features.blocks.model import NEVER, ONCE, BlockList, LinearCount
from kernelcast.features.blocks.statements import StatementWalker
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.tree import Node, SyntaxTree


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
