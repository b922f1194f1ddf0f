"""Counts what evaluating an expression executes."""

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
from kernelcast.features.blocks.operators import (
    add,
    count_conversion,
    find_operation,
    is_bool,
    make_operation,
    number_class,
    step_kind,
)  # fmt: skip
from kernelcast.features.blocks.own_arrays import OwnArrays
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.kinds import Implicit
from kernelcast.features.syntax.lvalues import base_object, classify
from kernelcast.features.syntax.tree import Node, SyntaxTree, strip
from kernelcast.features.syntax.types import TypeClass, TypeInfo
from kernelcast.records.operations import NumberClass, OwnElement
from kernelcast.records.operations import OperationKind as Kind

_ARITHMETIC = {
    kinds.MULTIPLY: Kind.MULTIPLY, kinds.DIVIDE: Kind.DIVIDE, kinds.REMAINDER: Kind.DIVIDE,
    kinds.ADD: Kind.ADD, kinds.SUBTRACT: Kind.ADD, kinds.SHIFT_LEFT: Kind.LOGIC,
    kinds.SHIFT_RIGHT: Kind.LOGIC, kinds.BIT_AND: Kind.LOGIC, kinds.BIT_XOR: Kind.LOGIC,
    kinds.BIT_OR: Kind.LOGIC, **dict.fromkeys(kinds.COMPARISONS, Kind.COMPARE),
}  # fmt: skip
_LITERALS = frozenset((kinds.INTEGER, kinds.FLOATING, kinds.CHARACTER, kinds.STRING, kinds.SIZE_OF))


class ExpressionCounter:
    """Adds the operations of expressions to blocks.

    Parameters
    ----------
    tree : SyntaxTree
        Where called functions are looked up.
    found : BlockList
        What has been found so far.
    function : Node
        The function whose expressions are counted.
    """

    def __init__(self, tree: SyntaxTree, found: BlockList, function: Node) -> None:
        self._tree = tree
        self._found = found
        self._function = function
        self._name = function.spelling
        self._own_arrays = OwnArrays(function)

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
        """Count an expression that decides a branch.

        A compiler branches once for each part of `&&` and `||` that it evaluates; a constant
        decides nothing.
        """
        node = strip(node)
        constant = node.constant
        if constant is not None:
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
            self.truth(node, block)
            add(block, Kind.BRANCH)

    def loop_condition(self, node: Node, block: Block) -> None:
        """Count a loop's condition: computed as a value first, unlike that of `if`."""
        self.truth(node, block)
        add(block, Kind.BRANCH)

    def truth(self, node: Node, block: Block) -> None:
        """Count an expression whose value is taken for true or false."""
        self.value(node, block)
        node = strip(node)
        if node.constant is None and not _is_truth(node):
            add(block, Kind.COMPARE, node.type)

    def _unexposed(self, node: Node, block: Block) -> None:
        if not node.children:
            return
        child = node.children[0]
        step = classify(node)
        if step is Implicit.LOAD:
            self._address(child, block)
            self._access(child, block, is_store=False)
            return
        self.value(child, block)
        if step is Implicit.CONVERT:
            _convert(child, node.type, block)

    def _cast(self, node: Node, block: Block) -> None:
        for child in node.children:
            self.value(child, block)
        if node.children:
            _convert(node.children[-1], node.type, block)

    def _unary(self, node: Node, block: Block) -> None:
        child, operator = node.children[0], node.operator
        if operator == kinds.ADDRESS_OF:
            self._address(child, block)
        elif operator in kinds.STEPS:
            self._address(child, block, OwnElement.UPDATE)
            self._access(child, block, is_store=False)
            add(block, step_kind(child.type), child.type)
            self._access(child, block, is_store=True)
        elif operator == kinds.NOT and not child.type.is_vector:
            self.truth(child, block)
            add(block, Kind.LOGIC, node.type)
        elif operator == kinds.NOT:
            self.value(child, block)
            add(block, Kind.COMPARE, child.type)
        else:
            self.value(child, block)
            if operator == kinds.MINUS and child.constant is None:
                add(block, Kind.ADD, node.type)
            elif operator == kinds.COMPLEMENT and child.constant is None:
                add(block, Kind.LOGIC, node.type)

    def _binary(self, node: Node, block: Block) -> None:
        left, right = node.children
        operator = node.operator
        if operator == kinds.ASSIGN:
            self.value(right, block)
            self._address(left, block, OwnElement.STORE)
            if _has_lanes(left):
                self._access(left, block, is_store=False)
            self._access(left, block, is_store=True)
        elif operator in (kinds.LOGICAL_AND, kinds.LOGICAL_OR) and not node.type.is_vector:
            self._short_circuit(left, right, block)
        elif node.constant is None:
            self.value(left, block)
            self.value(right, block)
            kind = _ARITHMETIC.get(operator)
            if kind is not None:
                add(block, *find_operation(kind, node, left))

    def _short_circuit(self, left: Node, right: Node, block: Block) -> None:
        known = left.constant
        if known is None:
            self.condition(left, block)
            block = self._side_block(BlockKind.RIGHT_SIDE, right, block)
        self.truth(right, block)
        if known is None:
            add(block, Kind.JUMP)

    def _compound_assignment(self, node: Node, block: Block) -> None:
        left, right = node.children
        self.value(right, block)
        self._address(left, block, OwnElement.UPDATE)
        self._access(left, block, is_store=False)
        kind = _ARITHMETIC[kinds.OPERATOR_OF_ASSIGNMENT[node.operator]]
        if left.type.type_class is TypeClass.POINTER:
            kind = Kind.ADDRESS
        computed = left.type
        becomes_float = computed.is_integer and right.type.type_class is TypeClass.FLOAT
        if (computed.bits < right.type.bits or becomes_float) and not computed.is_vector:
            computed = right.type
            count_conversion(left.type, computed, block)
            count_conversion(computed, left.type, block)
        add(block, kind, computed)
        self._access(left, block, is_store=True)

    def _conditional(self, node: Node, block: Block) -> None:
        test, *arms = node.children
        if test.type.is_vector:
            for child in node.children:
                self.value(child, block)
            add(block, Kind.SELECT, node.type)
            return
        known = test.constant
        if known is not None:
            self.value(arms[0] if known else arms[-1], block)
        elif all(arm.constant is not None for arm in arms):
            self.value(test, block)
            add(block, Kind.SELECT, node.type)
        else:
            for arm, inner in self._choose(node, block):
                self.value(arm, inner)
                add(inner, Kind.JUMP)

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
        if self._count_memory_call(called, node, block):
            return
        lanes = max((child.type.lanes for child in node.children[1:]), default=node.type.lanes)
        parts = builtins.find_parts(called, lanes)
        if parts is None:
            add(block, Kind.CALL, name=called)
            return
        number = next(
            (c.type for c in node.children[1:] if c.type.is_number), node.type
        )  # fmt: skip
        for kind, times, part_lanes in parts:
            plain = kind in (Kind.BARRIER, Kind.COPY)
            is_named = plain or part_lanes > 1 or kind in (Kind.SPECIAL, Kind.SPECIAL_NATIVE)
            named = called if is_named else ""
            operation = make_operation(
                kind,
                NumberClass.NONE if plain else number_class(number),
                0 if plain else number.bits,
                part_lanes,
                named,
            )
            block.operations[operation] += times

    def _count_memory_call(self, called: str, node: Node, block: Block) -> bool:
        """Count vloadN, vstoreN, atomics and copies; tell whether the call is one."""
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
            return True
        if builtins.is_atomic(called) and arguments:
            pointer = _last_pointer(arguments)
            target = pointer.type.target
            add(block, Kind.ATOMIC, target, name=called)
            size = target.bytes if target else 0
            self._add_site(node, pointer, block, is_store=True, size=size, name=called)
            return True
        return False

    def _subscript(self, node: Node, block: Block, use: OwnElement = OwnElement.LOAD) -> None:
        for child in node.children:
            self.value(child, block)
        add(block, Kind.ADDRESS, name=use.value if self._own_arrays.is_by_data(node) else "")

    def _address(self, node: Node, block: Block, use: OwnElement = OwnElement.LOAD) -> None:
        """Count what finding an object's address executes."""
        node = base_object(node)
        if node.kind == kinds.SUBSCRIPT:
            self._subscript(node, block, use)
        elif node.kind == kinds.UNARY:
            self.value(node.children[0], block)
        elif node.kind == kinds.MEMBER_REFERENCE:
            for child in node.children:
                if child.type.type_class is TypeClass.POINTER:
                    self.value(child, block)
                else:
                    self._address(child, block)
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
        kinds.CAST: _cast,
        kinds.UNARY: _unary,
        kinds.BINARY: _binary,
        kinds.COMPOUND_ASSIGNMENT: _compound_assignment,
        kinds.CONDITIONAL: _conditional,
        kinds.CALL: _call,
        kinds.SUBSCRIPT: _subscript,
    }


def _convert(child: Node, wanted: TypeInfo, block: Block) -> None:
    """Count a conversion; one to `bool` compares with zero, and constants need none."""
    if child.constant is not None:
        return
    if not is_bool(wanted):
        count_conversion(child.type, wanted, block)
    elif not _is_truth(strip(child)):
        add(block, Kind.COMPARE, child.type)


def _is_truth(node: Node) -> bool:
    """Tell whether a value is a condition already, which nothing need be compared with."""
    while node.kind == kinds.UNEXPOSED and len(node.children) == 1 and not is_bool(node.type):
        node = strip(node.children[0])
    if is_bool(node.type):
        return True
    if node.kind == kinds.UNARY:
        return node.operator == kinds.NOT
    logical = (kinds.LOGICAL_AND, kinds.LOGICAL_OR)
    return node.kind == kinds.BINARY and (
        node.operator in kinds.COMPARISONS or node.operator in logical
    )


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
