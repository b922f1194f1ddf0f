"""How the lanes of a vector touch memory, and what each access of a launch touches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from kernelcast.analytic.addresses import (
    GroupAddresses,
    GroupEvaluator,
    Groups,
    Place,
    read_recorded,
)
from kernelcast.expressions import Expr, Symbol, SymbolKind, Value
from kernelcast.expressions.accesses import AccessKind, LoopFacts, MemoryAccess
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.operations import MemoryOperation, MemorySpace

_OF_ITEMS = (SymbolKind.GLOBAL_ID, SymbolKind.LOCAL_ID)


class LanePattern(StrEnum):
    """Where the lanes of a vector go."""

    UNIFORM = "uniform"
    """All to one address: one scalar access."""
    CONTIGUOUS = "contiguous"
    """Side by side: one vector access."""
    SCATTERED = "scattered"
    """One access per lane."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AccessPattern:
    """An access of a launch with its addresses."""

    access: MemoryAccess
    groups: Mapping[Place, GroupAddresses]
    """By work-group, where there is a formula; empty else."""
    recorded: tuple[GroupAddresses, ...]
    """Of sampled work-groups, where there is none."""
    lanes: LanePattern
    executions: float
    """Per work-item, as the kernel's counts say."""
    is_masked: bool = False
    """Whether some lanes may leave it out while others do not."""

    @property
    def is_local(self) -> bool:
        """Whether it goes to memory that no other work-group sees."""
        return self.access.space in (MemorySpace.LOCAL, MemorySpace.PRIVATE)


def find_patterns(
    launch: ModelledLaunch, width: int, *, gathers_narrowed: bool = False
) -> list[AccessPattern]:
    """Evaluate all accesses of a launch for some work-groups and their neighbours."""
    evaluator = GroupEvaluator(launch, Groups(launch.ndrange).every)
    found = [_find(one, launch, evaluator, width) for one in launch.accesses]
    if gathers_narrowed and width > 1:
        found = [
            replace(one, lanes=LanePattern.SCATTERED)
            if one.access.is_narrowed and one.lanes is LanePattern.CONTIGUOUS
            else one
            for one in found
        ]
    # Executions agree with the kernel's counts, which know of conditions on data.
    modelled: dict[MemoryOperation | None, float] = {}
    keys = [_key(one.access) for one in found]
    for key, one in zip(keys, found, strict=True):
        modelled[key] = modelled.get(key, 0.0) + one.executions
    for at, (key, one) in enumerate(zip(keys, found, strict=True)):
        counted = None if key is None else launch.executed.memory.get(key)
        if counted is not None and modelled[key] > 0:
            found[at] = replace(one, executions=one.executions * counted / modelled[key])
    return found


def _find(
    access: MemoryAccess, launch: ModelledLaunch, evaluator: GroupEvaluator, width: int
) -> AccessPattern:
    groups: Mapping[Place, GroupAddresses] = {}
    recorded: Sequence[GroupAddresses] = ()
    lanes = LanePattern.SCATTERED
    if access.offset_bytes is not None:
        groups = evaluator.evaluate(access, access.offset_bytes)
        # Compilers still see lanes side by side in an outermost loop that neighbours leave at
        # different times, if its trip count is a formula.
        first, *inner = access.loops or (None,)
        if not (first and first.trip_count is None) and not any(map(_is_divergent, inner)):
            lanes = _find_lanes(access.offset_bytes, access.bytes, evaluator.bound)
        tables = [*groups.values()]
    else:
        recorded = tables = read_recorded(access, launch)
        if not tables:
            if access.space is not MemorySpace.LOCAL:
                raise access.refuse_unknown(launch.kernel)
            # How often it is executed does not depend on where it goes.
            tables = [*evaluator.evaluate(access, Expr.constant(0)).values()]
    # Tell whether a condition on data or ids decides which lanes execute an access.
    guard = access.guard
    return AccessPattern(
        access=access,
        groups=groups,
        recorded=tuple(recorded),
        lanes=LanePattern.CONTIGUOUS if width == 1 and groups else lanes,
        executions=sum(one.executions for one in tables) / sum(len(one.table) for one in tables),
        is_masked=not guard.is_exact
        or any(one.kind in _OF_ITEMS for one in guard.symbols())
        or any(_is_divergent(one) for one in access.loops),
    )


def _find_lanes(offset: Expr, size_bytes: int, bound: Mapping[Symbol, Value]) -> LanePattern:
    """Find where the lanes go by the bytes from one to the next, if these are always the same."""
    step = Expr.constant(0)
    for kind in _OF_ITEMS:
        parts = offset.split(Symbol(kind, axis=0))
        if parts is None:
            return LanePattern.SCATTERED
        offset, slope = parts
        step += slope
    found = step.evaluate(bound) if step.is_parameter else None
    if not isinstance(found, int) or found not in (0, size_bytes):
        return LanePattern.SCATTERED
    return LanePattern.CONTIGUOUS if found else LanePattern.UNIFORM


def _is_divergent(loop: LoopFacts) -> bool:
    """Tell whether neighbours may leave a loop at different times."""
    if loop.trip_count is None:
        return True
    return any(one.kind in _OF_ITEMS for one in loop.trip_count.symbols())


def _key(access: MemoryAccess) -> MemoryOperation | None:
    if access.kind is AccessKind.ATOMIC:
        return None
    is_store = access.kind is AccessKind.STORE
    return MemoryOperation(space=access.space, is_store=is_store, bytes=access.bytes)
