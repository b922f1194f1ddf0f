"""Blocks under construction, and counts as sums of counters."""

from dataclasses import dataclass, field
from enum import StrEnum

from kernelcast.features.syntax.places import Span
from kernelcast.features.syntax.tree import Node

_ONCE = -1


class LinearCount:
    """How often something is executed: a sum of counters with whole coefficients.

    Counter -1 stands for the work-item itself, so `ONCE` is the count of the kernel's entry.

    Examples
    --------
    >>> taken = LinearCount.of(0)
    >>> print(ONCE - taken)
    1 - c0
    """

    __slots__ = ("terms",)

    def __init__(self, terms: tuple[tuple[int, int], ...]) -> None:
        self.terms = terms

    @classmethod
    def of(cls, counter: int) -> "LinearCount":
        """Give the count that one counter holds."""
        return cls(((counter, 1),))

    def __add__(self, other: "LinearCount") -> "LinearCount":
        if not other.terms:
            return self
        total = dict(self.terms)
        for counter, factor in other.terms:
            total[counter] = total.get(counter, 0) + factor
        return LinearCount(tuple(sorted([term for term in total.items() if term[1]])))

    def __sub__(self, other: "LinearCount") -> "LinearCount":
        return self + LinearCount(tuple((counter, -factor) for counter, factor in other.terms))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinearCount) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(self.terms)

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        text = ""
        for counter, factor in self.terms:
            name = "" if counter == _ONCE else f"c{counter}"
            number = "" if name and abs(factor) == 1 else f"{abs(factor)}"
            sign = ("-" if factor < 0 else "+") if text else ("-" if factor < 0 else "")
            text += f" {sign} {number}{name}" if text else f"{sign}{number}{name}"
        return text


ONCE = LinearCount.of(_ONCE)
NEVER = LinearCount(())


class BlockKind(StrEnum):
    """How a block comes to be executed."""

    ENTRY = "entry"
    THEN = "then"
    ELSE = "else"
    AFTER = "after"
    """What follows a statement that may jump away."""
    LOOP_BODY = "loop body"
    LOOP_CONDITION = "loop condition"
    LOOP_STEP = "loop step"
    CASE = "case"
    ARM = "arm"
    """One side of `?:`."""
    RIGHT_SIDE = "right side"
    """What follows `&&` or `||`."""
    LABEL = "label"


@dataclass(slots=True)
class Site:
    """One place in the source that loads, stores or does an atomic operation."""

    id: int
    node: Node
    pointer: Node | None
    """Expression of the address; None where `node` is an lvalue itself."""
    space: str
    is_store: bool
    bytes: int
    lanes: int = 1
    is_atomic: bool = False
    name: str = ""


@dataclass(slots=True, eq=False)
class Block:
    """A stretch of code whose statements are executed equally often."""

    id: int
    function: str
    kind: BlockKind
    count: LinearCount
    line: int
    last_line: int = 0
    parent: int | None = None
    sites: list[Site] = field(default_factory=list)


class CounterForm(StrEnum):
    """How a counter's increment is written into the source."""

    STATEMENT = "statement"
    """Before a statement that is not compound: both are put in braces."""
    COMPOUND = "compound"
    """Behind the opening brace."""
    LABELLED = "labelled"
    """Before the statement that follows a label."""
    EXPRESSION = "expression"
    """By a comma operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterPlace:
    """Where a counter is incremented."""

    counter: int
    form: CounterForm
    span: Span | None
    """What is counted; None or not exact where it cannot be edited."""
    line: int


@dataclass(slots=True)
class BlockList:
    """Everything that walking the functions of a kernel has found."""

    blocks: list[Block] = field(default_factory=list)
    counters: list[CounterPlace] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)
    calls: list[tuple[int, int, LinearCount]] = field(default_factory=list)
    """Caller's and callee's key, and how often the call is made."""
    gaps: list[tuple[int, str]] = field(default_factory=list)
    """Line and reason of what could not be understood."""
    counter_of: dict[int, int] = field(default_factory=dict)
    """Key of a counted statement or expression to its counter."""
    places: dict[tuple[int, int], int] = field(default_factory=dict)
    """Block that a range of the source's bytes belongs to."""

    def note_place(self, node: Node, block: Block) -> None:
        """Note to which block a statement or an expression belongs."""
        span = node.span
        if span is not None:
            self.places[span.start, span.end] = block.id

    def new_block(
        self, function: str, kind: BlockKind, count: LinearCount, node: Node, parent: Block | None
    ) -> Block:
        """Add a block."""
        block = Block(
            len(self.blocks), function, kind, count, node.line,
            parent=None if parent is None else parent.id,
        )  # fmt: skip
        self.blocks.append(block)
        return block

    def new_counter(self, form: CounterForm, node: Node) -> LinearCount:
        """Add a counter that is incremented at a node."""
        place = CounterPlace(counter=len(self.counters), form=form, span=node.span, line=node.line)
        self.counters.append(place)
        self.counter_of[node.key] = place.counter
        return LinearCount.of(place.counter)

    def add_site(self, block: Block, site: Site) -> None:
        """Add a memory operation to a block."""
        site.id = len(self.sites)
        self.sites.append(site)
        block.sites.append(site)
