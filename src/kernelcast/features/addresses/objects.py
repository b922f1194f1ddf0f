"""Objects in memory: where they are, what reading and writing them does."""

from collections.abc import Callable, Sequence

from kernelcast.features.addresses.conversion import convert, scale
from kernelcast.features.addresses.state import Findings, State
from kernelcast.features.addresses.values import (
    ZERO, Lanes, Memory, Opaque, Pointer, Value, as_number, blur,
)  # fmt: skip
from kernelcast.features.syntax import bindings as clang
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.lvalues import base_object, lanes_of
from kernelcast.features.syntax.tree import Node, strip
from kernelcast.features.syntax.types import TypeClass
from kernelcast.records.operations import MemorySpace
from kernelcast.records.quasi_affine import Expr, Symbol, SymbolKind

Evaluate = Callable[[Node, State], Value]


class ObjectAccess:
    """Loads, stores and addresses of objects.

    Parameters
    ----------
    findings : Findings
        Where accesses are noted.
    evaluate : callable
        Evaluates indices and pointers.
    """

    def __init__(self, findings: Findings, evaluate: Evaluate) -> None:
        self._findings = findings
        self._evaluate = evaluate

    def place(self, node: Node, state: State) -> Value:
        """Give a pointer to an object."""
        node = base_object(node)
        if node.kind == kinds.DECLARATION_REFERENCE:
            return _place_of_variable(node)
        if node.kind == kinds.SUBSCRIPT:
            return self._element(node, state)
        if node.kind == kinds.UNARY and node.operator == kinds.DEREFERENCE:
            return self._evaluate(node.children[0], state)
        if node.kind == kinds.MEMBER_REFERENCE and node.children:
            return self._member(node, state)
        if node.kind == kinds.STRING:
            return Pointer(Memory("string literal", MemorySpace.CONSTANT), ZERO)
        return blur(self._evaluate(node, state), reason="no object of the kernel's")

    def load(self, node: Node, state: State) -> Value:
        """Read an object."""
        base = base_object(node)
        if base.kind == kinds.DECLARATION_REFERENCE and base.type.space == "private":
            return self._read_variable(node, base, state)
        scalar = self._scalar_member(base, state)
        if scalar is not None:
            return scalar
        place = self.place(base, state)
        self._findings.record(base, place, state, is_store=False)
        if isinstance(place, Pointer):
            if place.memory.variable:
                return state.values.get(place.memory.variable, Opaque())
            constant = self._constant_variable(base)
            return Opaque(frozenset({place.memory.name})) if constant is None else constant
        return blur(place)

    def store(self, node: Node, value: Value, state: State) -> None:
        """Write an object."""
        base = base_object(node)
        if base.kind == kinds.DECLARATION_REFERENCE and base.type.space == "private":
            key = base.referenced_key
            if strip(node).kind == kinds.UNEXPOSED:
                value = _replace_lanes(state.values.get(key), strip(node), value, base)
            elif base.type.is_integer and not base.type.is_vector and isinstance(value, Lanes):
                value = blur(value)
            state.values[key] = value
            return
        if strip(node).kind == kinds.UNEXPOSED:
            self._findings.record(base, self.place(base, state), state, is_store=False)
        place = self.place(base, state)
        self._findings.record(base, place, state, is_store=True)
        if isinstance(place, Pointer) and place.memory.variable:
            is_whole = place.offset == ZERO
            reason = "a part of a variable was written"
            state.values[place.memory.variable] = value if is_whole else Opaque(reason=reason)

    def forget_targets(self, arguments: Sequence[Value], state: State) -> None:
        """Forget variables whose address a builtin function was given: it may write them."""
        for argument in arguments:
            if isinstance(argument, Pointer) and argument.memory.variable:
                reason = f"{argument.memory.name} is set by a function"
                state.values[argument.memory.variable] = Opaque(reason=reason)

    def _read_variable(self, node: Node, base: Node, state: State) -> Value:
        value = state.values.get(base.referenced_key)
        if value is None:
            return Opaque(reason=f"{base.spelling} is not followed")
        if node is base or strip(node).kind != kinds.UNEXPOSED:
            return value
        lanes = lanes_of(strip(node))
        if not isinstance(value, Lanes) or lanes is None or max(lanes) >= len(value.lanes):
            return blur(value, reason="lanes of a vector that is not followed")
        taken = tuple(value.lanes[lane] for lane in lanes)
        return taken[0] if len(taken) == 1 else Lanes(taken)

    def _element(self, node: Node, state: State) -> Value:
        array, index = (self._evaluate(child, state) for child in node.children)
        if not isinstance(array, Pointer):
            if isinstance(index, Pointer):
                array, index = index, array
            else:
                return blur(array, index, reason="a pointer that is not followed")
        distance = scale(as_number(index), max(1, node.type.bytes))
        if isinstance(array.offset, Expr) and isinstance(distance, Expr):
            return Pointer(array.memory, array.offset + distance)
        return Pointer(array.memory, blur(array.offset, distance))

    def _member(self, node: Node, state: State) -> Value:
        child = node.children[0]
        is_pointer = child.type.type_class is TypeClass.POINTER
        place = self._evaluate(child, state) if is_pointer else self.place(child, state)
        offset_bits = clang.field_offset_bits(clang.cursor_referenced(node.cursor))
        if not isinstance(place, Pointer) or not isinstance(place.offset, Expr) or offset_bits < 0:
            return place
        return Pointer(place.memory, place.offset + offset_bits // 8)

    def _scalar_member(self, base: Node, state: State) -> Value | None:
        """Give the symbol of a number in a structure that was passed by value."""
        if base.kind != kinds.MEMBER_REFERENCE or not base.children or not base.type.is_integer:
            return None
        owner = base_object(base.children[0])
        if owner.kind != kinds.DECLARATION_REFERENCE or base.type.is_vector:
            return None
        held = state.values.get(owner.referenced_key)
        if not isinstance(held, Pointer) or held.memory.space is not MemorySpace.PRIVATE:
            return None
        name = f"{held.memory.name}.{base.spelling}"
        return Expr.symbol(Symbol(SymbolKind.SCALAR, name))

    def _constant_variable(self, base: Node) -> Value | None:
        """Give the value of a constant at file scope."""
        if base.kind != kinds.DECLARATION_REFERENCE or not base.type.is_integer:
            return None
        variable = self._findings.tree.variables.get(base.referenced_key)
        if variable is None or not variable.children or variable.type.space != "constant":
            return None
        number = variable.children[-1].constant
        return Expr.constant(number) if isinstance(number, int) else None


def _place_of_variable(node: Node) -> Value:
    info = node.type
    if info.type_class is TypeClass.FUNCTION:
        return Opaque(reason="a function")
    space = MemorySpace(info.space)
    is_followed = space is MemorySpace.PRIVATE and info.type_class is not TypeClass.ARRAY
    return Pointer(
        Memory(node.spelling, space, node.referenced_key if is_followed else 0), ZERO
    )


def _replace_lanes(old: Value | None, node: Node, value: Value, base: Node) -> Value:
    """Give a vector with some of its lanes written."""
    lanes = lanes_of(node)
    if not isinstance(old, Lanes):
        if not base.type.is_integer:
            return blur(*(one for one in (old, value) if one is not None))
        old = Lanes((Opaque(reason=f"{base.spelling} is not set"),) * base.type.lanes)
    if lanes is None:
        return blur(old, value)
    new = value.lanes if isinstance(value, Lanes) else (value,) * len(lanes)
    changed = dict(zip(lanes, new, strict=False))
    return Lanes(tuple(changed.get(lane, kept) for lane, kept in enumerate(old.lanes)))


