"""What is known at one point of a kernel, and what has been found on the way."""

from dataclasses import dataclass, field

from kernelcast.features.addresses.values import Memory, Opaque, Pointer, Value
from kernelcast.features.blocks.model import BlockList, Site
from kernelcast.features.syntax.tree import Node, SyntaxTree
from kernelcast.records.accesses import AccessKind, AddressPattern, LoopFacts, MemoryAccess
from kernelcast.records.conditions import FALSE, TRUE, Condition, conjunction
from kernelcast.records.kernel_facts import CounterReach
from kernelcast.records.operations import MemorySpace
from kernelcast.records.quasi_affine import Expr

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
        added = tuple(one for one in conditions if one != TRUE)
        return State(dict(self.values), self.guard + added, self.is_reached)

    def take(self, other: "State") -> None:
        """Become another state."""
        self.values, self.guard = other.values, other.guard
        self.is_reached = other.is_reached


@dataclass(slots=True)
class Findings:
    """What following a kernel has found.

    Parameters
    ----------
    tree : SyntaxTree
        The unit.
    blocks : BlockList
        Blocks and sites of the kernel and its helpers.
    budget : int
        Expressions that may still be evaluated.
    """

    tree: SyntaxTree
    blocks: BlockList
    budget: int
    accesses: list[MemoryAccess] = field(default_factory=list)
    loops: list[LoopFacts] = field(default_factory=list)
    around: tuple[LoopFacts, ...] = ()
    is_recording: bool = True
    unsigned_scalars: set[str] = field(default_factory=set)
    reaches: list[CounterReach] = field(default_factory=list)
    _sites: dict[tuple[int, bool], Site] = field(default_factory=dict)
    _block_of_site: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for block in self.blocks.blocks:
            for site in block.sites:
                self._sites[site.node.key, site.is_store] = site
                self._block_of_site[site.id] = block.id

    def spend(self) -> None:
        """Note that an expression is evaluated.

        Raises
        ------
        TooLargeError
            If that was one too many.
        """
        self.budget -= 1
        if self.budget < 0:
            raise TooLargeError

    def note_reached(self, node: Node, state: State) -> None:
        """Note how a counter's place is reached, if the node has one."""
        counter = self.blocks.counter_of.get(node.key)
        if counter is not None and self.is_recording and state.is_reached:
            guard = conjunction(*state.guard) if state.guard else TRUE
            self.reaches.append(CounterReach(counter=counter, guard=guard, loops=self.around))

    def record(self, node: Node, place: Value, state: State, *, is_store: bool) -> None:
        """Note an access at a node of the source."""
        site = self._sites.get((node.key, is_store))
        if not self.is_recording or site is None or not state.is_reached:
            return
        memory = place.memory if isinstance(place, Pointer) else None
        space = memory.space if memory is not None else MemorySpace(site.space)
        guard = conjunction(*state.guard) if state.guard else TRUE
        if space is MemorySpace.PRIVATE or guard == FALSE:
            return
        offset = place.offset if isinstance(place, Pointer) else place
        known = offset if isinstance(offset, Expr) else None
        blurred = offset if isinstance(offset, Opaque) else Opaque()
        self.accesses.append(
            MemoryAccess(
                site=site.id,
                block=self._block_of_site[site.id],
                line=site.node.line,
                text=_shorten(site.node.text()),
                kind=_kind(site),
                space=space,
                buffer=_name(memory),
                bytes=site.bytes,
                offset_bytes=known,
                pattern=_pattern(memory, known, blurred),
                guard=guard,
                loops=self.around,
                sources=tuple(sorted(blurred.sources)),
                reason=blurred.reason,
            )
        )


def _name(memory: Memory | None) -> str | None:
    return memory.name if memory is not None else None


def _kind(site: Site) -> AccessKind:
    if site.is_atomic:
        return AccessKind.ATOMIC
    return AccessKind.STORE if site.is_store else AccessKind.LOAD


def _pattern(memory: Memory | None, known: Expr | None, blurred: Opaque) -> AddressPattern:
    if known is not None and memory is not None:
        is_affine = known.is_quasi_affine()
        return AddressPattern.QUASI_AFFINE if is_affine else AddressPattern.POLYNOMIAL
    return AddressPattern.INDIRECT if blurred.sources else AddressPattern.UNKNOWN


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_TEXT else line[: _LONGEST_TEXT - 3] + "..."
