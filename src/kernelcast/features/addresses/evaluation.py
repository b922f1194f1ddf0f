"""Evaluates expressions as far as whole numbers and pointers go, and notes each access."""

from collections.abc import Callable

from kernelcast.features.addresses import arithmetic
from kernelcast.features.addresses.builtins import call_builtin, sign_select
from kernelcast.features.addresses.conversion import convert, scale
from kernelcast.features.addresses.objects import ObjectAccess
from kernelcast.features.addresses.state import Findings, State
from kernelcast.features.addresses.values import (
    ONE, Lanes, Opaque, Pointer, Value, as_condition, as_number, blur, merge,
)  # fmt: skip
from kernelcast.features.blocks import builtins as costs
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.lvalues import (
    Implicit, base_object, classify, is_object, lanes_of,
)  # fmt: skip
from kernelcast.features.syntax.tree import Node, strip
from kernelcast.features.syntax.types import TypeClass, TypeInfo
from kernelcast.records.conditions import Condition, Unknown, conjunction, disjunction, negation
from kernelcast.records.quasi_affine import Expr

Inline = Callable[[Node, list[Value], State], Value]
"""Runs a helper function's body with these arguments and gives what it returns."""


class Evaluator:
    """Evaluates expressions of one kernel.

    Parameters
    ----------
    findings : Findings
        Where accesses are noted.
    inline : callable
        Runs a helper function.
    """

    def __init__(self, findings: Findings, inline: Inline) -> None:
        self._findings = findings
        self._inline = inline
        self._objects = ObjectAccess(findings, self.value)
        self._handlers: dict[int, Callable[[Node, State], Value]] = {
            kinds.UNEXPOSED: self._unexposed,
            kinds.PARENTHESES: lambda node, state: self.value(node.children[0], state),
            kinds.CAST: self._cast,
            kinds.UNARY: self._unary,
            kinds.BINARY: self._binary,
            kinds.COMPOUND_ASSIGNMENT: self._compound_assignment,
            kinds.CONDITIONAL: self._conditional,
            kinds.CALL: self._call,
            kinds.COMPOUND_LITERAL: self._literal_vector,
            kinds.INITIALISER_LIST: self._literal_vector,
            kinds.DECLARATION_REFERENCE: self._reference,
        }

    def value(self, node: Node, state: State) -> Value:
        """Evaluate an expression; its side effects change the state."""
        self._findings.spend()
        self._findings.note_reached(node, state)
        handler = self._handlers.get(node.kind)
        if handler is not None:
            return handler(node, state)
        constant = node.constant
        if constant is not None:
            return _constant(constant)
        return blur(*(self.value(child, state) for child in node.children))

    def condition(self, node: Node, state: State) -> Condition:
        """Evaluate an expression that decides a branch."""
        return as_condition(self.value(node, state))

    def declare(self, variable: Node, state: State) -> None:
        """Give a variable its initial value."""
        info = variable.type
        if info.type_class is TypeClass.ARRAY or info.space != "private":
            if variable.children and variable.children[-1].constant is None:
                self.value(variable.children[-1], state)
            return
        initial: Value = Opaque(reason=f"{variable.spelling} is not set")
        if variable.children and variable.children[-1].kind >= kinds.FIRST_EXPRESSION:
            initial = self.value(variable.children[-1], state)
        state.values[variable.key] = initial

    def _unexposed(self, node: Node, state: State) -> Value:
        if not node.children:
            return Opaque()
        child = node.children[0]
        step = classify(node)
        if step is Implicit.LOAD:
            return self._objects.load(child, state)
        if step is Implicit.DECAY:
            return self._objects.place(child, state)
        inner = self.value(child, state)
        if step is Implicit.LANES:
            return pick_lanes(inner, lanes_of(node), node.type)
        return convert(inner, child.type, node.type, is_explicit=False)

    def _cast(self, node: Node, state: State) -> Value:
        if not node.children:
            return Opaque()
        child = node.children[-1]
        return convert(self.value(child, state), child.type, node.type, is_explicit=True)

    def _reference(self, node: Node, state: State) -> Value:
        constant = node.constant
        return Opaque() if constant is None else _constant(constant)

    def _unary(self, node: Node, state: State) -> Value:
        child, operator = node.children[0], node.operator
        if operator == kinds.ADDRESS_OF:
            return self._objects.place(child, state)
        if operator in kinds.STEPS:
            before = self._objects.load(child, state)
            step = Expr.constant(kinds.STEPS[operator])
            after = self._add(before, step, kinds.ADD, child.type)
            self._objects.store(child, after, state)
            is_post = operator in (kinds.POST_INCREMENT, kinds.POST_DECREMENT)
            return before if is_post else after
        inner = self.value(child, state)
        if operator == kinds.NOT and not node.type.is_vector:
            return negation(as_condition(inner))
        if operator == kinds.PLUS:
            return inner
        return _negate(inner, node)

    def _binary(self, node: Node, state: State) -> Value:
        left, right = node.children
        operator = node.operator
        if operator == kinds.ASSIGN:
            result = self.value(right, state)
            self._objects.store(left, result, state)
            return result
        if operator in (kinds.LOGICAL_AND, kinds.LOGICAL_OR) and not node.type.is_vector:
            return self._logical(left, right, state, is_and=operator == kinds.LOGICAL_AND)
        if operator == kinds.COMMA:
            self.value(left, state)
            return self.value(right, state)
        one, two = self.value(left, state), self.value(right, state)
        info = left.type if operator in kinds.COMPARISONS else node.type
        return self._add(one, two, operator, info)

    def _logical(self, left: Node, right: Node, state: State, *, is_and: bool) -> Condition:
        first = self.condition(left, state)
        inner = state.copy(first if is_and else negation(first))
        second = self.condition(right, inner)
        state.values = inner.values
        return conjunction(first, second) if is_and else disjunction(first, second)

    def _add(self, one: Value, two: Value, operator: int, info: TypeInfo) -> Value:
        """Apply a binary operator to numbers, vectors or pointers."""
        if isinstance(one, Pointer) or isinstance(two, Pointer):
            return _move(one, two, operator, info)
        if info.type_class is TypeClass.FLOAT:
            return _blur_result(one, two, operator)
        if isinstance(one, Lanes) or isinstance(two, Lanes):
            return _by_lanes(self._add, one, two, operator, info)
        known = isinstance(one, Expr) and self._is_non_negative(one)
        return arithmetic.combine(operator, one, two, info, is_known=known)

    def _is_non_negative(self, expr: Expr) -> bool:
        names = self._findings.unsigned_scalars
        return all(
            factor > 0 and all(getattr(atom, "name", None) in names or
                               arithmetic.is_non_negative(Expr.atom(atom)) for atom in monomial)
            for monomial, factor in expr.terms
        )  # fmt: skip

    def _compound_assignment(self, node: Node, state: State) -> Value:
        left, right = node.children
        amount = self.value(right, state)
        before = self._objects.load(left, state)
        operator = kinds.OPERATOR_OF_ASSIGNMENT[node.operator]
        after = self._add(before, amount, operator, left.type)
        self._objects.store(left, after, state)
        return after

    def _conditional(self, node: Node, state: State) -> Value:
        test, then, otherwise = node.children[0], node.children[-2], node.children[-1]
        if test.type.is_vector:
            chosen, one, two = (self.value(child, state) for child in (test, then, otherwise))
            return sign_select(chosen, one, two)
        condition = self.condition(test, state)
        sides = (state.copy(condition), state.copy(negation(condition)))
        one, two = self.value(then, sides[0]), self.value(otherwise, sides[1])
        if sides[0].values != sides[1].values:
            for key, value in sides[0].values.items():
                other = sides[1].values.get(key, value)
                state.values[key] = merge(condition, value, other)
        else:
            state.values = sides[0].values
        return merge(condition, one, two)

    def _call(self, node: Node, state: State) -> Value:
        name = node.spelling
        arguments = [self.value(child, state) for child in node.children[1:]]
        definition = self._findings.tree.definition_of(node)
        if definition is not None:
            return self._inline(definition, arguments, state)
        access = costs.find_vector_access(name)
        if access is not None:
            return self._vector_access(node, arguments, state, access)
        if costs.is_atomic(name):
            place = next((one for one in arguments if isinstance(one, Pointer)), arguments[0]
                         if arguments else Opaque())  # fmt: skip
            self._findings.record(node, place, state, is_store=True)
            return Opaque(frozenset({place.memory.name} if isinstance(place, Pointer) else ()))
        self._objects.forget_targets(arguments, state)
        return call_builtin(name, arguments, node.type)

    def _vector_access(
        self, node: Node, arguments: list[Value], state: State, access: tuple[bool, int, bool]
    ) -> Value:
        """Note a vloadN or vstoreN: element `index * lanes` of the pointer (OpenCL C 6.13.7)."""
        is_store, lanes, is_half = access
        index, pointer = arguments[-2], arguments[-1]
        if is_store and not isinstance(pointer, Pointer) and len(arguments) > 2:
            index, pointer = arguments[1], arguments[2]
        element = _pointed_bits(node) // 8 if not is_half else 2
        # Three lanes are stored packed by vload3 and vstore3, four apart by the aligned ones.
        apart = 4 if lanes == 3 and "a_half" in node.spelling else lanes
        place = _move(pointer, scale(index, apart), kinds.ADD, _array_of(element))
        self._findings.record(node, place, state, is_store=is_store)
        return Opaque(frozenset({place.memory.name} if isinstance(place, Pointer) else ()))

    def _literal_vector(self, node: Node, state: State) -> Value:
        parts: list[Value] = []
        for child in node.children:
            value = self.value(child, state)
            parts.extend(value.lanes if isinstance(value, Lanes) else
                         (value,) * max(1, child.type.lanes))  # fmt: skip
        if len(parts) == 1 and not node.type.is_vector:
            return parts[0]
        if len(parts) == 1:
            parts *= node.type.lanes
        return Lanes(tuple(parts)) if node.type.is_integer else blur(*parts)


def pick_lanes(value: Value, lanes: tuple[int, ...] | None, info: TypeInfo) -> Value:
    """Take lanes out of a vector."""
    if not isinstance(value, Lanes):
        return blur(value)
    if lanes is None or max(lanes, default=0) >= len(value.lanes):
        return blur(value, reason="lanes within a macro are not read")
    taken = tuple(value.lanes[lane] for lane in lanes)
    return taken[0] if len(taken) == 1 and not info.is_vector else Lanes(taken)


def _constant(number: float) -> Value:
    if isinstance(number, int):
        return Expr.constant(number)
    return Opaque(reason="a floating-point number")


def _move(one: Value, two: Value, operator: int, info: TypeInfo) -> Value:
    """Add a number of elements to a pointer, or compare or subtract pointers."""
    if operator in kinds.COMPARISONS:
        return Unknown(())
    if not isinstance(one, Pointer):
        one, two = two, one
    if not isinstance(one, Pointer) or isinstance(two, Pointer):
        return blur(one, two, reason="a difference of pointers")
    size = info.target.bytes if info.target is not None else 1
    distance = scale(as_number(two), max(1, size))
    if operator == kinds.SUBTRACT:
        distance = scale(distance, -1)
    if isinstance(one.offset, Expr) and isinstance(distance, Expr):
        return Pointer(one.memory, one.offset + distance)
    return Pointer(one.memory, blur(one.offset, distance))


def _blur_result(one: Value, two: Value, operator: int) -> Value:
    if operator in kinds.COMPARISONS:
        return Unknown(tuple(sorted(blur(one, two).sources)))
    return blur(one, two, reason="computed in floating point")


def _by_lanes(
    apply: Callable[[Value, Value, int, TypeInfo], Value],
    one: Value, two: Value, operator: int, info: TypeInfo,
) -> Value:  # fmt: skip
    count = max(len(each.lanes) for each in (one, two) if isinstance(each, Lanes))
    spread = [each.lanes if isinstance(each, Lanes) else (each,) * count for each in (one, two)]
    if len(spread[0]) != len(spread[1]):
        return blur(one, two)
    return Lanes(tuple(apply(a, b, operator, info) for a, b in zip(*spread, strict=True)))


def _negate(inner: Value, node: Node) -> Value:
    if isinstance(inner, Lanes):
        return Lanes(tuple(_negate(lane, node) for lane in inner.lanes))
    number = as_number(inner)
    if isinstance(number, Opaque) or not node.type.is_integer:
        return blur(inner)
    return -number if node.operator == kinds.MINUS else -number - ONE


def _pointed_bits(call: Node) -> int:
    """Give the width of the numbers that vloadN or vstoreN moves."""
    if not call.spelling.startswith("vstore"):
        return call.type.bits
    return call.children[1].type.bits if len(call.children) > 1 else 0


def _array_of(size_bytes: int) -> TypeInfo:
    element = TypeInfo(name="", type_class=TypeClass.OTHER, bytes=size_bytes)
    return TypeInfo(name="", type_class=TypeClass.POINTER, target=element)


