"""A kernel's code, and what depends on what in it: by data, by branches, and through memory."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final

from kernelcast.compiling.ir import Instruction, Module
from kernelcast.features.ir.control import ControlFlow, Loop
from kernelcast.features.ir.debug import DebugNotes, TypeNote
from kernelcast.features.ir.operations import name_called

INITIAL: Final = "@__const."
"""Begins the names of what variables of functions are set to at first."""
_VARIABLE: Final = re.compile(r"@[\w.$]+")
_MOVING: Final = frozenset(("getelementptr", "addrspacecast", "bitcast", "freeze"))

_READING: Final = _MOVING | {"load", "phi", "select", "icmp"}


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
