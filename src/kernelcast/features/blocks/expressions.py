"""Finds where expressions load and store, and where they branch."""

from collections.abc import Callable
from typing import ClassVar

from kernelcast.features.blocks import builtins
from kernelcast.features.blocks.model import (
    Block,
    BlockKind,
    BlockList,
    CounterForm,
    LinearCount,
    Site,
)  # fmt: skip
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.kinds import Implicit
from kernelcast.features.syntax.lvalues import base_object, classify
from kernelcast.features.syntax.tree import Node, SyntaxTree, strip
from kernelcast.features.syntax.types import TypeClass, TypeInfo

_LITERALS = frozenset((kinds.INTEGER, kinds.FLOATING, kinds.CHARACTER, kinds.STRING, kinds.SIZE_OF))


class ExpressionCounter:
    """Adds the accesses and the branches of expressions to blocks.

    Parameters
    ----------
    tree : SyntaxTree
        Where called functions are looked up.
    found : BlockList
        What has been found so far.
    function : Node
        The function whose expressions are walked.
    """

    def __init__(self, tree: SyntaxTree, found: BlockList, function: Node) -> None:
        self._tree = tree
        self._found = found
        self._function = function
        self._name = function.spelling

    def value(self, node: Node, block: Block) -> None:
        """Count an expression whose value is used, or that is a statement."""
        self._found.note_place(node, block)
        handler = self._HANDLERS.get(node.kind)
        if handler is not None:
            handler(self, node, block)
        elif node.kind not in _LITERALS:
            for child in node.children:
                self.value(child, block)

    def condition(self, node: Node, block: Block) -> None:
        """Count an expression that decides a branch; a constant decides nothing."""
        node = strip(node)
        if node.constant is not None:
            return
        if node.kind == kinds.BINARY and node.operator in (kinds.LOGICAL_AND, kinds.LOGICAL_OR):
            left, right = node.children
            if left.constant is None:
                self.condition(left, block)
                block = self._side_block(BlockKind.RIGHT_SIDE, right, block)
            self.condition(right, block)
        elif node.kind == kinds.UNARY and node.operator == kinds.NOT:
            self.condition(node.children[0], block)
        elif node.kind == kinds.CONDITIONAL and node.children[0].constant is None:
            for arm, inner in self._choose(node, block):
                self.condition(arm, inner)
        else:
            self.value(node, block)

    def _unexposed(self, node: Node, block: Block) -> None:
        if not node.children:
            return
        child = node.children[0]
        if classify(node) is Implicit.LOAD:
            self._address(child, block)
            self._access(child, block, is_store=False)
        else:
            self.value(child, block)

    def _unary(self, node: Node, block: Block) -> None:
        child, operator = node.children[0], node.operator
        if operator == kinds.ADDRESS_OF:
            self._address(child, block)
        elif operator in kinds.STEPS:
            self._update(child, block)
        else:
            self.value(child, block)

    def _update(self, node: Node, block: Block) -> None:
        self._address(node, block)
        self._access(node, block, is_store=False)
        self._access(node, block, is_store=True)

    def _binary(self, node: Node, block: Block) -> None:
        left, right = node.children
        operator = node.operator
        if operator == kinds.ASSIGN:
            self.value(right, block)
            self._address(left, block)
            if _has_lanes(left):
                self._access(left, block, is_store=False)
            self._access(left, block, is_store=True)
        elif operator in (kinds.LOGICAL_AND, kinds.LOGICAL_OR) and not node.type.is_vector:
            self._short_circuit(left, right, block)
        elif node.constant is None:
            self.value(left, block)
            self.value(right, block)

    def _short_circuit(self, left: Node, right: Node, block: Block) -> None:
        if left.constant is None:
            self.condition(left, block)
            block = self._side_block(BlockKind.RIGHT_SIDE, right, block)
        self.value(right, block)

    def _compound_assignment(self, node: Node, block: Block) -> None:
        left, right = node.children
        self.value(right, block)
        self._update(left, block)

    def _conditional(self, node: Node, block: Block) -> None:
        test, *arms = node.children
        known = test.constant
        if test.type.is_vector:
            for child in node.children:
                self.value(child, block)
        elif known is not None:
            self.value(arms[0] if known else arms[-1], block)
        elif all(arm.constant is not None for arm in arms):
            self.value(test, block)
        else:
            for arm, inner in self._choose(node, block):
                self.value(arm, inner)

    def _choose(self, node: Node, block: Block) -> tuple[tuple[Node, Block], ...]:
        """Count the condition of `?:`; give its sides with their blocks."""
        test, *arms = node.children
        self.condition(test, block)
        then = self._side_block(BlockKind.ARM, arms[0], block)
        otherwise = self._found.new_block(
            self._name, BlockKind.ARM, block.count - then.count, arms[-1], block
        )
        return (arms[0], then), (arms[-1], otherwise)

    def _call(self, node: Node, block: Block) -> None:
        called = node.spelling
        for argument in node.children[1:]:
            self.value(argument, block)
        definition = self._tree.definition_of(node)
        if definition is not None:
            self._found.calls.append((self._function.key, definition.key, block.count))
            return
        self._add_memory_call(called, node, block)

    def _add_memory_call(self, called: str, node: Node, block: Block) -> None:
        """Add what vloadN, vstoreN and atomics access."""
        arguments = node.children[1:]
        access = builtins.find_vector_access(called)
        if access is not None and arguments:
            is_store, lanes, is_half = access
            pointer = arguments[-1] if not is_store else _last_pointer(arguments)
            element = pointer.type.target
            size = 2 if is_half else (element.bits // 8 if element else 0)
            self._add_site(
                node, pointer, block, is_store=is_store, size=lanes * size, lanes=lanes, name=called
            )
        elif builtins.is_atomic(called) and arguments:
            pointer = _last_pointer(arguments)
            target = pointer.type.target
            size = target.bytes if target else 0
            self._add_site(node, pointer, block, is_store=True, size=size, name=called)

    def _address(self, node: Node, block: Block) -> None:
        """Walk what finding an object's address evaluates."""
        node = base_object(node)
        if node.kind == kinds.UNARY:
            self.value(node.children[0], block)
        elif node.kind == kinds.MEMBER_REFERENCE:
            for child in node.children:
                if child.type.type_class is TypeClass.POINTER:
                    self.value(child, block)
                else:
                    self._address(child, block)
        elif node.kind == kinds.SUBSCRIPT:
            for child in node.children:
                self.value(child, block)
        elif node.kind not in (kinds.DECLARATION_REFERENCE, kinds.STRING):
            self.value(node, block)

    def _access(self, node: Node, block: Block, *, is_store: bool) -> None:
        """Count the load or store of an object, unless it lives in registers."""
        base = base_object(node)
        if base.type.space == "private" and not _is_in_private_memory(base):
            return
        size, lanes = base.type.bytes, node.type.lanes
        self._add_site(base, None, block, is_store=is_store, size=size, lanes=lanes)

    def _add_site(
        self, node: Node, pointer: Node | None, block: Block, *, is_store: bool, size: int,
        lanes: int = 1, name: str = "",
    ) -> None:  # fmt: skip
        where = node.type if pointer is None else _pointee(pointer)
        site = Site(
            0, node, pointer, where.space, is_store, size, lanes,
            is_atomic=builtins.is_atomic(name), name=name,
        )  # fmt: skip
        self._found.add_site(block, site)

    def _side_block(self, kind: BlockKind, node: Node, block: Block) -> Block:
        count: LinearCount = self._found.new_counter(CounterForm.EXPRESSION, node)
        return self._found.new_block(self._name, kind, count, node, block)

    _HANDLERS: ClassVar[dict[int, Callable[["ExpressionCounter", Node, Block], None]]] = {
        kinds.UNEXPOSED: _unexposed,
        kinds.UNARY: _unary,
        kinds.BINARY: _binary,
        kinds.COMPOUND_ASSIGNMENT: _compound_assignment,
        kinds.CONDITIONAL: _conditional,
        kinds.CALL: _call,
    }


def _has_lanes(node: Node) -> bool:
    """Tell whether an assignment changes some lanes only: the rest is loaded and stored back."""
    return strip(node).kind == kinds.UNEXPOSED


def _is_in_private_memory(node: Node) -> bool:
    """Tell whether an object of private space is an element of an array, or behind a pointer."""
    if node.kind == kinds.SUBSCRIPT:
        return True
    if node.kind == kinds.UNARY:
        return node.operator == kinds.DEREFERENCE
    if node.kind == kinds.MEMBER_REFERENCE and node.children:
        child = node.children[0]
        return child.type.type_class is TypeClass.POINTER or _is_in_private_memory(
            base_object(child)
        )
    return False


def _last_pointer(arguments: list[Node]) -> Node:
    """Give the argument that is a pointer to the memory operated on."""
    for argument in arguments:
        if argument.type.type_class is TypeClass.POINTER:
            return argument
    return arguments[-1]


def _pointee(pointer: Node) -> TypeInfo:
    """Give what a pointer argument points to, address space as the caller wrote it."""
    node = strip(pointer)
    while node.kind == kinds.UNEXPOSED and node.children:
        inner = node.children[0]
        if inner.type.type_class is not TypeClass.POINTER:
            break
        node = strip(inner)
    return node.type.target or node.type
