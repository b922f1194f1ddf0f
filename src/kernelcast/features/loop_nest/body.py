"""The innermost loop's statements: accesses, operations, and what waits for what."""

from collections import Counter
from dataclasses import dataclass, field
from typing import TypeAlias

from kernelcast.expressions import Expr, Symbol, SymbolKind
from kernelcast.expressions.loop_nest import NestAccess, NestArray
from kernelcast.features.blocks.builtins import find_parts
from kernelcast.features.blocks.operators import number_class
from kernelcast.features.loop_nest.arrays import Element, read_element
from kernelcast.features.loop_nest.listing import Listing
from kernelcast.features.loop_nest.loops import Nest
from kernelcast.features.loop_nest.whole_numbers import peel, read_whole_number
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.tree import Node, strip
from kernelcast.features.syntax.types import TypeClass, TypeInfo
from kernelcast.records.errors import InputError
from kernelcast.records.operations import Operation
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
_Place: TypeAlias = "tuple[str, Expr] | int"


@dataclass(slots=True)
class Body:
    """Reads statements one after the other.

    Parameters
    ----------
    listing : Listing
        Where they stand.
    nest : Nest
        The loops around them.
    arrays : dict of int to NestArray
        By the key of the declaration.
    """

    listing: Listing
    nest: Nest
    arrays: dict[int, NestArray]
    accesses: list[NestAccess] = field(default_factory=list)
    operations: Counter[Operation] = field(default_factory=Counter)
    repeated: int = 0
    """Loads and stores that registers spare."""
    chains: dict[_Place, Chain] = field(default_factory=dict)
    """By variable or element: how what it holds now came from the iteration before."""
    _held: dict[tuple[str, Expr], Element] = field(default_factory=dict)
    _stored: dict[tuple[str, Expr], Element] = field(default_factory=dict)
    _known: dict[int, Expr] = field(default_factory=dict)
    _carried: frozenset[_Place] = frozenset()

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
        for statement in self.nest.body:
            self._statement(statement)
        for place, element in self._stored.items():
            self.accesses.append(self._access(place, element, is_store=True))

    def _find_handed_on(self) -> frozenset[_Place]:
        """Give variables and elements whose value the next iteration may read."""
        inner = self.nest.loops[-1]
        ahead = {Symbol(SymbolKind.LOOP, inner.name): Expr.symbol(
            Symbol(SymbolKind.LOOP, inner.name)) - inner.step}  # fmt: skip
        read = set(self._held)
        found: set[_Place] = {one for one in self.chains if isinstance(one, int)}
        for array, offset in self._stored:
            if (array, offset.substitute(ahead)) in read:
                found.add((array, offset))
        return frozenset(found)

    def _statement(self, node: Node) -> None:
        if node.kind == kinds.DECLARATION:
            for declared in node.children:
                self._declare(declared)
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
            raise self.listing.refusal(
                node,
                f"{node.text().split(chr(10))[0]}: no assignment; the innermost loop may only "
                "hold assignments",
            )

    def _declare(self, declared: Node) -> None:
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
            place = (element.array, element.offset_bytes)
            self.repeated += place in self._stored
            self._stored[place] = self._held[place] = element
            self.chains[place] = chain
        elif target.kind == kinds.DECLARATION_REFERENCE:
            self._known.pop(target.referenced_key, None)
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
            return self._add(
                _ARITHMETIC[node.operator], node.type, *map(self._value, node.children)
            )
        if node.kind == kinds.CONDITIONAL:
            return self._add(Kind.SELECT, node.type, *map(self._value, node.children))
        raise self.listing.refusal(
            node, f"{node.text()}: no arithmetic on constants, variables and array elements"
        )

    def _load(self, node: Node) -> Chain:
        element = read_element(node, self.arrays, self._known, self.listing)
        place = (element.array, element.offset_bytes)
        if place in self._held:
            self.repeated += 1
        else:
            self._held[place] = element
            self.accesses.append(self._access(place, element, is_store=False))
        return self.chains.get(place, self._handed_over(place))

    def _handed_over(self, place: tuple[str, Expr]) -> Chain:
        """Tell whether the iteration before stored the element that is read now."""
        inner = Symbol(SymbolKind.LOOP, self.nest.loops[-1].name)
        behind = {inner: Expr.symbol(inner) + self.nest.loops[-1].step}
        return () if (place[0], place[1].substitute(behind)) in self._carried else None

    def _name(self, node: Node) -> Chain:
        key = node.referenced_key
        return self.chains.get(key, () if key in self._carried else None)

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
        operation = Operation(kind=kind, number=number_class(info), bits=info.bits, name=name)
        self.operations[operation] += 1
        carried = [one for one in values if one is not None]
        return (*max(carried, key=len), str(operation)) if carried else None

    def _access(self, place: tuple[str, Expr], element: Element, *, is_store: bool) -> NestAccess:
        if element.type.type_class is TypeClass.ARRAY:
            raise self.listing.refusal(
                element.node, f"{element.node.text()} is an array, not an element"
            )
        return NestAccess(
            array=place[0], offset_bytes=place[1], is_store=is_store, bytes=element.type.bytes,
            text=element.node.text(), line=self.listing.line_of(element.node),
        )  # fmt: skip
