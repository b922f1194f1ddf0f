"""Evaluates expressions as far as whole numbers and pointers go, and notes each access."""

from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar

from kernelcast.expressions import (
    Condition,
    Expr,
    Symbol,
    SymbolKind,
    Unknown,
    conjunction,
    disjunction,
    negation,
)
from kernelcast.features.addresses.arithmetic import Arithmetic
from kernelcast.features.addresses.builtins import call_builtin, sign_select
from kernelcast.features.addresses.cells import is_aggregate, lay_out, make_cells
from kernelcast.features.addresses.conversion import common_type, convert, narrow, scale
from kernelcast.features.addresses.objects import ObjectAccess
from kernelcast.features.addresses.places import combine_places, move_place, subtract_places
from kernelcast.features.addresses.state import Findings, State, TooLargeError, merge_values
from kernelcast.features.addresses.values import (
    ONE,
    PLACES,
    ZERO,
    Cells,
    Lanes,
    Opaque,
    Pointer,
    Value,
    as_condition,
    as_number,
    blur,
    merge,
    places_of,
)  # fmt: skip
from kernelcast.features.blocks import builtins as costs
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.kinds import Implicit
from kernelcast.features.syntax.lvalues import classify, lanes_of
from kernelcast.features.syntax.tree import Node
from kernelcast.features.syntax.types import TypeClass, TypeInfo
from kernelcast.records.operations import MemorySpace

_LARGEST_NAMED = (1 << 31) - 1
_FLOATING = Opaque(reason="a floating-point number")

Inline = Callable[[Node, list[Value], State], Value]
"""Runs a helper function's body with these arguments and gives what it returns."""


class Evaluator:
    """Evaluates expressions of one kernel.

    Parameters
    ----------
    inline : callable
        Runs a helper function.
    """

    def __init__(self, findings: Findings, inline: Inline) -> None:
        self._findings = findings
        self._inline = inline
        self._arithmetic = Arithmetic(findings.largest_unsigned)
        self.objects = ObjectAccess(findings, self.value)

    def value(self, node: Node, state: State) -> Value:
        """Evaluate an expression; its side effects change the state.

        Raises
        ------
        TooLargeError
            If that was one too many.
        """
        findings = self._findings
        findings.budget -= 1
        if findings.budget < 0:
            raise TooLargeError
        if findings.is_recording and node.key in findings.blocks.counter_of:
            findings.note_reached(node, state)
        handler = self._HANDLERS.get(node.kind)
        if handler is not None:
            return handler(self, node, state)
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
        has_value = variable.children and variable.children[-1].kind >= kinds.FIRST_EXPRESSION
        last = variable.children[-1] if has_value else None
        if last is not None and info.type_class is TypeClass.ARRAY:
            is_size = last.kind not in (kinds.INITIALISER_LIST, kinds.STRING)
            last = None if is_size else last
        initial: Value | None = None if last is None else self.value(last, state)
        if info.space != "private":
            return
        if initial is None:
            reason = f"{variable.spelling} is not set"
            unset = Opaque(reason=reason, is_unset=True)
            initial = make_cells(reason) if is_aggregate(info) else unset
        elif is_aggregate(info) and not isinstance(initial, Cells):
            initial = Cells({}, blur(initial))
        state.values[variable.key] = initial

    def _unexposed(self, node: Node, state: State) -> Value:
        if not node.children:
            return Opaque()
        child = node.children[0]
        step = node.implicit or classify(node)
        if step is Implicit.LOAD:
            return self.objects.load(child, state)
        if step is Implicit.DECAY:
            return self.objects.place(child, state)
        inner = self.value(child, state)
        if step is Implicit.LANES:
            return pick_lanes(inner, lanes_of(node), node.type)
        return convert(inner, child.type, node.type, is_explicit=False)

    def _parentheses(self, node: Node, state: State) -> Value:
        return self.value(node.children[0], state)

    def _cast(self, node: Node, state: State) -> Value:
        if not node.children:
            return Opaque()
        child = node.children[-1]
        return convert(self.value(child, state), child.type, node.type, is_explicit=True)

    def _reference(self, node: Node, state: State) -> Value:
        if node.is_placeholder:
            name = node.spelling
            self._findings.largest_unsigned[name] = _LARGEST_NAMED
            return Expr.symbol(Symbol(SymbolKind.SCALAR, name))
        constant = node.constant
        return Opaque() if constant is None else _constant(constant)

    def _unary(self, node: Node, state: State) -> Value:
        child, operator = node.children[0], node.operator
        if operator == kinds.ADDRESS_OF:
            return self.objects.place(child, state)
        if operator in kinds.STEPS:
            before = self.objects.load(child, state)
            step = Expr.constant(kinds.STEPS[operator])
            after = self.apply(kinds.ADD, before, step, child.type)
            if child.type.is_integer:
                after = narrow(after, child.type, is_explicit=False)
            self.objects.store(child, after, state)
            is_post = operator in (kinds.POST_INCREMENT, kinds.POST_DECREMENT)
            return before if is_post else after
        inner = self.value(child, state)
        if operator == kinds.NOT:
            return blur(inner) if node.type.is_vector else negation(as_condition(inner))
        if operator in (kinds.MINUS, kinds.COMPLEMENT):
            return _negate(inner, node)
        return inner if operator == kinds.PLUS else blur(inner)

    def _binary(self, node: Node, state: State) -> Value:
        left, right = node.children
        operator = node.operator
        if operator == kinds.ASSIGN:
            result = self.value(right, state)
            self.objects.store(left, result, state)
            return result
        if operator in (kinds.LOGICAL_AND, kinds.LOGICAL_OR) and not node.type.is_vector:
            return self._logical(left, right, state, is_and=operator == kinds.LOGICAL_AND)
        if operator == kinds.COMMA:
            self.value(left, state)
            return self.value(right, state)
        one, two = self.value(left, state), self.value(right, state)
        if operator == kinds.SUBTRACT and isinstance(one, Pointer) and isinstance(two, Pointer):
            size = left.type.target.bytes if left.type.target else 0
            return subtract_places(one, two, size)
        info = left.type if operator in kinds.COMPARISONS else node.type
        return self.apply(operator, one, two, info)

    def _logical(self, left: Node, right: Node, state: State, *, is_and: bool) -> Condition:
        first = self.condition(left, state)
        inner = state.copy(first if is_and else negation(first))
        second = self.condition(right, inner)
        self._join_sides(state, first if is_and else negation(first), inner, state)
        return conjunction(first, second) if is_and else disjunction(first, second)

    @staticmethod
    def _join_sides(state: State, condition: Condition, then: State, otherwise: State) -> None:
        state.values = merge_values(
            (condition, negation(condition)), (then.values, otherwise.values)
        )

    def apply(self, operator: int, one: Value, two: Value, info: TypeInfo) -> Value:
        """Apply a binary operator to numbers, vectors or pointers of a type."""
        is_float = info.type_class is TypeClass.FLOAT
        if isinstance(one, Expr) and isinstance(two, Expr) and not is_float:  # by far the most
            return self._arithmetic.combine(operator, one, two, info)
        if isinstance(one, PLACES) or isinstance(two, PLACES):
            return combine_places(operator, one, two, info, self._arithmetic)
        if is_float:
            found = blur(one, two, reason="computed in floating point")
            is_comparison = operator in kinds.COMPARISONS
            return Unknown(tuple(sorted(found.sources))) if is_comparison else found
        if isinstance(one, Lanes) or isinstance(two, Lanes):
            return self._by_lanes(operator, one, two, info)
        return self._arithmetic.combine(operator, one, two, info)

    def _by_lanes(self, operator: int, one: Value, two: Value, info: TypeInfo) -> Value:
        count = max(len(each.lanes) for each in (one, two) if isinstance(each, Lanes))
        spread = [each.lanes if isinstance(each, Lanes) else (each,) * count for each in (one, two)]
        if len(spread[0]) != len(spread[1]):
            return blur(one, two)
        lanes = [self.apply(operator, a, b, info) for a, b in zip(*spread, strict=True)]
        if operator in kinds.COMPARISONS:
            minus_one = Expr.constant(-1)
            lanes = [merge(as_condition(lane), minus_one, ZERO) for lane in lanes]
        return Lanes(tuple(lanes))

    def _compound_assignment(self, node: Node, state: State) -> Value:
        left, right = node.children
        amount = self.value(right, state)
        before = self.objects.load(left, state)
        operator = kinds.OPERATOR_OF_ASSIGNMENT[node.operator]
        after = self.apply(operator, before, amount, common_type(operator, left.type, right.type))
        if left.type.is_integer:
            after = convert(after, left.type, left.type, is_explicit=False)
        self.objects.store(left, after, state)
        return after

    def _conditional(self, node: Node, state: State) -> Value:
        test, then, otherwise = node.children[0], node.children[-2], node.children[-1]
        if test.type.is_vector:
            chosen, one, two = (self.value(child, state) for child in (test, then, otherwise))
            return sign_select(chosen, one, two)
        known = test.constant
        if known is not None:
            return self.value(then if known else otherwise, state)
        condition = self.condition(test, state)
        sides = (state.copy(condition), state.copy(negation(condition)))
        one, two = self.value(then, sides[0]), self.value(otherwise, sides[1])
        self._join_sides(state, condition, *sides)
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
            place = next((one for one in arguments if isinstance(one, PLACES)),
                         arguments[0] if arguments else Opaque())  # fmt: skip
            self._findings.record(node, place, state, is_store=True)
            return _data_at(place)
        if "async_work_group" in name:
            self._findings.note_gap(node, f"the memory that {name} copies is not described")
        elif any(map(_may_share, node.children[1:], arguments)):
            self._findings.note_gap(node, f"the memory that {name} writes is not described")
        self.objects.forget_targets(arguments, state)
        return call_builtin(name, arguments, node.type, self._arithmetic)

    def _vector_access(
        self, node: Node, arguments: list[Value], state: State, access: tuple[bool, int, bool]
    ) -> Value:
        """Note a vloadN or vstoreN: element `index * lanes` of the pointer (OpenCL C 6.13.7)."""
        is_store, lanes, is_half = access
        index, pointer = arguments[-2], arguments[-1]
        if is_store and not isinstance(pointer, PLACES) and len(arguments) > 2:
            index, pointer = arguments[1], arguments[2]
        element = _pointed_bits(node) // 8 if not is_half else 2
        # Three lanes are stored packed by vload3 and vstore3, four apart by the aligned ones.
        apart = 4 if lanes == 3 and "a_half" in node.spelling else lanes
        place = move_place(pointer, scale(index, apart * element))
        self._findings.record(node, place, state, is_store=is_store)
        if is_store:
            self.objects.forget_targets([place, *arguments[:1]], state)
        return _data_at(place)

    def _literal(self, node: Node, state: State) -> Value:
        """Evaluate the parts of a vector, a structure or an array."""
        values = [self.value(child, state) for child in node.children]
        if node.kind == kinds.COMPOUND_LITERAL and len(values) == 1:
            return values[0]
        if is_aggregate(node.type):
            return lay_out(node, values)
        parts: list[Value] = []
        for child, value in zip(node.children, values, strict=True):
            parts.extend(value.lanes if isinstance(value, Lanes) else
                         (value,) * max(1, child.type.lanes))  # fmt: skip
        if len(parts) == 1 and not node.type.is_vector:
            return parts[0]
        if len(parts) == 1:
            parts *= node.type.lanes
        return Lanes(tuple(parts)) if node.type.is_integer else blur(*parts)

    _HANDLERS: ClassVar[dict[int, Callable[["Evaluator", Node, State], Value]]] = {
        kinds.UNEXPOSED: _unexposed,
        kinds.PARENTHESES: _parentheses,
        kinds.CAST: _cast,
        kinds.UNARY: _unary,
        kinds.BINARY: _binary,
        kinds.COMPOUND_ASSIGNMENT: _compound_assignment,
        kinds.CONDITIONAL: _conditional,
        kinds.CALL: _call,
        kinds.COMPOUND_LITERAL: _literal,
        kinds.INITIALISER_LIST: _literal,
        kinds.DECLARATION_REFERENCE: _reference,
    }


def _may_share(argument: Node, value: Value) -> bool:
    """Tell whether a builtin like `modf` may write to memory that other work-items see."""
    target = argument.type.target if argument.type.type_class is TypeClass.POINTER else None
    return target is not None and not target.is_const and any(
        not isinstance(one, Pointer) or one.memory.space is not MemorySpace.PRIVATE
        for _, one in places_of(value)
    )  # fmt: skip


def _data_at(place: Value) -> Opaque:
    """Give what is known of a value in memory: where it was loaded from."""
    names = (one.memory.name for _, one in places_of(place) if isinstance(one, Pointer))
    return Opaque(frozenset(names))


def pick_lanes(value: Value, lanes: tuple[int, ...] | None, info: TypeInfo) -> Value:
    """Take lanes out of a vector."""
    if not isinstance(value, Lanes):
        return blur(value)
    if lanes is None or max(lanes, default=0) >= len(value.lanes):
        return blur(value, reason="lanes within a macro are not read")
    taken = tuple(value.lanes[lane] for lane in lanes)
    return taken[0] if len(taken) == 1 and not info.is_vector else Lanes(taken)


def _constant(number: float) -> Value:
    return _whole(number) if isinstance(number, int) else _FLOATING


@lru_cache(maxsize=1024)
def _whole(number: int) -> Expr:
    return Expr.constant(number)


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
