"""The innermost loop's statements: accesses, operations, branches, and what waits for what."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from kernelcast.expressions import (
    FALSE,
    TRUE,
    Condition,
    Expr,
    Symbol,
    SymbolKind,
    conjunction,
    disjunction,
    equal,
    negation,
)
from kernelcast.expressions.loop_nest import NestArray
from kernelcast.features.blocks.builtins import find_parts
from kernelcast.features.loop_nest.arrays import read_element
from kernelcast.features.loop_nest.listing import Listing
from kernelcast.features.loop_nest.loops import Nest, flatten
from kernelcast.features.loop_nest.numbers import peel, read_comparison, read_whole_number
from kernelcast.features.loop_nest.tally import Place, Tally
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.tree import Node, strip
from kernelcast.features.syntax.types import TypeClass, TypeInfo
from kernelcast.records.errors import InputError
from kernelcast.records.operations import NumberClass, Operation
from kernelcast.records.operations import OperationKind as Kind

_ARITHMETIC = {
    kinds.ADD: Kind.ADD, kinds.SUBTRACT: Kind.ADD, kinds.MULTIPLY: Kind.MULTIPLY,
    kinds.DIVIDE: Kind.DIVIDE, kinds.REMAINDER: Kind.DIVIDE, kinds.SHIFT_LEFT: Kind.LOGIC,
    kinds.SHIFT_RIGHT: Kind.LOGIC, kinds.BIT_AND: Kind.LOGIC, kinds.BIT_OR: Kind.LOGIC,
    kinds.BIT_XOR: Kind.LOGIC, **dict.fromkeys(kinds.COMPARISONS, Kind.COMPARE),
}  # fmt: skip
_FUNCTIONS = {"fabs": Kind.LOGIC, "fma": Kind.FUSED}
Chain: TypeAlias = tuple[str, ...] | None
"""Operations since a value of the iteration before; None if the value has none of it."""
_Holder: TypeAlias = "Place | int"
"""An element, or a variable by the key of its declaration."""
_ORDERS = frozenset((kinds.LESS, kinds.LESS_EQUAL, kinds.GREATER, kinds.GREATER_EQUAL))
_EXPECTED = "the innermost loop may only hold assignments, if, else and continue"


@dataclass(slots=True)
class _State:
    """What is known at a place."""

    here: Condition
    held: set[Place]
    known: dict[int, Expr]
    chains: dict[_Holder, Chain]


@dataclass(slots=True)
class Body:
    """Reads statements one after the other."""

    listing: Listing
    """Where they stand."""
    nest: Nest
    """The loops around them."""
    arrays: dict[int, NestArray]
    """By the key of the declaration."""
    decisions: list[Symbol] = field(default_factory=list)
    """Conditions on data."""
    chains: dict[_Holder, Chain] = field(default_factory=dict)
    """By variable or element: how what it holds now came from the iteration before."""
    tally: Tally = field(init=False)
    _known: dict[int, Expr] = field(default_factory=dict)
    _carried: frozenset[_Holder] = frozenset()
    _declared: set[int] = field(default_factory=set)
    _assigned: dict[int, TypeInfo] = field(default_factory=dict)
    """Variables that were assigned since the branch that is read began."""

    def __post_init__(self) -> None:
        self.tally = Tally(self.listing)

    def read(self) -> None:
        """Read all statements.

        They are read twice: which values an iteration hands on is known after the first time.
        """
        first = Body(self.listing, self.nest, self.arrays)
        first._read_once()
        self._carried = first._find_handed_on()
        self._read_once()

    @property
    def chain(self) -> tuple[str, ...]:
        """The longest chain from what one iteration leaves to what the next one needs."""
        ends = [self.chains.get(one) for one in self._carried]
        return max((one for one in ends if one), key=len, default=())

    def _read_once(self) -> None:
        self._known = dict(self.nest.variables)
        for condition, is_met in self.nest.guards:
            met, _ = self._condition(condition)
            if self.decisions:
                raise self.listing.refusal(
                    condition,
                    f"{condition.text()} between loops depends on data; expected a comparison of "
                    "sums of loop variables times constants, or the condition in the innermost "
                    "loop",
                )
            met = met if is_met else negation(met)
            self.tally.here = conjunction(self.tally.here, met)
        self._run(self.nest.body)

    def _find_handed_on(self) -> frozenset[_Holder]:
        """Give variables and elements whose value the next iteration may read."""
        inner = self.nest.loops[-1]
        ahead = {Symbol(SymbolKind.LOOP, inner.name): Expr.symbol(
            Symbol(SymbolKind.LOOP, inner.name)) - inner.step}  # fmt: skip
        read = {*self.tally.loads, *self.tally.stores}
        found: set[_Holder] = {one for one in self.chains if isinstance(one, int)}
        for array, offset in self.tally.stores:
            if (array, offset.substitute(ahead)) in read:
                found.add((array, offset))
        return frozenset(found)

    def _run(self, statements: Sequence[Node]) -> None:
        """Read statements up to where no iteration goes on."""
        for place, one in enumerate(statements):
            if self.tally.here == FALSE:
                return
            if one.kind == kinds.IF:
                condition, *sides = one.children
                then, otherwise = (*map(_list, sides), [])[:2]
                if then and then[-1].kind == kinds.CONTINUE:
                    # What follows is what the other side executes.
                    self._branch(condition, then, [*otherwise, *statements[place + 1 :]])
                    return
                self._branch(condition, then, otherwise)
            else:
                self._statement(one)

    def _statement(self, node: Node) -> None:
        if node.kind == kinds.DECLARATION:
            for declared in node.children:
                self._declare(declared)
        elif node.kind == kinds.CONTINUE:
            self.tally.here = FALSE
        elif node.kind == kinds.BINARY and node.operator == kinds.ASSIGN:
            left, right = node.children
            self._assign(left, self._value(right))
        elif node.kind == kinds.COMPOUND_ASSIGNMENT:
            self._compound(node)
        elif node.kind == kinds.UNARY and node.operator in kinds.STEPS:
            chain = self._add(Kind.ADD, node.type, self._value(node.children[0]))
            self._assign(node.children[0], chain)
        elif strip(node) is not node:
            self._statement(strip(node))
        else:
            text = node.text().split(chr(10))[0]
            raise self.listing.refusal(node, f"{text}: no assignment; {_EXPECTED}")

    def _branch(self, condition: Node, then: Sequence[Node], otherwise: Sequence[Node]) -> None:
        """Read both sides of a branch; a vector selects what either of them assigned."""
        if not otherwise and len(then) == 1 and then[0].kind == kinds.BINARY:
            target, value = (peel(one) for one in then[0].children)
            if then[0].operator == kinds.ASSIGN and _is_extremum(condition, target, value):
                chains = (self._value(value), self._value(target))
                self._assign(target, self._add(Kind.SELECT, target.type, *chains))
                return
        outer, self._assigned = self._assigned, {}
        outside = set(self._declared)
        met, waited = self._condition(condition)
        self._read_sides(met, lambda: self._run(then), lambda: self._run(otherwise))
        inner = Symbol(SymbolKind.LOOP, self.nest.loops[-1].name)
        if any(one is inner or one.kind is SymbolKind.CONTENT for one in met.symbols()):
            for key, info in self._assigned.items():
                if key in outside or key not in self._declared:
                    # An operation under a mask waits for the mask only.
                    chain = self._add(Kind.SELECT, info, waited)
                    self.chains[key] = max(chain, self.chains[key], key=_length)
        self._assigned = {**outer, **self._assigned}

    def _read_sides(
        self,
        met: Condition,
        then: Callable[[], Chain | None],
        otherwise: Callable[[], Chain | None],
    ) -> tuple[Chain, Chain]:
        """Read what is executed where a condition holds, then the rest; go on with both."""
        start = self._state
        values: list[Chain] = []
        entered, ends = [], []
        for condition, read in ((met, then), (negation(met), otherwise)):
            self._state = start
            self.tally.here = conjunction(start.here, condition)
            entered.append(self.tally.here)
            values.append(read() if self.tally.here != FALSE else None)
            ends.append(self._state)
        self._join(start, entered, ends)
        return values[0], values[1]

    def _join(self, start: _State, entered: list[Condition], ends: list[_State]) -> None:
        # Where no side leaves the iteration, it goes on as it came.
        here = start.here
        if entered != [one.here for one in ends]:
            here = disjunction(*(one.here for one in ends))
        left = [one for one in ends if one.here != FALSE] or [start]
        known = {
            key: value
            for key, value in left[0].known.items()
            if all(one.known.get(key) == value for one in left)
        }
        chains = {
            key: max((one.chains.get(key, self._before(key)) for one in ends), key=_length)
            for key in {**ends[0].chains, **ends[1].chains}
        }
        held = set.intersection(*(one.held for one in left))
        self._state = _State(here=here, held=held, known=known, chains=chains)

    @property
    def _state(self) -> _State:
        tally = self.tally
        return _State(
            here=tally.here, held=set(tally.held), known=dict(self._known), chains=dict(self.chains)
        )

    @_state.setter
    def _state(self, state: _State) -> None:
        self.tally.here, self.tally.held = state.here, set(state.held)
        self._known, self.chains = dict(state.known), dict(state.chains)

    def _condition(self, node: Node) -> tuple[Condition, Chain]:
        """Read a condition, and give the chain of data in it."""
        node = peel(node)
        if isinstance(node.constant, int):
            return (TRUE if node.constant else FALSE), None
        if node.kind == kinds.UNARY and node.operator == kinds.NOT:
            met, waited = self._condition(node.children[0])
            return negation(met), waited
        if node.kind == kinds.BINARY and node.operator in (kinds.LOGICAL_AND, kinds.LOGICAL_OR):
            return self._both(node)
        found = read_comparison(node, self._known, self.listing)
        if found is not None:
            return found, None
        waited = self._value(node)
        name = f"{' '.join(node.text().split())} in line {self.listing.line_of(node)}"
        if any(one.name == name for one in self.decisions):
            name += f", condition {len(self.decisions) + 1}"
        self.decisions.append(Symbol(SymbolKind.CONTENT, name))
        return equal(self.decisions[-1], 1), waited

    def _both(self, node: Node) -> tuple[Condition, Chain]:
        """Read two conditions, the second of which is only asked where the first leaves it open."""
        start = self._state
        first, waited = self._condition(node.children[0])
        held = set(self.tally.held)
        is_and = node.operator == kinds.LOGICAL_AND
        self.tally.here = conjunction(start.here, first if is_and else negation(first))
        second, also = self._condition(node.children[1])
        self.tally.here, self.tally.held = start.here, held
        join = conjunction if is_and else disjunction
        return join(first, second), max(waited, also, key=_length)

    def _declare(self, declared: Node) -> None:
        self._declared.add(declared.key)
        if not declared.children:
            return
        value = declared.children[-1]
        if declared.type.is_integer:
            try:
                self._known[declared.key] = read_whole_number(value, self._known, self.listing)
            except InputError:
                self.chains[declared.key] = self._value(value)
            return
        self.chains[declared.key] = self._value(value)

    def _compound(self, node: Node) -> None:
        left, right = node.children
        kind = _ARITHMETIC[kinds.OPERATOR_OF_ASSIGNMENT[node.operator]]
        value = self._value(right)
        self._assign(left, self._add(kind, left.type, value, self._value(left)))

    def _assign(self, target: Node, chain: Chain) -> None:
        target = peel(target)
        if target.kind == kinds.SUBSCRIPT:
            element = read_element(target, self.arrays, self._known, self.listing)
            self.tally.store(element)
            self.chains[element.array, element.offset_bytes] = chain
        elif target.kind == kinds.DECLARATION_REFERENCE:
            self._known.pop(target.referenced_key, None)
            self._assigned[target.referenced_key] = target.type
            self.chains[target.referenced_key] = chain
        else:
            raise self.listing.refusal(
                target, f"{target.text()}: a store through a pointer; expected a variable or array"
            )

    def _value(self, node: Node) -> Chain:
        """Count what an expression executes; give its chain."""
        node = peel(node)
        if node.constant is not None:
            return None
        if node.kind == kinds.SUBSCRIPT:
            return self._load(node)
        if node.kind == kinds.DECLARATION_REFERENCE:
            return self._name(node)
        if node.kind == kinds.CALL:
            return self._call(node)
        if node.kind == kinds.UNARY and node.operator in (kinds.PLUS, kinds.MINUS):
            value = self._value(node.children[0])
            return value if node.operator == kinds.PLUS else self._add(Kind.ADD, node.type, value)
        if node.kind == kinds.BINARY and node.operator in _ARITHMETIC:
            # A comparison is an int in C, whatever it compares.
            info = node.children[0].type if node.operator in kinds.COMPARISONS else node.type
            return self._add(_ARITHMETIC[node.operator], info, *map(self._value, node.children))
        if node.kind == kinds.CONDITIONAL:
            return self._choose(node)
        raise self.listing.refusal(
            node, f"{node.text()}: no arithmetic on constants, variables and array elements"
        )

    def _choose(self, node: Node) -> Chain:
        condition, then, otherwise = node.children
        if _is_extremum(condition, then, otherwise):
            return self._add(Kind.SELECT, node.type, self._value(then), self._value(otherwise))
        met, waited = self._condition(condition)
        sides = self._read_sides(met, lambda: self._value(then), lambda: self._value(otherwise))
        return self._add(Kind.SELECT, node.type, waited, *sides)

    def _load(self, node: Node) -> Chain:
        element = read_element(node, self.arrays, self._known, self.listing)
        self.tally.load(element)
        place = (element.array, element.offset_bytes)
        return self.chains.get(place, self._before(place))

    def _before(self, holder: _Holder) -> Chain:
        """Give the chain of what the iteration before left: begun where that matters."""
        if isinstance(holder, int):
            return () if holder in self._carried else None
        inner = Symbol(SymbolKind.LOOP, self.nest.loops[-1].name)
        behind = {inner: Expr.symbol(inner) + self.nest.loops[-1].step}
        return () if (holder[0], holder[1].substitute(behind)) in self._carried else None

    def _name(self, node: Node) -> Chain:
        key = node.referenced_key
        return self.chains.get(key, self._before(key))

    def _call(self, node: Node) -> Chain:
        name = node.spelling
        plain = name.removesuffix("f") if name != "erf" else name
        parts = find_parts(plain, 1)
        if parts is None:
            raise self.listing.refusal(
                node, f"function {name} is not known; expected one of math.h's such as exp"
            )
        values = [self._value(one) for one in node.children[1:]]
        chain: Chain = max((one for one in values if one is not None), key=len, default=None)
        for kind, _, _ in parts:
            named = plain if kind is Kind.SPECIAL else ""
            chain = self._add(_FUNCTIONS.get(plain, kind), node.type, chain, name=named)
        return chain

    def _add(self, kind: Kind, info: TypeInfo, *values: Chain, name: str = "") -> Chain:
        is_float = info.type_class is TypeClass.FLOAT
        number = NumberClass.FLOAT if is_float else NumberClass.INTEGER
        if not info.is_number:
            number = NumberClass.NONE
        operation = Operation(kind=kind, number=number, bits=info.bits, name=name)
        self.tally.count(operation)
        carried = [one for one in values if one is not None]
        return (*max(carried, key=len), str(operation)) if carried else None


def _list(body: Node) -> list[Node]:
    return list(flatten(body))


def _is_extremum(condition: Node, one: Node, other: Node) -> bool:
    """Tell whether a condition chooses the greater or the lesser of what it compares."""
    compared = peel(condition)
    if compared.kind != kinds.BINARY or compared.operator not in _ORDERS:
        return False
    sides = [peel(side).text() for side in compared.children]
    return sorted(sides) == sorted((peel(one).text(), peel(other).text())) and all(sides)


def _length(chain: Chain) -> int:
    return -1 if chain is None else len(chain)
