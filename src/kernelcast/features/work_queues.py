"""Loops in which work-groups fetch their work from a counter that all of them share.

Such persistent kernels do all the work however few of their work-groups run: a sampled one does
everybody's. What tells them is the loop's end: it depends on what an atomic addition to one place
of global memory has returned.

A loop that changes nothing of what its end depends on ends at once or waits. Where it waits for a
work-group that is not among the sampled ones, it never ends.
"""

import re

import numpy as np

from kernelcast.compiling.ir import Instruction
from kernelcast.expressions import EvaluationError, Expr, Symbol, SymbolKind
from kernelcast.expressions.accesses import AccessKind
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.analysis import open_code, read_facts
from kernelcast.features.ir.control import Loop
from kernelcast.features.ir.operations import VECTOR_ACCESS, is_atomic, name_called
from kernelcast.features.ir.scalars import Evaluator
from kernelcast.features.ir.values import Pointer, places_of
from kernelcast.records.kernel import Kernel
from kernelcast.records.operations import MemorySpace

_COUNTING = re.compile(r"atom(?:ic)?_(?:fetch_)?(inc|dec|add|sub)(?:_explicit)?")
_SHARED = (MemorySpace.GLOBAL, MemorySpace.GENERIC)
_OWN = frozenset((SymbolKind.GLOBAL_ID, SymbolKind.CONTENT))


def _name_loop(code: Evaluator, loop: Loop) -> str:
    line = code.loop_line(loop.header)
    return f"line {line}: the loop" if line else "a loop of an included file"


def find_work_queue(kernel: Kernel) -> str:
    """Describe a loop that fetches work from a shared counter; locks and full outputs are none."""
    facts = read_facts(kernel)
    atomics = (one for one in facts.accesses if one.kind is AccessKind.ATOMIC)
    if not any(one.space in _SHARED for one in atomics):
        return ""
    code = open_code(kernel)
    for loop in code.flow.loops:
        counters = [
            found for one in code.flow.list_instructions(loop)
            if (found := _read_counter(code, one, loop)) is not None
        ]  # fmt: skip
        ways = {(place, is_down) for _, place, is_down in counters}
        for call, place, is_down in counters:
            gives_back = (place, not is_down) in ways
            if not gives_back and _ends_by(code, loop, call, place.memory.name, facts):
                line = code.line_of(call)
                by = f" in line {line}" if line else ""
                return (
                    f"{_name_loop(code, loop)} ends by what {name_called(call)}{by} "
                    "returns, a counter that all work-groups share"
                )
    return ""


def _read_counter(
    code: Evaluator, one: Instruction, loop: Loop
) -> tuple[Instruction, Pointer, bool] | None:
    """Read an atomic addition to a place that work-groups share, and whether it counts down."""
    operation = _COUNTING.fullmatch(name_called(one)) if one.opcode == "call" else None
    if operation is None:
        return None
    places = [*places_of(code.operand(one.operands[0], one.block))]
    place = places[0][1]
    numbers = [value for kind, value in one.operands[1:] if not kind.startswith("ptr")]
    step = numbers[0] if numbers and operation[1] in ("add", "sub") else "1"
    if len(places) > 1 or not isinstance(place, Pointer) or place.memory.space not in _SHARED:
        return None
    if step == "0" or not isinstance(place.offset, Expr):  # adding 0 is reading
        return None
    symbols = place.offset.symbols()
    if any(one.kind in _OWN or one == code.symbol(loop) for one in symbols):
        return None
    if groups := [one for one in symbols if one.kind is SymbolKind.GROUP_ID]:
        # Queues that some work-groups share, as by `get_group_id(0) % queues`.
        at = np.indices((64,) * len(groups)).reshape(len(groups), -1)
        bindings: dict[Symbol, np.ndarray] = dict(zip(groups, at, strict=True))
        try:
            values = place.offset.evaluate(bindings)
        except EvaluationError:
            return None
        if np.unique(np.asarray(values)).size == at.shape[1]:
            return None
    is_down = (operation[1] in ("dec", "sub")) != step.startswith("-")
    return one, place, is_down


def _ends_by(
    code: Evaluator, loop: Loop, call: Instruction, memory: str, facts: KernelFacts
) -> bool:
    dependent = code.find_dependent(loop, call.name)
    labels = {label for label, _ in loop.exits}
    for label in [*labels]:
        for term in code.flow.terms[label] or ():
            labels.update(key for key in term if key in loop.blocks)
    asking = [
        label for label in labels
        if any(value in dependent for _, value in code.flow.terminator(label).operands[:1])
    ]  # fmt: skip
    if loop.test in asking:
        return True
    if not asking:
        return False
    # Where the loop counts by itself, what a counter returns may end it early, as where an output
    # is full, and is not what keeps it going.
    ends_itself = bool(loop.test) and code.changes_itself(loop, (loop.test,))
    return not ends_itself or any(
        one.kind is AccessKind.LOAD and memory in one.sources for one in facts.accesses
    )


def find_wait_loop(kernel: Kernel) -> str:
    """Describe a loop that changes nothing of what its end depends on; empty if there is none."""
    code = open_code(kernel)
    for loop in code.flow.loops:
        if not loop.exits:
            return f"{_name_loop(code, loop)} has no end"
        changes = {_changes_memory(one) for one in code.flow.list_instructions(loop)}
        branches = [label for label in loop.blocks if len(set(code.flow.successors[label])) > 1]
        if changes - {None} == {False} and not code.changes_itself(loop, branches):
            return f"{_name_loop(code, loop)} ends when other work-items write to memory"
    return ""


def _changes_memory(one: Instruction) -> bool | None:
    """Tell what changes memory from what reads it or locks; None for what does not touch it."""
    if one.opcode != "call":
        return {"load": False, "store": True, "atomicrmw": True, "cmpxchg": True}.get(one.opcode)
    name = name_called(one)
    if VECTOR_ACCESS.fullmatch(name):
        return name.startswith("vstore")
    if not is_atomic(name):
        return None
    operands = [value for kind, value in one.operands if not kind.startswith("ptr")]
    if _COUNTING.fullmatch(name):
        return operands[:1] != ["0"]
    is_set = name.startswith(("atomic_store", "atomic_init"))
    return is_set or any(value.startswith("%") for value in operands)
