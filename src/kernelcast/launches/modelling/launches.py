"""Launches as analytic models see them, from a kernel's source or from accesses written down."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from kernelcast.analytic.gpu.hit_rates import HitRates
from kernelcast.expressions import (
    And,
    Comparison,
    Condition,
    Expr,
    Or,
    Relation,
    Symbol,
    SymbolKind,
    conjunction,
)  # fmt: skip
from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.axes import bind_names
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.expressions.point_sets import split_into_boxes
from kernelcast.features.analysis import read_facts
from kernelcast.features.counting.static import bind_scalars, choose_work_groups, count_statically
from kernelcast.features.counting.summary import count_unjumped, doubt_counts, summarise
from kernelcast.features.written_accesses import WrittenKernel
from kernelcast.launches.modelling.folding import OF_WORK_GROUPS, Folds, fold, pad
from kernelcast.launches.source_check import refuse_persistent
from kernelcast.records.arguments import BufferArgument, LocalArgument
from kernelcast.records.errors import InputError, SignatureError
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import MemorySpace
from kernelcast.records.problem import Problem
from kernelcast.records.software_counters import RecordedAddresses, SoftwareCounters


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
