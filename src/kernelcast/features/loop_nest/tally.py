"""What a body executes, and under which conditions: loads, stores and operations."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace

from kernelcast.expressions import FALSE, TRUE, Condition, Expr, conjunction, disjunction
from kernelcast.expressions.loop_nest import NestAccess
from kernelcast.features.loop_nest.arrays import Element
from kernelcast.features.loop_nest.listing import Listing
from kernelcast.features.syntax.types import TypeClass
from kernelcast.records.operations import (
    MemoryOperation,
    MemorySpace,
    Operation,
    OperationCounts,
)

Place = tuple[str, Expr]
"""Array and offset in bytes."""


@dataclass(slots=True)
class Tally:
    """Counts while a body is read."""

    listing: Listing
    here: Condition = TRUE
    """Iterations that reach the place that is read."""
    repeated: int = 0
    """Loads and stores that registers spare."""
    held: set[Place] = field(default_factory=set)
    """Elements that a register holds at the place that is read."""
    loads: dict[Place, NestAccess] = field(default_factory=dict)
    stores: dict[Place, NestAccess] = field(default_factory=dict)
    operations: dict[Condition, Counter[Operation]] = field(
        default_factory=lambda: defaultdict(Counter)
    )

    def load(self, element: Element) -> None:
        """Load an element, unless a register holds it."""
        place = (element.array, element.offset_bytes)
        if place in self.held:
            self.repeated += 1
        else:
            self.held.add(place)
            self._touch(self.loads, place, element)

    def store(self, element: Element) -> None:
        """Store an element: once, at the end, where it is stored several times."""
        place = (element.array, element.offset_bytes)
        before = self.stores.get(place)
        if before is not None and conjunction(before.condition, self.here) != FALSE:
            self.repeated += 1
        self.held.add(place)
        self._touch(self.stores, place, element)

    def count(self, operation: Operation) -> None:
        """Count an operation."""
        self.operations[self.here][operation] += 1

    @property
    def accesses(self) -> tuple[NestAccess, ...]:
        """Loads in their order, then stores."""
        return (*self.loads.values(), *self.stores.values())

    def branches(self) -> dict[Condition, OperationCounts]:
        """Give operations and accesses by the iterations that execute them, `TRUE` for all."""
        memory: dict[Condition, Counter[MemoryOperation]] = defaultdict(Counter)
        for one in self.accesses:
            moved = MemoryOperation(
                space=MemorySpace.GLOBAL, is_store=one.is_store, bytes=one.bytes
            )
            memory[one.condition][moved] += 1
        return {
            one: OperationCounts(
                operations=dict(self.operations.get(one, {})), memory=dict(memory.get(one, {}))
            )
            for one in (TRUE, *dict.fromkeys((*self.operations, *memory)))
        }

    def _touch(self, accesses: dict[Place, NestAccess], place: Place, element: Element) -> None:
        if element.type.type_class is TypeClass.ARRAY:
            raise self.listing.refusal(
                element.node, f"{element.node.text()} is an array, not an element"
            )
        before = accesses.get(place)
        if before is not None:
            accesses[place] = replace(before, condition=disjunction(before.condition, self.here))
            return
        accesses[place] = NestAccess(
            array=place[0], offset_bytes=place[1], is_store=accesses is self.stores,
            bytes=element.type.bytes, text=element.node.text(),
            line=self.listing.line_of(element.node), condition=self.here,
        )  # fmt: skip
