"""A kernel's code: dominators, loops, choices on which blocks are reached, and dependences."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import permutations
from operator import and_
from typing import Final, TypeAlias

from kernelcast.compiling.ir import Function, Instruction, Module
from kernelcast.features.ir.debug import DebugNotes, TypeNote
from kernelcast.features.ir.operations import name_called

Term: TypeAlias = dict[str, frozenset[int]]
"""Edges of which one is taken, by the block that they leave: all must be met. For a loop that may
be left to several places, the key is its header with `LEFT` before it, and edges are places."""

LEFT: Final = "left "
_EFFECTS: Final = frozenset(("store", "atomicrmw", "cmpxchg", "fence"))
_EFFECT: Final = re.compile(r"llvm\.mem|.*barrier|.*atom")
INITIAL: Final = "@__const."
"""Begins the names of what variables of functions are set to at first."""
_VARIABLE: Final = re.compile(r"@[\w.$]+")
_MOVING: Final = frozenset(("getelementptr", "addrspacecast", "bitcast", "freeze"))
_READING: Final = _MOVING | {"load", "phi", "select", "icmp"}


@dataclass(slots=True, eq=False)
class Loop:
    header: str
    blocks: set[str]
    latches: list[str]
    parent: "Loop | None" = None
    exits: list[tuple[str, int]] = field(default_factory=list)
    """Edges that leave it: block and number of the edge."""
    test: str = ""
    """Block whose branch is tested before each iteration; empty where a body runs first."""
    testing: frozenset[str] = frozenset()
    """Blocks that run once more than the body: the test and what it computes."""


class ControlFlow:
    def __init__(self, function: Function, notes: DebugNotes) -> None:
        self._notes = notes
        self.blocks = function.blocks
        self.entry = next(iter(function.blocks))
        self.successors = {label: block[-1].labels for label, block in self.blocks.items()}
        seen, finished = {self.entry}, []
        # What comes first in the source is visited last, so that it is listed first.
        stack = [(self.entry, reversed(self.successors[self.entry]))]
        while stack:
            label, rest = stack[-1]
            following = next((one for one in rest if one not in seen), None)
            if following is None:
                finished.append(label)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, reversed(self.successors[following])))
        self.order = finished[::-1]
        self.place = {label: number for number, label in enumerate(self.order)}
        self.predecessors: dict[str, list[tuple[str, int]]] = {label: [] for label in self.order}
        for label in self.order:
            for number, successor in enumerate(self.successors[label]):
                self.predecessors[successor].append((label, number))
        # Blocks that dominate each, itself included, as bits at their places.
        self._above: dict[str, int] = {}
        before: dict[str, int] | None = None
        while self._above != before:
            before = dict(self._above)
            for number, label in enumerate(self.order):
                above = [self._above[one] for one, _ in self.predecessors[label]
                         if one in self._above]  # fmt: skip
                self._above[label] = reduce(and_, above or [0]) | 1 << number
        # Of the blocks above another the nearest comes last in the order.
        self.dominators = {
            label: self.order[max(0, (self._above[label] ^ 1 << number).bit_length() - 1)]
            for number, label in enumerate(self.order)
        }
        self.dominating = frozenset(self.dominators.values())
        self.is_irreducible = False
        self.loops = self._find_loops()
        self.loop_at = {loop.header: loop for loop in self.loops}
        self.loop_of: dict[str, Loop | None] = dict.fromkeys(self.order)
        for loop in reversed(self.loops):
            loop.parent = self.loop_of[loop.header]
            for label in loop.blocks:
                self.loop_of[label] = loop
        self._describe_loops()
        for loop in self.loops:
            self._add_ends(loop)
        self.terms: dict[str, list[Term] | None] = {}
        """Choices on which a block is reached from the header of its loop; None if too many."""
        for label in self.order:
            around = self.loop_of[label]
            if label == self.entry or label in self.loop_at:
                self.terms[label] = [{}]
                continue
            # What jumps back where loops are no natural ones is left out.
            ways = [
                way for way in self.predecessors[label] if self.place[way[0]] < self.place[label]
            ]
            self.terms[label] = self._unite(ways, label, around) or None

    @cached_property
    def users(self) -> dict[str, list[Instruction]]:
        """What takes each result, once for each operand that it is."""
        found: dict[str, list[Instruction]] = defaultdict(list)
        for one in self.list_instructions():
            for _, value in one.operands:
                found[value].append(one)
        return found

    def list_instructions(self, loop: Loop | None = None) -> Iterator[Instruction]:
        for label in self.order:
            if loop is None or label in loop.blocks:
                yield from self.blocks[label]

    def terminator(self, label: str) -> Instruction:
        return self.blocks[label][-1]

    def dominates(self, one: str, other: str) -> bool:
        return bool(self._above[other] >> self.place[one] & 1)

    def loops_around(self, label: str) -> list[Loop]:
        """List the loops that hold a block, outermost first."""
        found, loop = [], self.loop_of[label]
        while loop is not None:
            found.append(loop)
            loop = loop.parent
        return found[::-1]

    def _find_loops(self) -> list[Loop]:
        loops: dict[str, Loop] = {}
        for label in self.order:
            for other, _ in self.predecessors[label]:
                if self.place[other] < self.place[label]:
                    continue
                if not self.dominates(label, other):
                    self.is_irreducible = True
                    continue
                loop = loops.setdefault(label, Loop(label, {label}, []))
                if other not in loop.latches:
                    loop.latches.append(other)
                stack = [other]
                while stack:
                    inner = stack.pop()
                    if inner not in loop.blocks:
                        loop.blocks.add(inner)
                        stack.extend(before for before, _ in self.predecessors[inner])
        for loop in loops.values():
            loop.exits = self._find_exits(loop)
        return sorted(loops.values(), key=lambda one: len(one.blocks))

    def _describe_loops(self) -> None:
        for loop in self.loops:
            for label, edge in loop.exits:
                is_choice = len(set(self.successors[label])) == 2 and self.loop_of[label] is loop
                if not is_choice or any(not self.dominates(label, one) for one in loop.latches):
                    continue
                stay = self.successors[label][1 - edge]
                testing = {
                    one for one in loop.blocks
                    if one == label or not self.dominates(stay, one)
                } if stay in loop.blocks and label != stay else set()  # fmt: skip
                is_test = testing.isdisjoint(loop.latches) and not any(
                    self.loop_of[one.block] is not loop or one.opcode in _EFFECTS
                    or (one.opcode == "call" and _EFFECT.match(one.detail))
                    for name in testing for one in self.blocks[name]
                )  # fmt: skip
                if testing and is_test:
                    loop.test, loop.testing = label, frozenset(testing)
                break

    def terms_of_header(self, loop: Loop) -> list[Term] | None:
        """Give the choices on which a loop is entered, from the header of the loop around it."""
        ways = [way for way in self.predecessors[loop.header] if way[0] not in loop.blocks]
        return self._unite(ways, loop.header, loop.parent)

    def _unite(
        self, ways: Iterable[tuple[str, int]], label: str, around: Loop | None
    ) -> list[Term] | None:
        """Choices on which a block is reached by one of some edges; None if they are too many."""
        found: list[Term] = []
        for before, edge in ways:
            more = self.terms_into(before, edge, label, around)
            if more is None:
                return None
            found = self._simplify([*found, *more])
            if len(found) > 32:
                return None
        return found

    def terms_into(
        self, before: str, edge: int, label: str, around: Loop | None
    ) -> list[Term] | None:
        """Choices on which a block is reached by an edge, from the header of the loop around."""
        own = inner = self.loop_of[before]
        while inner is not None and inner is not around and inner.parent is not around:
            inner = inner.parent
        if inner is around or inner is None:
            terms, labels = self.terms.get(before), self.successors[before]
            is_test = own is not None and own.test == before  # its iterations are counted
            if terms is None or is_test or len(set(labels)) == 1:
                return terms
            # Conditions that are nested more deeply are not followed.
            if any(len(term) >= 100 for term in terms):
                return None
            edges = frozenset(number for number, one in enumerate(labels) if one == labels[edge])
            return [{**term, before: edges} for term in terms]
        terms = self.terms_of_header(inner)
        targets, others = self._targets(inner)
        if terms is None or (len(targets) == 1 and not others):
            return terms
        number = targets.index(label) if label in targets else len(targets)
        return [{**term, LEFT + inner.header: frozenset((number,))} for term in terms]

    def find_branches(self, phi: Instruction) -> Iterator[str]:
        """Give the blocks whose branches choose among the values of a phi."""
        own = self.loop_of[phi.block]
        is_header = own is not None and own.header == phi.block
        labels = [
            label for label in phi.labels
            if label in self.place and not (is_header and own and label not in own.blocks)
        ]  # fmt: skip
        if len(labels) < 2:
            return
        terms = [
            term for label in labels
            for term in self.terms_into(label, self.successors[label].index(phi.block),
                                        phi.block, own) or ()
        ]  # fmt: skip
        for key in {key for term in terms for key in term}:
            if not key.startswith(LEFT) and len({term.get(key) for term in terms}) > 1:
                yield key

    def _add_ends(self, loop: Loop) -> None:
        """Take what is written in a loop and leaves it, as ``if (found) { ...; break; }`` does."""
        latch = self.terminator(loop.latches[0])
        if latch.loop_note < 0 or len(loop.exits) < 2:
            return
        behind = {self.successors[label][edge] for label, edge in loop.exits if label == loop.test}
        waiting = [self.successors[label][edge] for label, edge in loop.exits if label != loop.test]
        while waiting:
            label = waiting.pop()
            if (
                label not in loop.blocks | behind and self.successors[label]
                and all(before in loop.blocks for before, _ in self.predecessors[label])
                and all(self._notes.is_written_in(one, latch) for one in self.blocks[label])
            ):  # fmt: skip
                for outer in self.loops_around(loop.header):
                    outer.blocks.add(label)
                    outer.exits = self._find_exits(outer)
                self.loop_of[label] = loop
                waiting.extend(self.successors[label])

    def _find_exits(self, loop: Loop) -> list[tuple[str, int]]:
        return [
            (label, edge) for label in sorted(loop.blocks, key=self.place.__getitem__)
            for edge, successor in enumerate(self.successors[label])
            if successor not in loop.blocks
        ]  # fmt: skip

    def _targets(self, loop: Loop) -> tuple[list[str], bool]:
        """List where a loop is left to within the one around it, and whether it is left farther."""
        parent = loop.parent
        targets = dict.fromkeys(self.successors[one][edge] for one, edge in loop.exits)
        within = [one for one in targets if parent is None or one in parent.blocks]
        return within, len(within) < len(targets)

    def _simplify(self, terms: Iterable[Term]) -> list[Term]:
        """Join terms: ``a and b or a and not b`` is ``a``, ``a or not a and b`` is ``a or b``."""
        waiting = list(terms)
        for number, place in permutations(range(len(waiting)), 2):
            one, other = waiting[number], waiting[place]
            if all(key in other and other[key] <= edges for key, edges in one.items()):
                return self._simplify([*waiting[:place], *waiting[place + 1 :]])  # it asks for more
            joined = self._join(one, other)
            if joined is not None and joined != other:
                return self._simplify([*waiting[:place], joined, *waiting[place + 1 :]])
        return waiting

    def _join(self, one: Term, other: Term) -> Term | None:
        """Let a term be met on the edges of another as well, where that is met in all else."""
        keys = [key for key, edges in one.items() if not (key in other and other[key] <= edges)]
        if len(keys) != 1 or keys[0] not in other:
            return None
        differing = keys[0]
        edges = other[differing] | one[differing]
        if differing.startswith(LEFT):
            targets, has_others = self._targets(self.loop_at[differing[len(LEFT) :]])
            count = 0 if has_others else len(targets)  # some lead out of the loop around it
        else:
            count = len(self.successors[differing])
        if edges == frozenset(range(count)):
            return {key: each for key, each in other.items() if key != differing}
        return {**other, differing: edges}


class Code:
    """A kernel's code. In dependences, a memory is ``*`` and what its address is made from."""

    def __init__(self, module: Module, kernel_name: str, file_name: str) -> None:
        self.module, self.function = module, module.functions[kernel_name]
        self.notes = notes = DebugNotes(module, file_name)
        self.flow = ControlFlow(self.function, notes)
        signature = notes.reference(self.function.notes.get("dbg", -1), "type")
        types = notes.numbers(notes.reference(signature, "types"))  # a kernel returns nothing
        names = (name for _, name in self.function.parameters)
        self.parameter_notes = dict(zip(names, types, strict=False))
        self.instructions = {one.name: one for one in self.flow.list_instructions() if one.name}

    def line_of(self, one: Instruction) -> int:
        """Give the line of an instruction; 0 in an included file."""
        place = self.notes.place(one.note)
        return 0 if place is None else place.line

    def type_of(self, parameter: str) -> TypeNote:
        return self.notes.type_of(self.parameter_notes.get(parameter, -1))

    def name_global(self, text: str) -> str:
        variable = self.module.globals[text]
        note = self.notes.reference(variable.note, "var") if variable.note >= 0 else -1
        name = self.notes.fields(note).get("name") if note >= 0 else None
        if name:
            return name
        return "string literal" if text.startswith("@.str") else text[1:].rpartition(".")[2]

    def bases(self, *values: str) -> set[str]:
        """Give what addresses are made from: variables, parameters, arrays, loaded addresses."""
        found, waiting, seen = set[str](), [*values], set[str]()
        while waiting:
            name = waiting.pop()
            one = self.instructions.get(name)
            if name in seen:
                continue
            seen.add(name)
            if one is not None and one.opcode in _MOVING:
                waiting.append(one.operands[0][1])
            elif one is not None and one.opcode in ("phi", "select"):
                waiting.extend(each for _, each in one.operands)
            else:
                found.update(_VARIABLE.findall(name) if "@" in name else (name,))
        return found

    def roots(self, value: str) -> set[str]:
        """Give the arrays of the work-item's own that an address may lie in."""
        return {
            base for base in self.bases(value)
            if base in self.instructions and self.instructions[base].opcode == "alloca"
        }  # fmt: skip

    def list_inputs(self, one: Instruction) -> Iterator[str]:
        """List the results that an instruction takes, for a phi those too that choose its value."""
        deciding = self.flow.find_branches(one) if one.opcode == "phi" else ()
        conditions = (self.flow.terminator(label).operands[:1] for label in deciding)
        for operands in (one.operands, *conditions):
            yield from (value for _, value in operands if value.startswith("%"))

    def _map_takers(self, loop: Loop | None = None) -> dict[str, list[str]]:
        """Map each result and memory to those that take it, in a loop or in all the code."""
        given = {name for _, name in self.function.parameters} | self.module.globals.keys()
        takers: dict[str, list[str]] = defaultdict(list)
        for one in self.flow.list_instructions(loop):
            pointers = [value for kind, value in one.operands if kind.startswith("ptr")]
            name = name_called(one) if one.opcode == "call" else ""
            if name.startswith("llvm.lifetime"):
                continue
            read: set[str] = set()
            written: list[str] = []
            if one.opcode == "load" or name.startswith(("vload", "atom")):
                read = self.bases(*pointers)
            elif one.opcode == "store":
                written = [one.operands[1][1]]
            elif name.startswith("llvm.mem"):
                read, written = self.bases(*pointers[1:]), pointers[:1]
            elif name:
                written = pointers
                if one.detail in self.module.functions:  # a call that was not inlined
                    read = self.bases(*pointers)
            sources = {f"*{base}" for base in read}
            # In all the code, what a buffer holds depends on no address, and on nothing stored.
            if loop is not None or not read or not read <= given:
                sources.update(each for each in self.list_inputs(one) if each not in written)
            targets = [one.name, *(
                f"*{base}" for base in self.bases(*written)
                if loop is not None or base in self.instructions
            )]  # fmt: skip
            for each in sources:
                takers[each] += targets
        return takers

    @cached_property
    def takers(self) -> Mapping[str, list[str]]:
        return self._map_takers()

    @cached_property
    def tables(self) -> Mapping[str, str]:
        """Constants that arrays of the work-item's own are set to if nothing else writes there."""
        sources: dict[str, list[str]] = defaultdict(list)
        for one in self.flow.list_instructions():
            pointers = [value for kind, value in one.operands if kind.startswith("ptr")]
            if one.opcode in _READING or one.detail.startswith("llvm.lifetime"):
                continue
            is_copy = one.detail.startswith("llvm.memcpy")
            for base in self.bases(*pointers[: 1 if is_copy else None]):
                sources[base].append(pointers[1] if is_copy else "")
        return {base: own[0] for base, own in sources.items()
                if len(own) == 1 and own[0].startswith(INITIAL)}  # fmt: skip

    @cached_property
    def held(self) -> Mapping[str, set[str]]:
        """Buffers from which results come, and what memories of the work-item's own hold."""
        found: dict[str, set[str]] = defaultdict(set)
        takers, function = self.takers, self.function
        given = zip(function.parameters, function.by_value, strict=True)
        buffers = {name: name[1:] for (_, name), is_copy in given if not is_copy} | {
            name: self.name_global(name)
            for name in self.module.globals if not name.startswith(INITIAL)
        }  # fmt: skip
        for name, buffer in buffers.items():
            for taker in _reach(takers, f"*{name}"):
                found[taker].add(buffer)
        return found

    def find_dependent(self, loop: Loop, seed: str) -> set[str]:
        return _reach(self._map_takers(loop), seed)

    def changes_itself(self, loop: Loop, labels: Iterable[str]) -> bool:
        """Tell whether branches ask for what an iteration makes of what the last one left."""
        waiting = [value for label in labels
                   for _, value in self.flow.terminator(label).operands[:1]]  # fmt: skip
        takers, asked = self._map_takers(loop), set[str]()
        while waiting:
            name = waiting.pop()
            one = self.instructions.get(name)
            if one is None or name in asked or one.block not in loop.blocks:
                continue
            asked.add(name)
            waiting.extend(self.list_inputs(one))
            inner = self.flow.loop_at.get(one.block)
            if one.opcode != "phi" or inner is None:
                continue
            again = [value for (_, value), label in zip(one.operands, one.labels, strict=True)
                     if label in inner.blocks and value != name]  # fmt: skip
            if again and not _reach(takers, name).isdisjoint(again):
                return True
        return False


def _reach(takers: Mapping[str, list[str]], start: str) -> set[str]:
    found, waiting = set[str](), [start]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += takers.get(name, ())
    return found
