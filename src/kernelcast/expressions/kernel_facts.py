"""What can be known about a kernel from its source."""

from dataclasses import dataclass
from enum import StrEnum

from kernelcast.expressions import Condition, Expr
from kernelcast.expressions.accesses import AddressPattern, LoopFacts, MemoryAccess
from kernelcast.records.operations import MemorySpace, OperationCounts
from kernelcast.records.software_counters import LineFacts

ONCE = -1
"""The counter of what each work-item executes once: it is 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterFacts:
    name: str
    type_name: str
    space: MemorySpace
    """Address space of what a pointer points to; private for values."""
    is_pointer: bool
    is_const: bool
    is_restrict: bool
    is_volatile: bool
    """Of the pointer or of what it points to."""
    element_bytes: int
    """Bytes of the value, or of what a pointer points to."""
    is_read: bool
    is_written: bool
    """Whether the kernel loads or stores through it; both True where a pointer could not be
    followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalArray:
    name: str
    bytes: int


class BlockKind(StrEnum):
    ENTRY = "entry"
    THEN = "then"
    ELSE = "else"
    AFTER = "after"
    """What follows a statement that may jump away, or several conditions."""
    CASE = "case"
    LOOP_BODY = "loop body"
    LOOP_CONDITION = "loop condition"
    LOOP_STEP = "loop step"
    ACCESS = "access"
    """An access that is written by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockFacts:
    """Code that is executed equally often."""

    id: int
    """Index in `KernelFacts.blocks`."""
    function: str
    kind: BlockKind
    line: int
    parent: int | None
    counter: int
    """How often it is executed: index in `KernelFacts.reaches`, or `ONCE`."""
    operations: OperationCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterReach:
    """What a counter counts: iterations of loops for which a guard holds."""

    guard: Condition
    loops: tuple[LoopFacts, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentRead:
    """A whole number that a work-item reads from a buffer whose content is known."""

    name: str
    """Of its symbol, of kind `SymbolKind.CONTENT`."""
    buffer: str
    offset_bytes: Expr
    """Where it stands; may hold contents that were read before."""
    element_bytes: int
    is_signed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    line: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFacts:
    kernel: str
    line: int
    parameters: tuple[ParameterFacts, ...]
    local_arrays: tuple[LocalArray, ...]
    blocks: tuple[BlockFacts, ...]
    """Of the kernel and the functions it calls."""
    lines: tuple[LineFacts, ...] = ()
    reaches: tuple[CounterReach, ...]
    accesses: tuple[MemoryAccess, ...]
    """Global, constant and local memory."""
    loops: tuple[LoopFacts, ...]
    """Loops on every call path."""
    gaps: tuple[Gap, ...]
    required_local_size: tuple[int, ...] = ()
    """Three sizes where the source requires them (``reqd_work_group_size``)."""
    fields: tuple[ContentRead, ...] = ()
    """Whole numbers that are read from structures passed by value."""
    contents: tuple[ContentRead, ...] = ()
    """What conditions and loops ask of buffers whose contents are known, in the order of the reads;
    empty unless that was asked for."""

    @property
    def coverage(self) -> float:
        """Share of accesses that are affine, polynomial or known to be indirect; 1 if none."""
        if not self.accesses:
            return 1.0
        unknown = sum(one.pattern is AddressPattern.UNKNOWN for one in self.accesses)
        return 1 - unknown / len(self.accesses)

    @property
    def told_gaps(self) -> tuple[Gap, ...]:
        """Gaps and accesses of unknown addresses: never empty where `coverage` is below 1."""
        unknown = (
            Gap(line=one.line, reason=one.describe_unknown())
            for one in self.accesses
            if one.pattern is AddressPattern.UNKNOWN
        )
        return tuple(dict.fromkeys((*self.gaps, *unknown)))

    @property
    def local_bytes(self) -> int:
        return sum(array.bytes for array in self.local_arrays)
