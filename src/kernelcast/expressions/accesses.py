"""Where a kernel touches memory: address expressions, guards and loops; launches of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kernelcast.expressions import TRUE, Condition, Expr, Symbol, SymbolKind
from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import MemorySpace, OperationCounts
from kernelcast.records.problem import Problem
from kernelcast.records.software_counters import RecordedAddresses, WarpCounters


class AccessKind(StrEnum):
    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"


class AddressPattern(StrEnum):
    """What is known of an address before the kernel runs."""

    QUASI_AFFINE = "quasi-affine"
    """Affine in ids and iterations, but for choices and for divisions by parameters."""
    POLYNOMIAL = "polynomial"
    """Known exactly, but variables are multiplied."""
    INDIRECT = "indirect"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopFacts:
    """A loop as one call path reaches it."""

    name: str
    line: int
    condition: Condition
    """Holds for the iterations that run, as a condition on the iteration number."""
    trip_count: Expr | None
    """Iterations per entry, if there is a formula; an upper bound if `is_exact` is False."""
    is_exact: bool
    """False where a `break`, a `return` or a condition on data may end it earlier."""

    @property
    def symbol(self) -> Symbol:
        return Symbol(SymbolKind.LOOP, self.name)

    def count_symbols(self) -> frozenset[Symbol]:
        """Give the symbols that decide how often it runs."""
        if self.trip_count is not None:
            return self.trip_count.symbols()
        return self.condition.symbols() - {self.symbol}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryAccess:
    site: int
    """Place in the source; a helper function's site has one access per path that calls it."""
    block: int
    line: int
    """Line in the source; 0 in an included file."""
    text: str
    kind: AccessKind
    space: MemorySpace
    buffer: str | None
    """Name of the parameter or array; None if the pointer could not be followed."""
    bytes: int
    """Bytes that one execution moves."""
    offset_bytes: Expr | None
    """Offset from the start of the buffer, in bytes; None if it is not known."""
    pattern: AddressPattern
    guard: Condition = TRUE
    """Holds where the access is executed, loops aside."""
    loops: tuple[LoopFacts, ...] = ()
    """The loops around it, outermost first."""
    sources: tuple[str, ...] = ()
    """Buffers whose content the address depends on."""
    reason: str = ""
    """Why the address is not known; empty if it is."""
    lanes: int = 1
    """Numbers that one execution moves: those of a vector."""
    is_narrowed: bool = False
    """Whether its index passes through 32 bits, so that compilers need not see that neighbouring
    work-items are side by side."""

    @property
    def is_exact(self) -> bool:
        """Whether exactly the addresses described are touched, and not a part of them."""
        return (
            self.offset_bytes is not None
            and self.guard.is_exact
            and all(loop.is_exact for loop in self.loops)
        )

    def describe_unknown(self) -> str:
        told = f"the address of {self.text or self.buffer or 'an access'}"
        if self.pattern is AddressPattern.INDIRECT:
            return f"{told} depends on data in {', '.join(self.sources) or 'a buffer'}"
        return f"{told} is not known{f': {self.reason}' if self.reason else ''}"

    def refuse_unknown(self, kernel: str) -> InputError:
        """Make the error of a model that needs its address."""
        return InputError(
            f"{kernel}, line {self.line}: {self.describe_unknown()}; only work-groups that run "
            "show it: allow samples, or record addresses (`kernelcast model` with --device ID, for "
            "the problem's own local size without folding)"
        )


NOTHING = OperationCounts(operations={}, memory={})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelledLaunch:
    """A launch as analytic models see it: what it touches and what it executes."""

    kernel: str
    ndrange: NDRange
    accesses: tuple[MemoryAccess, ...]
    """What each work-item touches, from the source, from text or from a code generator."""
    scalars: Mapping[str, int] = field(default_factory=dict)
    buffers: Mapping[str, int] = field(default_factory=dict)
    """Bytes of each buffer, where known. A buffer that is missing has no known end."""
    alignments: Mapping[str, int] = field(default_factory=dict)
    """Offset of a buffer's first byte from a 128-byte boundary, in bytes, 0 when left out."""
    executed: OperationCounts = NOTHING
    work: Mapping[str, float] | None = None
    """What a warp executes by compiled code, see `kernelcast.analytic.gpu.code.read_work`; None
    where no compiler for GPUs was asked, or data decide of loops."""
    registers: int | None = None
    local_bytes: int = 0
    updates_per_work_item: int = 1
    """Results that one work-item computes (thread folding); what volumes per update refer to."""
    recorded: RecordedAddresses | None = None
    warps: tuple[WarpCounters, ...] = ()
    """How work-items that run in step share instructions, by width; none if it was not counted."""
    notes: tuple[str, ...] = ()
    unjumped: OperationCounts = NOTHING
    """Mean per work-item of a device that goes through both sides of every condition."""
    problem: Problem | None = None
    """Whose source has its code; None of folded launches, and of accesses written down."""
    doubt: float = 0.0
    """By how much the logarithm of the work may be off, where data end loops."""
