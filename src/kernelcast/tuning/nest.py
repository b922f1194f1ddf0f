"""A kernel as a compiler for CPUs sees it: its loops, which of them vanish, where barriers are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from kernelcast.expressions import TRUE, Bindings, EvaluationError
from kernelcast.expressions.axes import bind_names
from kernelcast.expressions.kernel_facts import ONCE, BlockFacts, CounterReach, KernelFacts
from kernelcast.features.counting.broadcasting import LARGEST
from kernelcast.features.counting.sampled_groups import choose_work_groups
from kernelcast.features.counting.static import count_statically
from kernelcast.features.counting.summary import count_blocks
from kernelcast.launches.modelling.launches import ModelledKernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import MemorySpace, OperationKind

_LOOP_BODY = "loop body"
_STEP = "loop step"
_LOOP_PARTS = frozenset({_STEP, "loop condition"})
_FEW_TRIPS = 1
"""Copies of a body after which the loop over work-items is still vectorised."""
_NO_WORK = frozenset({OperationKind.JUMP, OperationKind.ADDRESS})
MOST_UNROLLED = 300
"""Operations of a loop that compilers unroll fully: LLVM's limit at -O3 is a size of 300."""
_WORK_GROUPS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A loop of one work-item."""

    body: int
    """Block of its body."""
    trips: float
    """Mean iterations per entry."""
    is_unrolled: bool
    """Whether the compiler knows the number of iterations and writes them out."""
    has_barrier: bool
    """Whether work-items wait for each other in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nest:
    """The loops of a kernel for one launch."""

    facts: KernelFacts
    ndrange: NDRange
    counts: tuple[float, ...]
    """Mean executions of each block per work-item."""
    loops: Mapping[int, Loop]
    """By the block of their body."""
    _around: dict[int, tuple[Loop, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def around(self, block: int) -> tuple[Loop, ...]:
        """List the loops around a block, outermost first."""
        inner: list[int] = []
        at: int | None = block
        while at is not None and at not in self._around:
            inner.append(at)
            at = self.facts.blocks[at].parent
        found = () if at is None else self._around[at]
        for one in reversed(inner):
            if one in self.loops:
                found = (*found, self.loops[one])
            self._around[one] = found
        return found

    @property
    def barriers(self) -> float:
        """Barriers that a work-item passes."""
        return sum(
            count * block.operations.count(OperationKind.BARRIER)
            for block, count in zip(self.facts.blocks, self.counts, strict=True)
        )

    def is_straight(self) -> bool:
        """Tell whether no loop is left between barriers once compilers have unrolled what they can.

        Only then does a loop over work-items hold no other loop, and is vectorised.
        """
        return all(
            one.has_barrier or (one.is_unrolled and one.trips <= _FEW_TRIPS)
            for one in self.loops.values()
        )

    def vanishes(self, block: BlockFacts) -> bool:
        """Tell whether a block counts the iterations of a loop that is unrolled."""
        if block.kind not in _LOOP_PARTS or block.parent is None:
            return False
        if block.parent in self.loops and block.kind == _STEP:
            return self.loops[block.parent].is_unrolled
        # A test stands ahead of its loop's body, beside it.
        behind = [
            one for body, one in self.loops.items()
            if body > block.id and self.facts.blocks[body].parent == block.parent
        ]  # fmt: skip
        return bool(behind) and min(behind, key=lambda one: one.body).is_unrolled


def read_nest(kernel: ModelledKernel, ndrange: NDRange) -> Nest:
    """Count a launch's blocks and find its loops."""
    facts = kernel.facts
    counts = _count_blocks(kernel, ndrange)
    children: dict[int, list[int]] = {}
    for block in facts.blocks:
        if block.parent is not None:
            children.setdefault(block.parent, []).append(block.id)
    sizes = [_size(block) for block in facts.blocks]
    constant = _find_constant(facts)
    loops: dict[int, Loop] = {}
    # Blocks are listed outer ones first.
    for block in reversed(facts.blocks):
        if block.kind != _LOOP_BODY or block.parent is None:
            continue
        inner = _descend(block.id, children)
        entries = counts[block.parent]
        trips = counts[block.id] / entries if entries else 0.0
        has_barrier = any(
            facts.blocks[one].operations.count(OperationKind.BARRIER) for one in inner
        )
        nested = [loops[one] for one in inner if one in loops]
        size = sum(sizes[one] * counts[one] / entries for one in inner) if entries else 0.0
        loops[block.id] = Loop(
            body=block.id,
            trips=trips,
            is_unrolled=not has_barrier
            and block.id in constant
            and size <= MOST_UNROLLED
            and all(one.is_unrolled for one in nested),
            has_barrier=has_barrier,
        )
    return Nest(facts=facts, ndrange=ndrange, counts=counts, loops=loops)


def _count_blocks(kernel: ModelledKernel, ndrange: NDRange) -> tuple[float, ...]:
    """Give mean executions of each block per work-item.

    What is executed equally often by all work-items needs no enumeration of them, and in most
    kernels that one tunes it is all.
    """
    facts = kernel.facts
    bindings = bind_names(kernel.scalars)
    fixed = np.zeros(facts.counter_count)
    varying: list[CounterReach] = []
    for reach in facts.reaches:
        count = _count_fixed(reach, bindings)
        if count is None:
            varying.append(reach)
        else:
            fixed[reach.counter] += count
    if not varying:
        return tuple(
            max(0.0, sum(factor * (1.0 if counter == ONCE else float(fixed[counter]))
                         for counter, factor in block.count))
            for block in facts.blocks
        )  # fmt: skip
    groups = choose_work_groups(ndrange, _WORK_GROUPS)
    rest = replace(facts, reaches=tuple(varying))
    sample = count_statically(rest, ndrange, kernel.scalars, groups)
    sample = replace(sample, counts=sample.counts + fixed)
    counts = count_blocks(facts, sample)[sample.is_present]
    return tuple(float(mean) for mean in counts.mean(axis=0))


def _count_fixed(reach: CounterReach, bindings: Bindings) -> float | None:
    """Count how often each work-item reaches a counter; None if that may differ among them."""
    if reach.guard != TRUE:
        return None
    total = 1.0
    for loop in reach.loops:
        if loop.trip_count is None or not loop.trip_count.symbols() <= bindings.keys():
            return None
        try:
            trips = loop.trip_count.evaluate(bindings)
        except EvaluationError:
            return None
        if not isinstance(trips, int) or trips > LARGEST:
            return None
        total *= max(0, trips)
    return total


def _find_constant(facts: KernelFacts) -> set[int]:
    """Find the bodies of loops whose iterations are known when the kernel is compiled."""
    bodies = [one for one in facts.blocks if one.kind == _LOOP_BODY]
    known = [one.is_exact and one.trip_count is not None
             and one.trip_count.constant_value is not None for one in facts.loops]  # fmt: skip
    if len(bodies) == len(known):  # both in the order of the source
        return {body.id for body, is_known in zip(bodies, known, strict=True) if is_known}
    lines = {one.line for one, is_known in zip(facts.loops, known, strict=True) if is_known}
    return {one.id for one in bodies if lines & {one.line - 1, one.line}}


def _descend(block: int, children: Mapping[int, Sequence[int]]) -> list[int]:
    found = [block]
    for one in found:
        found += children.get(one, ())
    return found


def _size(block: BlockFacts) -> float:
    """Give the operations of a block that count against the limit of unrolling."""
    if block.kind in _LOOP_PARTS:
        return 0
    work = sum(n for op, n in block.operations.operations.items() if op.kind not in _NO_WORK)
    moved = sum(n for op, n in block.operations.memory.items()
                if op.space is not MemorySpace.PRIVATE)  # fmt: skip
    return work + moved
