"""How the lanes of a vector touch memory, and what each access of a launch touches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from kernelcast.analytic.cpu.opencl.addresses import (
    ABSENT,
    GroupAddresses,
    GroupEvaluator,
    read_recorded,
)
from kernelcast.analytic.cpu.opencl.execution import Execution
from kernelcast.analytic.cpu.opencl.index_space import Groups, Looked, Place
from kernelcast.expressions import Expr, Symbol, SymbolKind, Value
from kernelcast.expressions.accesses import AccessKind, LoopFacts, MemoryAccess
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.operations import MemoryOperation, MemorySpace

_SCALAR_BYTES = 8
"""Widest element that fits a lane."""
_OF_ITEMS = (SymbolKind.GLOBAL_ID, SymbolKind.LOCAL_ID)


class LanePattern(StrEnum):
    """Where the lanes of a vector go."""

    UNIFORM = "uniform"
    """All to one address: one scalar access."""
    CONTIGUOUS = "contiguous"
    """Side by side: one vector access."""
    INTERLEAVED = "interleaved"
    """Vectors side by side: whole registers, whose elements then go to their lanes by shuffles."""
    SCATTERED = "scattered"
    """One access per lane."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AccessPattern:
    """An access of a launch with its addresses.

    Parameters
    ----------
    access : MemoryAccess
        Which.
    groups : dict of (int, int, int) to GroupAddresses
        By work-group, where there is a formula; empty else.
    recorded : tuple of GroupAddresses
        Of sampled work-groups, where there is none.
    lanes : LanePattern
        Where the lanes of a vector go.
    executions : float
        Per work-item, as the kernel's counts say.
    stride : int
        Numbers from each lane to the next, where they are as far apart; else 0.
    is_masked : bool
        Whether some lanes may leave it out while others do not.
    issued : float
        Iterations of a vector per iteration of its lanes: above 1 where lanes wait for the one
        that runs longest.
    """

    access: MemoryAccess
    groups: dict[Place, GroupAddresses]
    recorded: tuple[GroupAddresses, ...]
    lanes: LanePattern
    executions: float
    stride: int = 0
    is_masked: bool = False
    issued: float = 1.0

    @property
    def is_local(self) -> bool:
        """Whether it goes to memory that no other work-group sees."""
        return self.access.space in (MemorySpace.LOCAL, MemorySpace.PRIVATE)


def find_patterns(launch: ModelledLaunch, execution: Execution) -> list[AccessPattern]:
    """Evaluate all accesses of a launch for some work-groups and their neighbours.

    Parameters
    ----------
    launch : ModelledLaunch
        The launch.
    execution : Execution
        How it is run.

    Raises
    ------
    InputError
        If an address is not known and was not recorded either.
    """
    grid = Groups.of(launch.ndrange)
    looked = grid.look()
    bound = grid.bind(launch, [*looked.shares])
    evaluator = GroupEvaluator(launch, bound)
    lanes = _Lanes(execution, bound.values)
    found = [_find(one, launch, evaluator, lanes, looked) for one in launch.accesses]
    return _scale([one for one in found if one is not None], launch)


def _find(
    access: MemoryAccess,
    launch: ModelledLaunch,
    evaluator: GroupEvaluator,
    lanes: "_Lanes",
    looked: Looked,
) -> AccessPattern | None:
    width = lanes.execution.width
    if access.offset_bytes is None:
        tables = read_recorded(access, launch)
        if not tables and access.space is not MemorySpace.LOCAL:
            raise access.refuse_unknown(launch.kernel)
        items = sum(len(one.table) for one in tables)
        if tables:
            executions = sum(one.executions for one in tables) / items
        else:  # how often it is executed does not depend on where it goes
            executions = _count_executions(evaluator.evaluate(access, Expr.constant(0)), looked)
        return AccessPattern(
            access=access, groups={}, recorded=tuple(tables), lanes=LanePattern.SCATTERED,
            executions=executions,
            is_masked=_is_masked(access), issued=_compare_lanes(tables, width),
        )  # fmt: skip
    groups = evaluator.evaluate(access, access.offset_bytes)
    executions = _count_executions(groups, looked)
    where, stride = LanePattern.SCATTERED, 0
    iterates_together = lanes.execution.iterates_together(executions)
    if width == 1 or iterates_together or not _parts_lanes(access.loops):
        where, stride = lanes.find(access, groups)
    return AccessPattern(
        access=access,
        groups=groups,
        recorded=(),
        lanes=where,
        stride=stride,
        executions=executions,
        is_masked=_is_masked(access),
    )


def _count_executions(groups: Mapping[Place, GroupAddresses], looked: Looked) -> float:
    """Give the executions per work-item, in the mean."""
    counted = [(groups[place], times) for place, times in looked.shares.items() if times]
    items = sum(len(one.table) * times for one, times in counted)
    return sum(one.executions * times for one, times in counted) / items


class _Lanes:
    """Finds where lanes go, once for accesses that are as far from each other everywhere."""

    def __init__(self, execution: Execution, bound: Mapping[Symbol, Value]) -> None:
        self.execution = execution
        self._bound = bound
        self._known: dict[object, tuple[LanePattern, int]] = {}

    def find(
        self, access: MemoryAccess, groups: Mapping[Place, GroupAddresses]
    ) -> tuple[LanePattern, int]:
        """Find where the lanes of an access go, and how many numbers they are apart."""
        width, offset = self.execution.width, access.offset_bytes
        if width == 1:
            return LanePattern.CONTIGUOUS, 1
        if offset is None or not _is_plain(offset):
            return LanePattern.SCATTERED, 0
        key = access.loops, access.guard, offset - offset.constant_term, access.bytes
        if key not in self._known:
            is_paired = any(_has_neighbours(one, width) for one in groups.values())
            step = _find_step(offset, self._bound) if is_paired else 0
            self._known[key] = _name_step(step, access.bytes)
        found = self._known[key]
        is_gathered = self.execution.gathers_narrowed and access.is_narrowed
        if is_gathered and found[0] is not LanePattern.UNIFORM:
            return LanePattern.SCATTERED, 0
        return found


def _has_neighbours(group: GroupAddresses, width: int) -> bool:
    """Tell whether two lanes of a vector that are side by side ever execute an access at once."""
    if group.is_full:
        return True
    whole = len(group.table) // width * width
    is_there = (group.table[:whole] != ABSENT).reshape(-1, width, group.table.shape[1])
    return bool((is_there[:, 1:] & is_there[:, :-1]).any())


def _find_step(offset: Expr, bound: Mapping[Symbol, Value]) -> int | None:
    """Give the bytes from one lane to the next; None where they are not always the same."""
    step = Expr.constant(0)
    for kind in _OF_ITEMS:
        parts = offset.split(Symbol(kind, axis=0))
        if parts is None:
            return None
        offset, slope = parts
        step += slope
    found = step.evaluate(bound) if step.is_parameter else None
    return found if isinstance(found, int) else None


def _name_step(step_bytes: int | None, size_bytes: int) -> tuple[LanePattern, int]:
    if step_bytes is None:
        return LanePattern.SCATTERED, 0
    stride, rest = divmod(step_bytes, size_bytes)
    if not stride and not rest:
        return LanePattern.UNIFORM, 0
    if stride != 1 or rest:
        return LanePattern.SCATTERED, 0 if rest else stride
    return LanePattern.CONTIGUOUS if size_bytes <= _SCALAR_BYTES else LanePattern.INTERLEAVED, 1


def _is_plain(offset: Expr) -> bool:
    """Tell whether a compiler sees how far neighbours are apart: no choice depends on their id."""
    atoms = (atom for product, _ in offset.products for atom in product)
    return not any(
        one.kind in _OF_ITEMS and one.axis == 0
        for atom in atoms
        if not isinstance(atom, Symbol)
        for one in atom.symbols()
    )


def _is_divergent(loop: LoopFacts) -> bool:
    """Tell whether neighbours may leave a loop at different times."""
    if loop.trip_count is None:
        return True
    return any(one.kind in _OF_ITEMS for one in loop.trip_count.symbols())


def _parts_lanes(loops: Sequence[LoopFacts]) -> bool:
    """Tell whether compilers no longer see lanes side by side within loops.

    They still do in an outermost loop that neighbours leave at different times, if its trip count
    is a formula.
    """
    return any(one.trip_count is None for one in loops[:1]) or any(map(_is_divergent, loops[1:]))


def _is_masked(access: MemoryAccess) -> bool:
    """Tell whether a condition on data or ids decides which lanes execute an access."""
    guard = access.guard
    return (
        not guard.is_exact
        or any(one.kind in _OF_ITEMS for one in guard.symbols())
        or any(_is_divergent(one) for one in access.loops)
    )


def _compare_lanes(tables: list[GroupAddresses], width: int) -> float:
    """Compare the longest lane of each vector with the mean of its lanes."""
    longest = total = 0.0
    for one in tables:
        counts = (one.table != ABSENT).sum(axis=1)
        whole = len(counts) // width * width
        longest += float(counts[:whole].reshape(-1, width).max(axis=1).sum()) * width
        total += float(counts[:whole].sum())
    return longest / total if total else 1.0


def _scale(patterns: list[AccessPattern], launch: ModelledLaunch) -> list[AccessPattern]:
    """Make executions agree with the kernel's counts, which know of conditions on data."""
    modelled: dict[MemoryOperation, float] = {}
    keys = [_key(one.access) for one in patterns]
    for key, one in zip(keys, patterns, strict=True):
        if key is not None:
            modelled[key] = modelled.get(key, 0.0) + one.executions
    scaled = []
    for key, one in zip(keys, patterns, strict=True):
        counted = launch.executed.memory.get(key) if key is not None else None
        if counted is not None and key is not None and modelled[key] > 0:
            one = replace(one, executions=one.executions * counted / modelled[key])
        scaled.append(one)
    return scaled


def _key(access: MemoryAccess) -> MemoryOperation | None:
    if access.kind is AccessKind.ATOMIC:
        return None
    is_store = access.kind is AccessKind.STORE
    return MemoryOperation(space=access.space, is_store=is_store, bytes=access.bytes)
