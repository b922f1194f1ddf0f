"""Features of the source and the launch: known without a device, and without a guess."""

from collections.abc import Iterable
from dataclasses import dataclass

from kernelcast.expressions import TRUE
from kernelcast.expressions.accesses import AddressPattern, LoopFacts
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.vector.definitions import Feature, divide
from kernelcast.records.arguments import BufferArgument, LocalArgument
from kernelcast.records.operations import NumberClass, OperationKind
from kernelcast.records.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticSource:
    """What static features are made of."""

    facts: KernelFacts
    """From the source."""
    problem: Problem
    """The launch; its local size may be open."""


def _work_groups(source: StaticSource) -> float | None:
    ndrange = source.problem.ndrange
    return None if ndrange.local_size is None else ndrange.work_group_count


def _work_group_size(source: StaticSource) -> float | None:
    ndrange = source.problem.ndrange
    return None if ndrange.local_size is None else ndrange.work_group_size


def _local_bytes(source: StaticSource) -> float:
    given = sum(one.bytes for one in source.problem.arguments if isinstance(one, LocalArgument))
    return source.facts.local_bytes + given


def _buffers(source: StaticSource) -> float:
    return sum(isinstance(one, BufferArgument) for one in source.problem.arguments)


def _loop_sites(source: StaticSource) -> dict[int, list[LoopFacts]]:
    """Give each loop of the source with all the ways it is reached."""
    found: dict[int, list[LoopFacts]] = {}
    for loop in source.facts.loops:
        found.setdefault(loop.line, []).append(loop)
    return found


def _uncounted_loops(source: StaticSource) -> float:
    return sum(
        any(not (one.is_exact and one.trip_count) for one in loops)
        for loops in _loop_sites(source).values()
    )


def _loop_depth(source: StaticSource) -> float:
    facts = source.facts
    around = [*(one.loops for one in facts.accesses), *(one.loops for one in facts.reaches)]
    deepest = max((len(loops) for loops in around), default=0)
    return max(deepest, min(1, len(facts.loops)))


def _count_sites(source: StaticSource, kinds: Iterable[OperationKind]) -> float:
    return sum(block.operations.count(*kinds) for block in source.facts.blocks)


def _widest(source: StaticSource) -> float:
    lanes = (one.lanes for block in source.facts.blocks for one in block.operations.operations)
    return max(lanes, default=1)


def _has_float(source: StaticSource, bits: int) -> float:
    return any(
        one.number is NumberClass.FLOAT and one.bits == bits
        for block in source.facts.blocks
        for one in block.operations.operations
    )


def _pattern_share(source: StaticSource, pattern: AddressPattern) -> float | None:
    accesses = source.facts.accesses
    return divide(sum(one.pattern is pattern for one in accesses), len(accesses))


def _guarded_share(source: StaticSource) -> float | None:
    accesses = source.facts.accesses
    return divide(sum(one.guard != TRUE for one in accesses), len(accesses))


_K = OperationKind

FEATURES: tuple[Feature[StaticSource], ...] = (
    Feature("static.work_items_count", "work-items of the whole launch",
            lambda s: s.problem.ndrange.work_item_count),
    Feature("static.work_groups_count",
            "work-groups of the whole launch; absent while the device chooses the local size",
            _work_groups),
    Feature("static.work_items_per_work_group",
            "work-items of a full work-group; absent while the device chooses the local size",
            _work_group_size),
    Feature("static.dimensions_count", "dimensions of the index space",
            lambda s: s.problem.ndrange.dimensions),
    Feature("static.buffers_count", "buffer arguments", _buffers),
    Feature("static.buffer_bytes", "bytes of all buffer arguments together",
            lambda s: s.problem.buffer_bytes),
    Feature("static.local_bytes_per_work_group",
            "local memory that the kernel declares, and local arguments", _local_bytes),
    Feature("static.functions_count", "functions that the kernel reaches, itself included",
            lambda s: len({one.function for one in s.facts.blocks})),
    Feature("static.blocks_count", "stretches of code that are executed equally often",
            lambda s: len(s.facts.blocks)),
    Feature("static.loops_count", "loops of the source", lambda s: len(_loop_sites(s))),
    Feature("static.uncounted_loops_count",
            "loops whose trip count depends on data, or that may end early", _uncounted_loops),
    Feature("static.loop_depth_count", "loops around the innermost code", _loop_depth),
    Feature("static.branch_sites_count",
            "places with a conditional branch, conditions of loops included",
            lambda s: _count_sites(s, [_K.BRANCH])),
    Feature("static.barrier_sites_count", "barriers in the source",
            lambda s: _count_sites(s, [_K.BARRIER])),
    Feature("static.atomic_sites_count", "atomic operations in the source",
            lambda s: _count_sites(s, [_K.ATOMIC])),
    Feature("static.vector_lanes_count", "lanes of the widest vector operation", _widest),
    Feature("static.fp16_flag", "1 if it computes in half precision", lambda s: _has_float(s, 16)),
    Feature("static.fp64_flag", "1 if it computes in double precision",
            lambda s: _has_float(s, 64)),
    Feature("static.access_sites_count",
            "accesses to global, constant and local memory, one per place and call path",
            lambda s: len(s.facts.accesses)),
    Feature("static.quasi_affine_access_ratio",
            "share of them whose address is quasi-affine in ids and iterations",
            lambda s: _pattern_share(s, AddressPattern.QUASI_AFFINE)),
    Feature("static.polynomial_access_ratio",
            "share of them whose address is known, but multiplies variables",
            lambda s: _pattern_share(s, AddressPattern.POLYNOMIAL)),
    Feature("static.indirect_access_ratio",
            "share of them whose address depends on data that was loaded",
            lambda s: _pattern_share(s, AddressPattern.INDIRECT)),
    Feature("static.guarded_access_ratio", "share of them behind a condition", _guarded_share),
    Feature("static.coverage_ratio",
            "share of accesses whose address is understood, or known to be indirect",
            lambda s: s.facts.coverage),
    Feature("static.gaps_count", "things in the source that are not understood",
            lambda s: len(s.facts.gaps)),
)  # fmt: skip
"""In the order of the schema."""
