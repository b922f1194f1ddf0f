"""What a kernel executes: operations by kind and width, memory operations by space and size."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class OperationKind(StrEnum):
    ADD = "add"
    """Sum or difference."""
    MULTIPLY = "multiply"
    FUSED = "multiply_add"
    """Product and sum in one instruction, where the source asks for it: fma, mad."""
    DIVIDE = "divide"
    """Quotient or remainder."""
    LOGIC = "logic"
    """Bitwise operation or shift."""
    COMPARE = "compare"
    SELECT = "select"
    """Choice between two values without a branch, minimum, maximum."""
    CONVERT = "convert"
    SPECIAL = "special"
    """Precise special function: sin, sqrt, pow."""
    SPECIAL_NATIVE = "special_native"
    """Native or half-precise special function."""
    ATOMIC = "atomic"
    BARRIER = "barrier"
    BRANCH = "branch"
    """Conditional branch."""
    JUMP = "jump"
    """Unconditional branch, as a compiler without optimisation lays out blocks."""
    ADDRESS = "address"
    """Arithmetic on pointers, indices of arrays included."""
    CALL = "call"
    """Call of a function whose work is not known."""
    COPY = "copy"
    """Copy between global and local memory by a whole work-group."""


class NumberClass(StrEnum):
    FLOAT = "float"
    INTEGER = "integer"
    NONE = "none"


class MemorySpace(StrEnum):
    GLOBAL = "global"
    CONSTANT = "constant"
    LOCAL = "local"
    PRIVATE = "private"
    GENERIC = "generic"
    """A pointer without address space, which could not be followed to its object."""


class OwnElement(StrEnum):
    """Name of the address of an element of a work-item's own array that is in no register."""

    LOAD = "own load"
    STORE = "own store"
    UPDATE = "own update"


_SHOWN_BY_NAME = frozenset({
    OperationKind.SPECIAL, OperationKind.SPECIAL_NATIVE, OperationKind.ATOMIC, OperationKind.CALL,
    OperationKind.BARRIER, OperationKind.COPY,
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    kind: OperationKind
    number: NumberClass = NumberClass.NONE
    bits: int = 0
    """Width of a lane; 0 where there is none."""
    lanes: int = 1
    name: str = ""
    """Name of the builtin function, and of whatever is called with a vector; for addresses in a
    work-item's own arrays that are in no register, an `OwnElement`."""

    def __str__(self) -> str:
        width = f"{'fp' if self.number is NumberClass.FLOAT else 'int'}{self.bits}"
        vector = f"x{self.lanes}" if self.lanes > 1 else ""
        of = "" if self.number is NumberClass.NONE else f" {width}{vector}"
        name = self.name if self.kind in _SHOWN_BY_NAME else ""
        return f"{name or self.kind.value}{of}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOperation:
    space: MemorySpace
    is_store: bool
    """Whether it writes; an atomic counts as one load and one store of `Operation` ATOMIC only."""
    bytes: int
    """Bytes moved by one work-item."""

    def __str__(self) -> str:
        return f"{'store' if self.is_store else 'load'} {self.space.value} {self.bytes} B"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationCounts:
    """How often each operation is executed."""

    operations: Mapping[Operation, float]
    memory: Mapping[MemoryOperation, float]

    def count(
        self,
        *kinds: OperationKind,
        number: NumberClass | None = None,
        bits: int | None = None,
        per_lane: bool = False,
    ) -> float:
        """Count operations of some kinds, all widths unless one is given."""
        return sum(
            times * (operation.lanes if per_lane else 1)
            for operation, times in self.operations.items()
            if operation.kind in kinds
            and (number is None or operation.number is number)
            and (bits is None or operation.bits == bits)
        )

    def count_memory(self, space: MemorySpace, *, is_store: bool, in_bytes: bool = False) -> float:
        return sum(
            times * (operation.bytes if in_bytes else 1)
            for operation, times in self.memory.items()
            if operation.space is space and operation.is_store == is_store
        )


def add_weighted(parts: Iterable[tuple[OperationCounts, float]]) -> OperationCounts:
    operations: dict[Operation, float] = {}
    memory: dict[MemoryOperation, float] = {}
    for counts, weight in parts:
        for operation, times in counts.operations.items():
            operations[operation] = operations.get(operation, 0) + weight * times
        for access, times in counts.memory.items():
            memory[access] = memory.get(access, 0) + weight * times
    return OperationCounts(operations=operations, memory=memory)
