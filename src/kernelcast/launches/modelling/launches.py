"""Launches as analytic models see them, from a kernel's source or from accesses written down; with
other local sizes, and with several updates per work-item: folded along an axis."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from kernelcast.analytic.gpu.hit_rates import HitRates
from kernelcast.expressions import (
    TRUE,
    And,
    Comparison,
    Condition,
    Expr,
    Or,
    Relation,
    Symbol,
    SymbolKind,
    conjunction,
    disjunction,
    less,
)
from kernelcast.expressions.accesses import AccessKind, MemoryAccess, ModelledLaunch
from kernelcast.expressions.axes import bind_names
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.expressions.point_sets import split_into_boxes
from kernelcast.features.analysis import read_facts
from kernelcast.features.counting.static import bind_scalars, choose_work_groups, count_statically
from kernelcast.features.counting.summary import count_unjumped, doubt_counts, summarise
from kernelcast.features.written_accesses import WrittenKernel
from kernelcast.launches.source_check import refuse_persistent
from kernelcast.records.arguments import BufferArgument, LocalArgument
from kernelcast.records.errors import InputError, SignatureError
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import (
    MemoryOperation,
    MemorySpace,
    OperationCounts,
    add_weighted,
)
from kernelcast.records.problem import Problem
from kernelcast.records.software_counters import RecordedAddresses, SoftwareCounters

Folds = tuple[tuple[int, int], ...]
"""Axes, and how many updates each work-item computes along them."""
OF_WORK_GROUPS = frozenset({
    SymbolKind.LOCAL_ID, SymbolKind.GROUP_ID, SymbolKind.LOCAL_SIZE, SymbolKind.GROUP_COUNT,
})  # fmt: skip
"""What an address may name that changes with the shape of work-groups."""
AXES = "xyz"


@dataclass(slots=True, kw_only=True, eq=False)
class ModelledKernel:
    """A kernel with its arguments and its own index space, to be launched in many ways."""

    name: str
    facts: KernelFacts
    ndrange: NDRange
    """One work-item per update."""
    scalars: Mapping[str, int]
    buffers: Mapping[str, int]
    alignments: Mapping[str, int] = field(default_factory=dict)
    """Offsets of buffers from a 128-byte boundary, in bytes, where not 0."""
    local_bytes: int
    problem: Problem | None = None
    folds: Folds = ()
    """Axes and updates per work-item, unless another folding is asked for."""
    registers: int | None = None
    counters: SoftwareCounters | None = None
    """What a work-item executes; counted from the source where it is None."""
    recorded: RecordedAddresses | None = None
    """Addresses of sampled work-groups, of the kernel's own local size."""
    hit_rates: HitRates | None = None

    @property
    def is_cooperative(self) -> bool:
        """Whether work-items share local memory, so that the source is made for a local size."""
        return self.local_bytes > 0 or any(
            one.space is MemorySpace.LOCAL for one in self.facts.accesses
        )

    @property
    def is_for_one_local_size(self) -> bool:
        """Whether the source, as far as it is followed, is right for the given local size only."""
        # It is if work-items share local memory, or a work-group has a row of its own.
        used = (one.offset_bytes.symbols() for one in self.facts.accesses if one.offset_bytes)
        kinds = ({symbol.kind for symbol in one} for one in used)
        return self.is_cooperative or any(
            SymbolKind.GROUP_ID in one and SymbolKind.LOCAL_SIZE not in one for one in kinds
        )

    def launch(
        self, local_size: tuple[int, ...] | None = None, folds: Folds | None = None
    ) -> ModelledLaunch:
        """Describe the launch with a local size and a folding, its own when left out."""
        ndrange, notes = choose_local_size(self.ndrange, self.facts)
        is_own = local_size in {None, ndrange.local_size}
        if local_size is not None:
            if self.is_cooperative and self.ndrange.local_size and not is_own:
                raise InputError(
                    f"{self.name}: the kernel shares local memory that is laid out for local size "
                    f"{ndrange.local_size}, not for {local_size}; change the problem's parameters "
                    "instead"
                )
            sizes, fitting, notes = ndrange.global_size, local_size, ()
            if self.problem is None and len(local_size) == len(sizes):
                # A written kernel may take a larger one than the index space has.
                fitting = tuple(min(pair) for pair in zip(local_size, sizes, strict=True))
            ndrange = replace(ndrange, local_size=fitting)
        launch = self._describe(ndrange, notes, self.recorded if is_own else None)
        if local_size not in {None, ndrange.local_size}:
            launch = pad(launch, local_size)
        for axis, times in self.folds if folds is None else folds:
            launch = fold(launch, axis, times)
        return launch

    def _describe(
        self, chosen: NDRange, notes: Sequence[str], recorded: RecordedAddresses | None
    ) -> ModelledLaunch:
        counters = self.counters
        if counters is None:
            sample = count_statically(self.facts, chosen, self.scalars, choose_work_groups(chosen))
            counters = summarise(self.facts, sample)
            used = (
                part.symbols()
                for reach in self.facts.reaches
                for part in (reach.guard, *(loop.condition for loop in reach.loops))
            )
            if not any(one.kind in OF_WORK_GROUPS for each in used for one in each):
                self.counters = counters  # the same for all local sizes
        doubt, doubts = doubt_counts(self.facts, counters)
        accesses = self.facts.accesses
        unknown = [] if recorded is None else find_unknown(accesses, recorded)
        unmet = [one for one in unknown if not one.guard.is_exact]
        absent = [
            f"line {one.line}: no recorded work-item came to {one.text}; left out" for one in unmet
        ]
        met = tuple(one for one in accesses if one not in unmet)
        gaps = [
            f"line {one.line}: {one.describe_unknown()}; it needs recorded addresses"
            for one in find_unknown(met, recorded)
        ]
        if not all(one.guard.is_exact for one in met):
            gaps.append("accesses under conditions on data count as always executed")
        return ModelledLaunch(
            kernel=self.facts.kernel,
            ndrange=chosen,
            accesses=simplify_accesses(met, chosen, self.scalars),
            scalars=self.scalars,
            buffers=self.buffers,
            alignments=self.alignments,
            executed=counters.executed,
            warps=counters.warps,
            registers=self.registers,
            local_bytes=self.local_bytes,
            recorded=recorded,
            notes=(*notes, *doubts, *absent, *gaps),
            unjumped=count_unjumped(self.facts, counters),
            doubt=doubt,
            problem=self.problem,
        )


def model_kernel(problem: Problem) -> ModelledKernel:
    facts = read_facts(problem.kernel)
    if len(facts.parameters) != len(problem.arguments):
        names = ", ".join(one.name for one in facts.parameters) or "none"
        raise SignatureError(
            f"kernel {facts.kernel}: {len(problem.arguments)} arguments given, "
            f"{len(facts.parameters)} expected: {names}"
        )
    given = zip(facts.parameters, problem.arguments, strict=True)
    return ModelledKernel(
        name=problem.name,
        facts=facts,
        ndrange=problem.ndrange,
        scalars=bind_scalars(facts, problem.arguments),
        buffers={one.name: held.bytes for one, held in given if isinstance(held, BufferArgument)},
        local_bytes=facts.local_bytes
        + sum(one.bytes for one in problem.arguments if isinstance(one, LocalArgument)),
        problem=problem,
    )


def model_written(kernel: WrittenKernel, ndrange: NDRange) -> ModelledKernel:
    """Take a kernel that was written down; each global id is an update."""
    facts = kernel.facts()
    sizes = {
        one.name: one.count_bytes(kernel.scalars)
        for one in kernel.arrays
        if one.space is not MemorySpace.LOCAL
    }
    return ModelledKernel(
        name=kernel.name,
        facts=facts,
        ndrange=ndrange,
        scalars=kernel.scalars,
        buffers={name: size for name, size in sizes.items() if size is not None},
        alignments={one.name: one.shift_bytes for one in kernel.arrays if one.shift_bytes},
        local_bytes=facts.local_bytes,
    )


def model_launch(
    problem: Problem,
    ndrange: NDRange | None = None,
    *,
    counters: SoftwareCounters | None = None,
    recorded: RecordedAddresses | None = None,
) -> ModelledLaunch:
    refuse_persistent(problem.kernel)
    kernel = model_kernel(problem)
    kernel.counters, kernel.recorded = counters, recorded
    kernel.ndrange = ndrange or problem.ndrange
    return kernel.launch()


def choose_local_size(ndrange: NDRange, facts: KernelFacts) -> tuple[NDRange, tuple[str, ...]]:
    """Choose a local size where none is given: as the kernel requires, else say what is chosen."""
    if ndrange.local_size is not None:
        return ndrange, ()
    if facts.required_local_size:
        return replace(ndrange, local_size=facts.required_local_size[: ndrange.dimensions]), ()
    # Neither the caller nor a device chooses: work-groups of 64 work-items.
    first = math.gcd(ndrange.global_size[0], 64)
    local_size = (first, *(1,) * (ndrange.dimensions - 1))
    note = f"no local size is given; {local_size} is assumed"
    return replace(ndrange, local_size=local_size), (note,)


def find_unknown(
    accesses: Iterable[MemoryAccess], recorded: RecordedAddresses | None
) -> list[MemoryAccess]:
    """Give the accesses outside local memory whose addresses neither source nor device told."""
    covered = set() if recorded is None else set(recorded.sites.tolist())
    return [
        one
        for one in accesses
        if one.offset_bytes is None
        and one.site not in covered
        and one.space is not MemorySpace.LOCAL
    ]


_NEEDED = (SymbolKind.LOCAL_ID, SymbolKind.GROUP_ID)


def simplify_accesses(
    accesses: Iterable[MemoryAccess], ndrange: NDRange, scalars: Mapping[str, int]
) -> tuple[MemoryAccess, ...]:
    """Write the accesses of a launch with global ids and bounds, where that says the same.

    Models treat ids and bounds exactly, other conditions by samples. An access behind "one of these
    borders" becomes one access per border, disjoint; they keep the site they share.
    """
    found: list[MemoryAccess] = []
    boxes: dict[Condition, list[Condition]] = {}
    for one in accesses:
        offset = None if one.offset_bytes is None else _rewrite(one.offset_bytes, ndrange)
        if one.guard not in boxes:
            parts = one.guard.parts if isinstance(one.guard, And) else (one.guard,)
            guard = conjunction(
                *(
                    replace(part, expr=_rewrite(part.expr, ndrange))
                    if isinstance(part, Comparison)
                    else part
                    for part in parts
                )
            )
            boxes[one.guard] = _split(guard, ndrange, scalars)
        found += [replace(one, offset_bytes=offset, guard=box) for box in boxes[one.guard]]
    return tuple(found)


def _split(guard: Condition, ndrange: NDRange, scalars: Mapping[str, int]) -> list[Condition]:
    """Divide a guard with "or" or "!=" into disjoint boxes; it stays if there are none."""
    values = bind_names(scalars)
    ids = {
        Symbol(SymbolKind.GLOBAL_ID, axis=axis): range(offset, offset + size)
        for axis, (offset, size) in enumerate(
            zip(ndrange.global_offset, ndrange.global_size, strict=True)
        )
    }
    parts = guard.parts if isinstance(guard, And) else (guard,)
    known = {one: one.substitute(values) for one in parts}
    of_ids = [one for one in parts if known[one].is_exact and known[one].symbols() <= ids.keys()]
    # Only these may leave ids in several stretches.
    if not any(
        isinstance(one, Or) or (isinstance(one, Comparison) and one.relation is Relation.NOT_ZERO)
        for one in of_ids
    ):
        return [guard]
    others = [one for one in parts if one not in of_ids]
    found = split_into_boxes(conjunction(*(known[one] for one in of_ids)), ids, 8)
    return [conjunction(*others, box) for box in found] if found else [guard]


@lru_cache(maxsize=1 << 12)
def _rewrite(expr: Expr, ndrange: NDRange) -> Expr:
    """Put global ids in the place of group and local ids that make them up."""
    for axis, size in enumerate(ndrange.known_local_size):
        local, group = (Symbol(kind, axis=axis) for kind in _NEEDED)
        if not {local, group} <= expr.symbols():
            continue
        replaced: dict[Symbol, Expr | int] = {
            local: Expr.symbol(Symbol(SymbolKind.GLOBAL_ID, axis=axis))
            - ndrange.global_offset[axis]
            - Expr.symbol(group) * size
        }
        if ndrange.is_uniform:  # else the last work-group has another local size
            replaced[Symbol(SymbolKind.LOCAL_SIZE, axis=axis)] = size
        candidate = expr.substitute(replaced)
        if group not in candidate.symbols():
            expr = candidate
    return expr


def parse_fold(text: str) -> tuple[int, int]:
    """Read a folding such as ``2z``: axis and number of updates."""
    times, axis = text[:-1], text[-1:]
    if not times.isascii() or not times.isdigit() or axis not in AXES or not axis:
        raise InputError(f"folding {text!r}: expected updates and axis, such as 2z")
    return AXES.index(axis), int(times)


def fold(launch: ModelledLaunch, axis: int, times: int) -> ModelledLaunch:
    """Let each work-item compute neighbouring updates, one after the other."""
    ndrange = launch.ndrange
    _check(launch, axis, times)
    if times == 1:
        return launch
    size = ndrange.global_size[axis]
    own, offset = Symbol(SymbolKind.GLOBAL_ID, axis=axis), ndrange.global_offset[axis]
    is_guarded = size % times > 0
    turns: list[list[MemoryAccess]] = []
    for turn in range(times):
        replaced = {
            own: times * Expr.symbol(own) + (turn - (times - 1) * offset),
            Symbol(SymbolKind.GLOBAL_SIZE, axis=axis): Expr.constant(size),
        }
        inside = less(replaced[own], offset + size) if is_guarded and turn else None
        turns.append([_move(access, replaced, inside) for access in launch.accesses])
    # Each access has a site of its own.
    found = tuple(replace(one, site=site) for site, one in enumerate(_share(turns)))
    sizes = list(ndrange.global_size)
    sizes[axis] = -(-size // times)
    is_known = all(one.offset_bytes is not None for one in launch.accesses)
    note = f"folded {times}{AXES[axis]}: accesses that depend on data are left out of the volumes"
    # Loads that updates share count once.
    before, after = _count_kinds(launch.accesses), _count_kinds(found)
    executed = launch.executed
    return replace(
        launch,
        ndrange=replace(ndrange, global_size=tuple(sizes)),
        accesses=found,
        executed=OperationCounts(
            operations={one: count * times for one, count in executed.operations.items()},
            memory={
                one: count * (after[one] / before[one] if before[one] else times)
                for one, count in executed.memory.items()
            },
        ),
        updates_per_work_item=launch.updates_per_work_item * times,
        recorded=None,
        problem=None,
        notes=launch.notes if is_known else (*launch.notes, note),
    )


def _check(launch: ModelledLaunch, axis: int, times: int) -> None:
    ndrange = launch.ndrange
    if not 0 <= axis < ndrange.dimensions:
        msg = f"folding along {AXES[axis]}: the index space has {ndrange.dimensions} dimensions"
        raise InputError(msg)
    most = min(64, ndrange.global_size[axis])
    if not 1 <= times <= most:
        raise InputError(f"folding {times}{AXES[axis]}: give 1 to {most} updates per work-item")
    if times == 1:
        return
    for access in launch.accesses:
        if access.space is MemorySpace.LOCAL:
            raise InputError(
                f"{access.text}: work-items that share local memory cannot be folded; model the "
                "folded kernel's own source"
            )
        used = access.guard.symbols().union(
            *(loop.condition.symbols() for loop in access.loops),
            () if access.offset_bytes is None else access.offset_bytes.symbols(),
        )
        named = next((s for s in used if s.kind in OF_WORK_GROUPS and s.axis == axis), None)
        if named is not None:
            raise InputError(
                f"{access.text}: names {named}, so that work-items cannot be folded along "
                f"{AXES[axis]}; write it with get_global_id only, or fold along another axis"
            )


def _move(
    access: MemoryAccess, replaced: Mapping[Symbol, Expr], inside: Condition | None
) -> MemoryAccess:
    offset = access.offset_bytes
    guard = access.guard.substitute(replaced)
    return replace(
        access,
        offset_bytes=None if offset is None else offset.substitute(replaced),
        guard=guard if inside is None else conjunction(inside, guard),
        loops=tuple(
            replace(
                loop,
                condition=loop.condition.substitute(replaced),
                trip_count=loop.trip_count and loop.trip_count.substitute(replaced),
            )
            for loop in access.loops
        ),
    )


def _share(turns: Sequence[Sequence[MemoryAccess]]) -> list[MemoryAccess]:
    """Keep one of the accesses by which several turns load the same address."""
    kept: dict[tuple[object, ...], MemoryAccess] = {}
    for turn, accesses in enumerate(turns):
        seen: Counter[tuple[object, ...]] = Counter()
        for access in accesses:
            key: tuple[object, ...] = (access.site, turn)
            if access.offset_bytes is not None and access.kind is not AccessKind.ATOMIC:
                key = access.kind, access.buffer, access.bytes, access.offset_bytes, access.loops
            seen[key] += 1  # what one update loads twice, it loads twice folded as well
            key = (*key, seen[key])
            first = kept.get(key)
            if first is not None:
                access = replace(first, guard=_weaken(first.guard, access.guard))
            kept[key] = access
    return list(kept.values())


def _weaken(one: Condition, other: Condition) -> Condition:
    """Find a condition that holds where one of two neighbouring updates is computed."""
    # Bounds that differ by a constant become the weaker bound: the updates of a work-item are
    # neighbours, so that what lies between a lower and an upper bound has no gaps.
    bounds, others = (each.parts if isinstance(each, And) else (each,) for each in (one, other))
    weaker: list[Condition] = []
    for bound, beside in zip(bounds, others, strict=False):
        if bound == beside or TRUE in {bound, beside}:
            weaker.append(bound if bound == beside else TRUE)
        elif (
            isinstance(bound, Comparison)
            and isinstance(beside, Comparison)
            and {bound.relation, beside.relation} == {Relation.NOT_NEGATIVE}
            and (gap := (bound.expr - beside.expr).constant_value) is not None
        ):
            weaker.append(bound if gap > 0 else beside)
    if len(weaker) == len(bounds) == len(others):
        return conjunction(*weaker)
    return disjunction(one, other)


def _count_kinds(accesses: tuple[MemoryAccess, ...]) -> Counter[MemoryOperation]:
    return Counter(
        MemoryOperation(space=one.space, is_store=one.kind is AccessKind.STORE, bytes=one.bytes)
        for one in accesses
        if one.kind is not AccessKind.ATOMIC
    )


def pad(launch: ModelledLaunch, local_size: tuple[int, ...]) -> ModelledLaunch:
    """Enlarge the index space to at least one work-group; what is added does nothing."""
    ndrange = launch.ndrange
    sizes = tuple(max(pair) for pair in zip(ndrange.global_size, local_size, strict=True))
    guard = conjunction(
        *(
            less(Symbol(SymbolKind.GLOBAL_ID, axis=axis), offset + size)
            for axis, (offset, size, enlarged) in enumerate(
                zip(ndrange.global_offset, ndrange.global_size, sizes, strict=True)
            )
            if enlarged > size
        )
    )
    return replace(
        launch,
        ndrange=replace(ndrange, global_size=sizes, local_size=local_size),
        accesses=tuple(
            replace(one, guard=conjunction(guard, one.guard)) for one in launch.accesses
        ),
        executed=add_weighted([(launch.executed, ndrange.work_item_count / math.prod(sizes))]),
    )
