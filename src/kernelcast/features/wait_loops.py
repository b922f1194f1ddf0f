"""Loops that go on until somebody else writes to memory, or for ever.

A loop that changes nothing of what its end depends on ends at once or waits. Where it waits for a
work-group that is not among the sampled ones, it never ends.
"""

import re
from dataclasses import dataclass

from kernelcast.features import builtins
from kernelcast.features.analysis import Analysis
from kernelcast.features.ir.control import Loop
from kernelcast.features.ir.module import Instruction
from kernelcast.features.ir.scalars import name_called
from kernelcast.features.ir.slices import Code

COUNTING = re.compile(r"atom(?:ic)?_(?:fetch_)?(inc|dec|add|sub)(?:_explicit)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitLoop:
    """A loop that need not end."""

    line: int
    is_endless: bool

    def __str__(self) -> str:
        where = f"line {self.line}: the loop" if self.line else "a loop of an included file"
        if self.is_endless:
            return f"{where} has no end"
        return f"{where} ends when somebody else writes to memory"


def find_wait_loop(analysis: Analysis) -> WaitLoop | None:
    """Find a loop that changes nothing of what its end depends on."""
    code = analysis.code
    for loop in code.flow.loops:
        if not loop.exits or _waits(code, loop):
            line = code.evaluator.loop_line(loop.header)
            return WaitLoop(line=line, is_endless=not loop.exits)
    return None


def _waits(code: Code, loop: Loop) -> bool:
    instructions = [*code.list_instructions(loop)]
    touching = [one for one in instructions if _touches(one)]
    if not touching or not all(map(_changes_nothing, touching)):
        return False
    branches = [
        label for label in loop.blocks if len(set(code.flow.successors[label])) > 1
    ]  # fmt: skip
    return not code.changes_itself(loop, branches)


def _touches(one: Instruction) -> bool:
    if one.opcode in ("load", "store", "atomicrmw", "cmpxchg"):
        return True
    name = name_called(one) if one.opcode == "call" else ""
    return builtins.is_atomic(name) or builtins.find_vector_access(name) is not None


def _changes_nothing(one: Instruction) -> bool:
    """Tell a load, and an atomic operation that does the same each time, as a lock's."""
    if one.opcode != "call":
        return one.opcode == "load"
    name = name_called(one)
    access = builtins.find_vector_access(name)
    if access is not None:
        return not access[0]
    if name.startswith(("atomic_store", "atomic_init")):
        return False
    operands = [value for kind, value in one.operands if not kind.startswith("ptr")]
    if COUNTING.fullmatch(name):
        return operands[:1] == ["0"]
    return not any(value.startswith("%") for value in operands)
