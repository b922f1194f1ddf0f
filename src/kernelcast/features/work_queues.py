"""Loops in which work-groups fetch their work from a counter that all of them share.

Such persistent kernels do all the work however few of their work-groups run: a sampled one does
everybody's. What tells them is the loop's end: it depends on what an atomic addition to one place
of global memory has returned.
"""

from dataclasses import dataclass

import numpy as np

from kernelcast.expressions import EvaluationError, Expr, Symbol, SymbolKind
from kernelcast.expressions.accesses import AccessKind
from kernelcast.features.analysis import Analysis
from kernelcast.features.ir.control import Loop
from kernelcast.features.ir.module import Instruction
from kernelcast.features.ir.scalars import name_called
from kernelcast.features.ir.slices import Code
from kernelcast.features.ir.values import Pointer, places_of
from kernelcast.features.wait_loops import COUNTING
from kernelcast.records.operations import MemorySpace

_DOWN = ("dec", "sub")
_SHARED = (MemorySpace.GLOBAL, MemorySpace.GENERIC)
_OWN = frozenset((SymbolKind.GLOBAL_ID, SymbolKind.CONTENT))
_GROUPS_TRIED_EACH = 64  # in each dimension


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkQueue:
    """A loop whose end depends on a shared counter that an operation changes."""

    line: int
    operation: str
    operation_line: int

    def __str__(self) -> str:
        where = f"line {self.line}: the loop" if self.line else "a loop of an included file"
        by = f"{self.operation} in line {self.operation_line}"
        return (
            f"{where} ends by what {by if self.operation_line else self.operation} returns, a "
            "counter that all work-groups share"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Counter:
    """An atomic addition to a place that all work-groups share."""

    call: Instruction
    place: Pointer
    is_down: bool


def find_work_queue(analysis: Analysis) -> WorkQueue | None:
    """Find a loop that fetches work from a shared counter; locks and full outputs are none."""
    atomics = (one for one in analysis.facts.accesses if one.kind is AccessKind.ATOMIC)
    if not any(one.space in _SHARED for one in atomics):
        return None
    code = analysis.code
    for loop in code.flow.loops:
        counters = [
            found for one in code.list_instructions(loop)
            if (found := _read_counter(code, one, loop)) is not None
        ]  # fmt: skip
        ways = {(one.place, one.is_down) for one in counters}
        for counter in counters:
            gives_back = (counter.place, not counter.is_down) in ways
            if not gives_back and _ends_by(code, loop, counter, analysis):
                return WorkQueue(
                    line=code.evaluator.loop_line(loop.header),
                    operation=name_called(counter.call), operation_line=code.line_of(counter.call),
                )  # fmt: skip
    return None


def _read_counter(code: Code, one: Instruction, loop: Loop) -> _Counter | None:
    """Read an atomic addition to one place."""
    operation = COUNTING.fullmatch(name_called(one)) if one.opcode == "call" else None
    if operation is None:
        return None
    places = [*places_of(code.evaluator.operand(one.operands[0], one.block))]
    place = places[0][1]
    numbers = [value for kind, value in one.operands[1:] if not kind.startswith("ptr")]
    step = numbers[0] if numbers and operation[1] in ("add", "sub") else "1"
    if len(places) > 1 or not isinstance(place, Pointer) or place.memory.space not in _SHARED:
        return None
    if step == "0" or not _is_shared(place.offset, code, loop):  # adding 0 is reading
        return None
    is_down = (operation[1] in _DOWN) != step.startswith("-")
    return _Counter(call=one, place=place, is_down=is_down)


def _is_shared(offset: object, code: Code, loop: Loop) -> bool:
    """Tell whether an address is known to be the same for several work-groups, again and again."""
    if not isinstance(offset, Expr):
        return False
    symbols = offset.symbols()
    if any(one.kind in _OWN or one == code.evaluator.symbol(loop) for one in symbols):
        return False
    groups = [one for one in symbols if one.kind is SymbolKind.GROUP_ID]
    if not groups:
        return True
    # Queues that some work-groups share, as by `get_group_id(0) % queues`.
    places = np.indices((_GROUPS_TRIED_EACH,) * len(groups)).reshape(len(groups), -1)
    bindings: dict[Symbol, np.ndarray] = dict(zip(groups, places, strict=True))
    try:
        values = offset.evaluate(bindings)
    except EvaluationError:
        return False
    return bool(np.unique(np.asarray(values)).size < places.shape[1])


def _ends_by(code: Code, loop: Loop, counter: _Counter, analysis: Analysis) -> bool:
    """Tell whether a loop ends by what a counter returned."""
    dependent = code.find_dependent(loop, (counter.call.name,))
    labels = _find_leaving(code, loop)
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
        one.kind is AccessKind.LOAD and counter.place.memory.name in one.sources
        for one in analysis.facts.accesses
    )


def _find_leaving(code: Code, loop: Loop) -> set[str]:
    """Find the blocks whose branches decide whether a loop is left."""
    found = {label for label, _ in loop.exits}
    for label in [*found]:
        for term in code.flow.terms(label) or ():
            found.update(key for key in term if key in loop.blocks)
    return found
