"""A loop nest as the analytic CPU model sees it: loops, arrays and what an iteration touches."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kernelcast.expressions import TRUE, Condition, Expr, Symbol, SymbolKind
from kernelcast.expressions.axes import bind_names
from kernelcast.records.errors import InputError
from kernelcast.records.operations import OperationCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class NestLoop:
    """One loop of a nest: ``for (name = start; name < stop; name += step)``."""

    name: str
    """Its variable; expressions name it as ``Symbol(SymbolKind.LOOP, name)``, which stands for the
    variable's value, not for the number of the iteration."""
    start: Expr
    stop: Expr
    """First value, and the value it does not reach any more, over constants and the variables of
    the loops around it. A loop that counts down has a negative step."""
    step: int = 1
    """Not 0."""
    line: int = 0
    """Where it stands; 0 if there is no source."""

    def __post_init__(self) -> None:
        if self.step == 0:
            msg = f"loop over {self.name}: its step is 0; expected another whole number"
            raise InputError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class NestArray:
    """An array of a nest."""

    name: str
    """Its name."""
    element_bytes: int
    """Bytes of one element."""
    element_type: str = "double"
    """C type of one element."""
    dimensions: tuple[Expr, ...] = ()
    """Elements per dimension, slowest first, over constants; empty if it is not known where it ends
    (a pointer)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NestAccess:
    """A load or store of one iteration of the innermost loop."""

    array: str
    """The array."""
    offset_bytes: Expr
    """From the start of the array, in bytes, over loop variables (``SymbolKind.LOOP``) and
    constants (``SymbolKind.SCALAR``)."""
    is_store: bool
    """Whether it writes. ``a[i] += x`` is a load and a store."""
    bytes: int
    """Bytes that it moves."""
    text: str = ""
    """The expression as written."""
    line: int = 0
    """Where it stands; 0 if there is no source."""
    condition: Condition = TRUE
    """Iterations in which it is executed, over loop variables, constants and decisions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopNest:
    """A perfect loop nest."""

    name: str
    """For messages and tables."""
    loops: tuple[NestLoop, ...]
    """Outermost first."""
    arrays: tuple[NestArray, ...]
    """In the order of their declaration."""
    accesses: tuple[NestAccess, ...]
    """In the order in which an iteration executes them."""
    executed: OperationCounts
    """Operations of one iteration of the innermost loop, those of all branches together."""
    constants: Mapping[str, int] = field(default_factory=dict)
    """Values of the constants that expressions name."""
    chain: tuple[str, ...] = ()
    """Operations that each iteration must wait for, one after the other (a sum's addition); empty
    if iterations are independent."""
    notes: tuple[str, ...] = ()
    """What was assumed."""
    branches: tuple[tuple[Condition, OperationCounts], ...] = ()
    """The part of `executed` that only some iterations execute, and which."""
    decisions: tuple[Symbol, ...] = ()
    """Conditions on data in the conditions of accesses and branches: 1 where they hold, else 0."""
    taken: float | None = None
    """Share of iterations in which each decision holds, at random; None if vectors execute both
    sides under a mask."""

    def __post_init__(self) -> None:
        if self.taken is not None and not 0 <= self.taken <= 1:
            msg = f"conditions on data hold in {self.taken} of the iterations; expected 0 to 1"
            raise InputError(msg)

    @property
    def has_branches(self) -> bool:
        """Whether some iterations do less than others."""
        return bool(self.branches) or any(one.condition != TRUE for one in self.accesses)

    def name_constants(self) -> frozenset[str]:
        """Name the constants on which sizes, bounds, addresses and conditions depend."""
        expressions = [
            *(one for loop in self.loops for one in (loop.start, loop.stop)),
            *(one for access in self.accesses for one in (access.offset_bytes, access.condition)),
            *(size for array in self.arrays for size in array.dimensions),
            *(condition for condition, _ in self.branches),
        ]
        symbols = frozenset().union(*(one.symbols() for one in expressions))
        return frozenset(one.name for one in symbols if one.kind is SymbolKind.SCALAR)

    def bind_constants(self, constants: Mapping[str, int]) -> dict[Symbol, int]:
        """Join the nest's constants with those given now, which win.

        Raises
        ------
        InputError
            If one that the nest depends on has no value, or one below 1.
        """
        merged = {**self.constants, **constants}
        wanted = sorted(self.name_constants())
        missing = [name for name in wanted if name not in merged]
        if missing:
            msg = (
                f"{self.name}: no value for {', '.join(missing)}; give each one "
                f"({' '.join(f'-D {name} 1000' for name in missing)})"
            )
            raise InputError(msg)
        for name in wanted:
            if merged[name] < 1:
                msg = f"{self.name}: {name} is {merged[name]}; expected at least 1"
                raise InputError(msg)
        return bind_names(merged)

    def without_branches(self) -> "LoopNest":
        """Give the nest in which each iteration executes all accesses and operations."""
        accesses = tuple(replace(one, condition=TRUE) for one in self.accesses)
        return replace(self, accesses=accesses, branches=(), decisions=())
