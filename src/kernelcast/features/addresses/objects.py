"""Objects in memory: where they are, what reading and writing them does."""

from collections.abc import Callable, Sequence

from kernelcast.expressions import Expr, Symbol, SymbolKind
from kernelcast.features.addresses.cells import (
    is_aggregate,
    name_given,
    read_part,
    write_part,
)  # fmt: skip
from kernelcast.features.addresses.conversion import scale
from kernelcast.features.addresses.places import move_place
from kernelcast.features.addresses.state import Findings, State
from kernelcast.features.addresses.values import (
    PLACES,
    ZERO,
    Cells,
    Choice,
    Lanes,
    Memory,
    Opaque,
    Pointer,
    Value,
    as_number,
    blur,
    map_place,
    places_of,
)  # fmt: skip
from kernelcast.features.syntax import bindings as clang
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.lvalues import base_object, lanes_of
from kernelcast.features.syntax.tree import Node, strip
from kernelcast.features.syntax.types import TypeClass, TypeInfo
from kernelcast.records.operations import MemorySpace

Evaluate = Callable[[Node, State], Value]


class ObjectAccess:
    """Loads, stores and addresses of objects.

    Parameters
    ----------
    evaluate : callable
        Evaluates indices and pointers.
    """

    def __init__(self, findings: Findings, evaluate: Evaluate) -> None:
        self._findings = findings
        self._evaluate = evaluate
        self._variables: dict[int, Value] = {}

    def place(self, node: Node, state: State) -> Value:
        """Give a pointer to an object."""
        node = base_object(node)
        if node.kind == kinds.DECLARATION_REFERENCE:
            known = self._variables.get(node.key)
            if known is None:
                known = self._variables[node.key] = _place_of_variable(node)
            return known
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
        base = node if node.kind == kinds.DECLARATION_REFERENCE else base_object(node)
        if base.kind == kinds.DECLARATION_REFERENCE and base.type.space == "private":
            value = state.values.get(base.referenced_key)
            if value is None:
                value = self._read_shared(base)
            if base is node:
                return value
        elif base.kind == kinds.COMPOUND_LITERAL:
            value = self._evaluate(base, state)
        else:
            place = self.place(base, state)
            self._findings.record(base, place, state, is_store=False)
            value = self._read(base, place, state)
        return _pick(value, node, base)

    def store(self, node: Node, value: Value, state: State) -> None:
        """Write an object."""
        base = base_object(node)
        has_lanes = base is not strip(node)
        if base.kind == kinds.DECLARATION_REFERENCE and base.type.space == "private":
            key = base.referenced_key
            if has_lanes:
                value = _replace_lanes(state.values.get(key), strip(node), value, base)
            state.values[key] = _spread(value, base.type)
            return
        place = self.place(base, state)
        if has_lanes:
            self._findings.record(base, place, state, is_store=False)
            old = self._read(base, place, state)
            value = _replace_lanes(old, strip(node), value, base)
        self._findings.record(base, place, state, is_store=True)
        self.write(place, base.type, value, state)

    def write(self, place: Value, info: TypeInfo, value: Value, state: State) -> None:
        """Change the variables that a place belongs to."""
        if not isinstance(place, PLACES):
            if info.space in ("private", "generic"):
                _forget_all(state, value)
            return
        several = isinstance(place, Choice)
        for _, one in places_of(place):
            if isinstance(one, Pointer) and one.memory.variable:
                key = one.memory.variable
                old = state.values.get(key)
                new = write_part(old, one, info, _spread(value, info))
                if several and old is not None:
                    new = blur(old, new, reason="written through one of several pointers")
                state.values[key] = new

    def forget_targets(self, arguments: Sequence[Value], state: State) -> None:
        """Forget variables whose address a builtin function was given: it may write them."""
        for argument in arguments:
            for _, place in places_of(argument):
                if isinstance(place, Pointer) and place.memory.variable:
                    reason = f"{place.memory.name} is set by a function"
                    held = state.values.get(place.memory.variable)
                    blurred = blur(*arguments, reason=reason)
                    state.values[place.memory.variable] = (
                        Cells({}, blurred) if isinstance(held, Cells) else blurred
                    )

    def _read(self, base: Node, place: Value, state: State) -> Value:
        """Give the value at a place."""
        if isinstance(place, Choice):
            return blur(*(self._read(base, one, state) for _, one in places_of(place)))
        if not isinstance(place, Pointer):
            return blur(place)
        key = place.memory.variable
        if key:
            content = state.values.get(key)
            if content is None:
                return Opaque(reason=f"{place.memory.name} is not followed")
            value = read_part(content, place, base.type, _path_of(base))
            self._note_sign(value, base.type)
            return value
        constant = self._constant_variable(base)
        if constant is not None:
            return constant
        return self._content(base.type, place) or Opaque(frozenset({place.memory.name}))

    def _content(self, info: TypeInfo, place: Pointer) -> Expr | None:
        """Give the symbol of a whole number in a buffer whose content is known."""
        if not info.is_integer or info.is_vector or not isinstance(place.offset, Expr):
            return None
        return self._findings.read_content(place.memory.name, place.offset, info)

    def _note_sign(self, value: Value, info: TypeInfo) -> None:
        """Note members of arguments that cannot be negative."""
        atom = value.sole_atom if isinstance(value, Expr) else None
        is_unsigned = info.type_class is TypeClass.UNSIGNED
        if is_unsigned and isinstance(atom, Symbol) and atom.kind is SymbolKind.SCALAR:
            self._findings.largest_unsigned[atom.name] = (1 << info.bits) - 1

    def _element(self, node: Node, state: State) -> Value:
        left, right = node.children
        array, index = self._evaluate(left, state), self._evaluate(right, state)
        if not isinstance(array, PLACES):
            array, index = index, array
        if not isinstance(array, PLACES):
            return blur(array, index, reason="a pointer that is not followed")
        if node.type.type_class is TypeClass.ARRAY and node.unit.placeholders:
            size = Opaque(reason="the size of an array depends on a name that is not defined")
            return map_place(array, lambda one: Pointer(one.memory, size))
        return move_place(array, scale(as_number(index), max(1, node.type.bytes)))

    def _member(self, node: Node, state: State) -> Value:
        child = node.children[0]
        is_pointer = child.type.type_class is TypeClass.POINTER
        place = self._evaluate(child, state) if is_pointer else self.place(child, state)
        offset_bits = clang.field_offset_bits(node.referenced)
        if not isinstance(place, PLACES):
            return place
        if offset_bits < 0:
            return blur(place, reason="a member of unknown place")
        return move_place(place, Expr.constant(offset_bits // 8))

    def _constant_variable(self, base: Node) -> Value | None:
        """Give the value of a constant at file scope."""
        if base.kind != kinds.DECLARATION_REFERENCE or not base.type.is_integer:
            return None
        variable = self._findings.tree.variables.get(base.referenced_key)
        if variable is None or not variable.children:
            return None
        if not (variable.type.space == "constant" or variable.type.is_const):
            return None
        number = variable.children[-1].constant
        return Expr.constant(number) if isinstance(number, int) else None

    def _read_shared(self, base: Node) -> Value:
        """Read a variable that no statement of the kernel declares."""
        constant = self._constant_variable(base)
        if constant is not None:
            return constant
        return Opaque(reason=f"{base.spelling} is not followed")


def give_argument(name: str, info: TypeInfo) -> Value:
    """Give a kernel argument's value: a buffer, or a number that is known at launch."""
    if info.type_class is TypeClass.POINTER and info.target is not None:
        return Pointer(Memory(name, MemorySpace(info.target.space)), ZERO)
    if info.type_class is TypeClass.RECORD:
        return Cells({}, Opaque(reason="a member that is no number"), name)
    return name_given(name, info)


def _path_of(node: Node) -> str:
    """Give the members that an expression names: ``size.x`` of ``s.size.x`` or ``p->size.x``."""
    names: list[str] = []
    while node.kind == kinds.MEMBER_REFERENCE and node.children:
        names.append(node.spelling)
        child = node.children[0]
        if child.type.type_class is TypeClass.POINTER:
            break
        node = base_object(child)
    return ".".join(reversed(names))


def _place_of_variable(node: Node) -> Value:
    info = node.type
    if info.type_class is TypeClass.FUNCTION:
        return Opaque(reason="a function")
    space = MemorySpace(info.space)
    key = node.referenced_key if space is MemorySpace.PRIVATE else 0
    return Pointer(Memory(node.spelling, space, key), ZERO)


def _pick(value: Value, node: Node, base: Node) -> Value:
    """Take the lanes that an expression names, if it names some."""
    if node is base or strip(node).kind != kinds.UNEXPOSED:
        return value
    lanes = lanes_of(strip(node))
    if not isinstance(value, Lanes) or lanes is None or max(lanes) >= len(value.lanes):
        return blur(value, reason="lanes of a vector that is not followed")
    taken = tuple(value.lanes[lane] for lane in lanes)
    return taken[0] if len(taken) == 1 else Lanes(taken)


def _spread(value: Value, info: TypeInfo) -> Value:
    """Make a value fit the variable that it is written to."""
    if info.is_vector and info.is_integer and isinstance(value, Expr):
        return Lanes((value,) * info.lanes)
    if is_aggregate(info) and isinstance(value, Opaque):
        return Cells({}, value)
    if not info.is_vector and isinstance(value, Lanes):
        return blur(value)
    return value


def _forget_all(state: State, value: Value) -> None:
    """Forget what a write through an unknown pointer may change: all that was pointed to."""
    pointed = {
        place.memory.variable
        for held in state.values.values()
        for _, place in places_of(held)
        if isinstance(place, Pointer)
    }
    for key, old in list(state.values.items()):
        if key not in pointed and not isinstance(old, Cells):
            continue
        blurred = blur(old, value, reason="written through a pointer that is not followed")
        state.values[key] = Cells({}, blurred) if isinstance(old, Cells) else blurred


def _replace_lanes(old: Value | None, node: Node, value: Value, base: Node) -> Value:
    """Give a vector with some of its lanes written."""
    lanes = lanes_of(node)
    if not isinstance(old, Lanes):
        if not base.type.is_integer:
            return blur(*(one for one in (old, value) if one is not None))
        kept = old if isinstance(old, Opaque) else Opaque(is_unset=True)
        old = Lanes((kept,) * base.type.lanes)
    if lanes is None:
        return blur(old, value, reason="lanes within a macro are not read")
    new = value.lanes if isinstance(value, Lanes) else (value,) * len(lanes)
    changed = dict(zip(lanes, new, strict=False))
    return Lanes(tuple(changed.get(lane, kept) for lane, kept in enumerate(old.lanes)))
