"""What is known at one point of a kernel, and what has been found on the way."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kernelcast.expressions import (
    FALSE,
    TRUE,
    Condition,
    Expr,
    Symbol,
    SymbolKind,
    conjunction,
    disjunction,
)
from kernelcast.expressions.accesses import AccessKind, AddressPattern, LoopFacts, MemoryAccess
from kernelcast.expressions.kernel_facts import ContentRead, CounterReach
from kernelcast.features.addresses.values import (
    Memory,
    Opaque,
    Pointer,
    Value,
    blur,
    is_stand_in,
    merge,
    places_of,
)  # fmt: skip
from kernelcast.features.blocks.model import BlockList, Site
from kernelcast.features.syntax.tree import Node, SyntaxTree
from kernelcast.features.syntax.types import TypeClass, TypeInfo
from kernelcast.records.operations import MemorySpace

_LONGEST_TEXT = 80


class TooLargeError(Exception):
    """The kernel is too large to be followed to its end; what was found so far counts."""


@dataclass(slots=True)
class State:
    """Values of variables at one point, and the conditions under which it is reached."""

    values: dict[int, Value] = field(default_factory=dict)
    guard: tuple[Condition, ...] = ()
    is_reached: bool = True

    def copy(self, *conditions: Condition) -> "State":
        """Give the state at the start of a branch."""
        guard = self.guard
        if conditions:
            guard += tuple(one for one in conditions if one != TRUE)
        return State(self.values.copy(), guard, self.is_reached)

    def take(self, other: "State") -> None:
        """Become another state."""
        self.values, self.guard = other.values, other.guard
        self.is_reached = other.is_reached

    def join(self, paths: Sequence["State"], *, may_be_lost: bool) -> None:
        """Become the state of what follows several paths, of which each run takes one.

        Parameters
        ----------
        paths : sequence of State
            They began here: their guards begin with this one's.
        may_be_lost : bool
            Whether there may be runs that take none of them to its end.
        """
        depth = len(self.guard)
        reached = [path for path in paths if path.is_reached]
        if not reached:
            self.is_reached = False
            return
        conditions = [conjunction(*path.guard[depth:]) for path in reached]
        self.values = merge_values(conditions, [path.values for path in reached])
        if len(reached) == 1 and may_be_lost:
            self.guard = reached[0].guard
        elif may_be_lost:
            self.guard = (*self.guard, disjunction(*conditions))
        self.is_reached = True


def merge_values(
    conditions: Sequence[Condition], sides: Sequence[dict[int, Value]]
) -> dict[int, Value]:
    """Merge variables of several paths; those that one path lacks were declared on another."""
    values = sides[-1]
    for condition, side in zip(conditions[-2::-1], sides[-2::-1], strict=True):
        merged = {}
        for key, two in values.items():
            one = side.get(key)
            if one is not None:
                merged[key] = one if one is two else merge(condition, one, two)
        values = merged
    return values


@dataclass(slots=True)
class Findings:
    """What following a kernel has found."""

    tree: SyntaxTree
    """The unit."""
    blocks: BlockList
    """Blocks and sites of the kernel and its helpers."""
    budget: int
    """Expressions that may still be evaluated."""
    known_buffers: frozenset[str] = frozenset()
    """Parameters whose contents are known and never written: numbers in them are followed."""
    accesses: list[MemoryAccess] = field(default_factory=list)
    loops: list[LoopFacts] = field(default_factory=list)
    around: tuple[LoopFacts, ...] = ()
    is_recording: bool = True
    largest_unsigned: dict[str, int] = field(default_factory=dict)
    """Greatest values of scalar arguments and contents that cannot be negative."""
    reaches: list[CounterReach] = field(default_factory=list)
    contents: dict[str, ContentRead] = field(default_factory=dict)
    """By the names of their symbols."""
    _sites: dict[tuple[int, bool], Site] = field(default_factory=dict)
    _block_of_site: dict[int, int] = field(default_factory=dict)
    _texts: dict[int, str] = field(default_factory=dict)
    _last_guard: tuple[tuple[Condition, ...], Condition] = ((), TRUE)

    def __post_init__(self) -> None:
        for block in self.blocks.blocks:
            for site in block.sites:
                self._sites[site.node.key, site.is_store] = site
                self._block_of_site[site.id] = block.id

    def note_reached(self, node: Node, state: State) -> None:
        """Note how a counter's place is reached, if the node has one."""
        counter = self.blocks.counter_of.get(node.key)
        if counter is not None and self.is_recording and state.is_reached:
            guard = self._join_guard(state.guard)
            self.reaches.append(CounterReach(counter=counter, guard=guard, loops=self.around))

    def read_content(self, buffer: str, offset_bytes: Expr, info: TypeInfo) -> Expr | None:
        """Give the symbol of a number in a buffer; None where nobody knows the buffer's content.

        What is read at another place in each iteration of a loop has no symbol, nor at a place
        of which that is not known yet: it would hide that it changes.
        """
        if buffer not in self.known_buffers:
            return None
        changes = (
            one.kind is SymbolKind.LOOP or is_stand_in(one) for one in offset_bytes.symbols()
        )
        if any(changes):
            return None
        found = ContentRead(
            name=f"{info.name} of {buffer} at {offset_bytes}",
            buffer=buffer,
            offset_bytes=offset_bytes,
            element_bytes=info.bytes,
            is_signed=info.type_class is TypeClass.SIGNED,
        )
        self.contents.setdefault(found.name, found)
        if info.type_class is TypeClass.UNSIGNED:
            self.largest_unsigned[found.name] = (1 << info.bits) - 1
        return Expr.symbol(Symbol(SymbolKind.CONTENT, found.name))

    def note_gap(self, node: Node, reason: str) -> None:
        """Note what is not understood."""
        if self.is_recording:
            self.blocks.gaps.append((node.line, reason))

    def record(self, node: Node, place: Value, state: State, *, is_store: bool) -> None:
        """Note an access at a node of the source; a pointer into several buffers has several."""
        if not self.is_recording or not state.is_reached:
            return
        site = self._sites.get((node.key, is_store))
        if site is None:
            return
        for conditions, one in places_of(place):
            guard = self._join_guard(state.guard)
            if conditions:
                guard = conjunction(guard, *conditions)
            if guard != FALSE:
                self._add_access(site, one, guard)

    def _join_guard(self, guard: tuple[Condition, ...]) -> Condition:
        if self._last_guard[0] is not guard:
            self._last_guard = (guard, conjunction(*guard) if guard else TRUE)
        return self._last_guard[1]

    def _add_access(self, site: Site, place: Value, guard: Condition) -> None:
        memory = place.memory if isinstance(place, Pointer) else None
        space = memory.space if memory is not None else MemorySpace(site.space)
        if space is MemorySpace.PRIVATE:
            return
        offset = place.offset if isinstance(place, Pointer) else place
        known = offset if isinstance(offset, Expr) and memory is not None else None
        blurred = offset if isinstance(offset, Opaque) else blur(offset)
        self.accesses.append(
            MemoryAccess(
                site=site.id,
                block=self._block_of_site[site.id],
                line=site.node.line,
                text=self._text_of(site),
                kind=_kind(site),
                space=space,
                buffer=_name(memory),
                bytes=site.bytes,
                lanes=site.lanes,
                offset_bytes=known,
                pattern=_pattern(known, blurred),
                guard=guard,
                loops=self.around,
                sources=tuple(sorted(blurred.sources)),
                reason=_reason(known, blurred),
            )
        )

    def _text_of(self, site: Site) -> str:
        text = self._texts.get(site.id)
        if text is None:
            text = self._texts[site.id] = _shorten(site.node.text())
        return text


def _name(memory: Memory | None) -> str | None:
    return memory.name if memory is not None else None


def _kind(site: Site) -> AccessKind:
    if site.is_atomic:
        return AccessKind.ATOMIC
    return AccessKind.STORE if site.is_store else AccessKind.LOAD


def _pattern(known: Expr | None, blurred: Opaque) -> AddressPattern:
    if known is not None:
        is_affine = known.is_quasi_affine()
        return AddressPattern.QUASI_AFFINE if is_affine else AddressPattern.POLYNOMIAL
    return AddressPattern.INDIRECT if blurred.sources else AddressPattern.UNKNOWN


def _reason(known: Expr | None, blurred: Opaque) -> str:
    if known is not None or blurred.sources:
        return ""
    return blurred.reason or "a pointer that is not followed"


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_TEXT else line[: _LONGEST_TEXT - 3] + "..."
