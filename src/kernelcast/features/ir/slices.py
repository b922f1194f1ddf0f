"""What values of a loop depend on: by data, by branches, and through memory."""

from collections.abc import Iterable
from dataclasses import dataclass

from kernelcast.features.ir.control import ControlFlow, Loop
from kernelcast.features.ir.debug import DebugNotes
from kernelcast.features.ir.module import Instruction
from kernelcast.features.ir.scalars import Evaluator
from kernelcast.features.ir.values import Pointer, places_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A kernel's code, and what its values are."""

    flow: ControlFlow
    notes: DebugNotes
    evaluator: Evaluator

    def list_memories(self, value: str, block: str) -> frozenset[str]:
        """Name the buffers and arrays that an address lies in; ``*`` where nobody knows."""
        place = self.evaluator.operand(("ptr", value), block)
        return frozenset(
            one.memory.name if isinstance(one, Pointer) else "*" for _, one in places_of(place)
        )

    def find_dependent(self, loop: Loop, seeds: Iterable[str]) -> frozenset[str]:
        """Find the results of a loop's instructions that depend on some of them."""
        found, memories = set(seeds), set[str]()
        has_changed = True
        while has_changed:
            has_changed = False
            for one in self.flow.list_instructions(loop):
                if one.opcode == "store":
                    value, address = one.operands
                    if value[1] in found:
                        names = self.list_memories(address[1], one.block) - memories
                        memories |= names
                        has_changed |= bool(names)
                    continue
                if not one.name or one.name in found:
                    continue
                if any(value in found for _, value in one.operands) or (
                    one.opcode == "phi" and any(
                        value in found for key in self.flow.find_branches(one)
                        for _, value in self.flow.terminator(key).operands[:1])
                ) or (
                    one.opcode == "load"
                    and self.list_memories(one.operands[0][1], one.block) & memories
                ):  # fmt: skip
                    found.add(one.name)
                    has_changed = True
        return frozenset(found)

    def find_asked(self, loop: Loop, labels: Iterable[str]) -> frozenset[str]:
        """Find the results of a loop's instructions on which branches depend."""
        waiting = [value for label in labels
                   for _, value in self.flow.terminator(label).operands[:1]]  # fmt: skip
        found: set[str] = set()
        while waiting:
            name = waiting.pop()
            one = self.evaluator.instructions.get(name)
            if one is None or name in found or one.block not in loop.blocks:
                continue
            found.add(name)
            waiting.extend(value for _, value in one.operands)
            if one.opcode == "phi":
                for key in self.flow.find_branches(one):
                    waiting.extend(value for _, value in self.flow.terminator(key).operands[:1])
        return frozenset(found)

    def changes_itself(self, loop: Loop, labels: Iterable[str]) -> bool:
        """Tell whether branches ask for what an iteration makes of what the last one left."""
        asked = self.find_asked(loop, labels)
        for name in asked:
            one = self.evaluator.instructions[name]
            inner = self.flow.loop_at.get(one.block)
            if one.opcode != "phi" or inner is None:
                continue
            again = [value for (_, value), label in zip(one.operands, one.labels, strict=True)
                     if label in inner.blocks]  # fmt: skip
            if any(value != name for value in again) and not (
                self.find_dependent(loop, (name,)).isdisjoint(again)
            ):  # fmt: skip
                return True
        return False

    def line_of(self, one: Instruction) -> int:
        """Give the line of an instruction; 0 in an included file."""
        place = self.notes.place(one.note)
        return 0 if place is None else place.line
