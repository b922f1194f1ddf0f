"""Every feature there is, in the order of the schema, and the vectors made of them.

What each one means is said in docs/reference/features.md.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from operator import methodcaller
from statistics import fmean, pstdev
from typing import Any, TypeAlias, TypeVar

from kernelcast.expressions import TRUE
from kernelcast.expressions.accesses import AddressPattern, LoopFacts
from kernelcast.expressions.kernel_facts import BlockKind, KernelFacts
from kernelcast.records.arguments import BufferArgument, LocalArgument
from kernelcast.records.device import CompilerFacts, SaturationPoint
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.feature_vector import FeatureSchema, FeatureVector, make_vector
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import MemorySpace, NumberClass, OperationCounts
from kernelcast.records.operations import OperationKind as Kind
from kernelcast.records.problem import Problem
from kernelcast.records.samples import PILOT_WINDOW, SampleRun, TimedLaunch
from kernelcast.records.software_counters import RequestPattern, SoftwareCounters, WarpCounters

SCHEMA_VERSION = 1
"""Grows when a feature keeps its name and changes its meaning."""

Of = TypeVar("Of")
Formulas: TypeAlias = Mapping[str, Callable[[Of], float | None]]
"""Features by their names, ``group.what_unit``, each of a source; None where it is not known."""


def _divide(numerator: float, denominator: float) -> float | None:
    return numerator / denominator if denominator else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticSource:
    facts: KernelFacts
    problem: Problem
    """The launch; its local size may be open."""

    @property
    def chosen(self) -> NDRange | None:
        ndrange = self.problem.ndrange
        return None if ndrange.local_size is None else ndrange

    @property
    def loop_sites(self) -> list[list[LoopFacts]]:
        """Each loop of the source with all the ways it is reached."""
        lines = dict.fromkeys(loop.line for loop in self.facts.loops)
        return [[loop for loop in self.facts.loops if loop.line == line] for line in lines]

    def count_sites(self, kind: Kind) -> float:
        return sum(block.operations.count(kind) for block in self.facts.blocks)

    def has_float(self, bits: int) -> bool:
        return any(
            one.number is NumberClass.FLOAT and one.bits == bits
            for block in self.facts.blocks for one in block.operations.operations
        )  # fmt: skip

    def share_accesses(self, pattern: AddressPattern) -> float | None:
        accesses = self.facts.accesses
        return _divide(sum(one.pattern is pattern for one in accesses), len(accesses))


_STATIC: Formulas[StaticSource] = {
    "static.work_items_count": lambda s: s.problem.ndrange.work_item_count,
    "static.work_groups_count": lambda s: s.chosen.work_group_count if s.chosen else None,
    "static.work_items_per_work_group": lambda s: s.chosen.work_group_size if s.chosen else None,
    "static.dimensions_count": lambda s: s.problem.ndrange.dimensions,
    "static.buffers_count": lambda s: sum(
        isinstance(one, BufferArgument) for one in s.problem.arguments
    ),
    "static.buffer_bytes": lambda s: s.problem.buffer_bytes,
    "static.local_bytes_per_work_group": lambda s: s.facts.local_bytes + sum(
        one.bytes for one in s.problem.arguments if isinstance(one, LocalArgument)
    ),
    "static.functions_count": lambda s: len({one.function for one in s.facts.blocks}),
    "static.blocks_count": lambda s: len(s.facts.blocks),
    "static.loops_count": lambda s: len(s.loop_sites),
    "static.uncounted_loops_count": lambda s: sum(
        any(not (one.is_exact and one.trip_count) for one in loops) for loops in s.loop_sites
    ),
    "static.loop_depth_count": lambda s: max(
        0, min(1, len(s.facts.loops)),
        *(len(one.loops) for one in s.facts.accesses), *(len(one.loops) for one in s.facts.reaches),
    ),
    "static.branch_sites_count": lambda s: s.count_sites(Kind.BRANCH),
    "static.barrier_sites_count": lambda s: s.count_sites(Kind.BARRIER),
    "static.atomic_sites_count": lambda s: s.count_sites(Kind.ATOMIC),
    "static.vector_lanes_count": lambda s: max(
        (one.lanes for block in s.facts.blocks for one in block.operations.operations), default=1
    ),
    "static.fp16_flag": lambda s: s.has_float(16),
    "static.fp64_flag": lambda s: s.has_float(64),
    "static.access_sites_count": lambda s: len(s.facts.accesses),
    "static.quasi_affine_access_ratio": lambda s: s.share_accesses(AddressPattern.QUASI_AFFINE),
    "static.polynomial_access_ratio": lambda s: s.share_accesses(AddressPattern.POLYNOMIAL),
    "static.indirect_access_ratio": lambda s: s.share_accesses(AddressPattern.INDIRECT),
    "static.guarded_access_ratio": lambda s: _divide(
        sum(one.guard != TRUE for one in s.facts.accesses), len(s.facts.accesses)
    ),
    "static.coverage_ratio": lambda s: s.facts.coverage,
    "static.gaps_count": lambda s: len(s.facts.gaps),
}  # fmt: skip


_SATURATION: Formulas[SaturationPoint] = {
    "compiler.active_work_groups_per_compute_unit": lambda s: s.p_sat.value,
    "compiler.computed_active_work_groups_per_compute_unit": lambda s: s.computed,
}


def _read_fact(name: str, facts: CompilerFacts) -> float | None:
    trait = facts.known.get(name)
    return None if trait is None else trait.value


_COMPILER: Formulas[CompilerFacts] = {
    **{f"compiler.{name}": partial(_read_fact, name.removesuffix("_count")) for name in (
        "registers_per_work_item", "private_bytes_per_work_item", "local_bytes_per_work_group",
        "preferred_work_group_multiple_count", "max_work_group_size_count", "sub_group_size_count",
        "sub_groups_per_work_group", "stack_frame_bytes_per_work_item",
        "spill_store_bytes_per_work_item", "spill_load_bytes_per_work_item",
    )},
    "compiler.ptx_virtual_registers_count": partial(_read_fact, "ptx_virtual_register_count"),
    "compiler.ptx_instructions_count": partial(_read_fact, "ptx_instruction_count"),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledSource:
    run: SampleRun
    linear_s: float
    """The linear model's time of the whole launch, in seconds."""
    compute_units: int
    issued_per_work_item: float | None = None
    """Instructions issued per work-item, by software counters; None without them."""
    touched: tuple[float, float] | None = None
    """Of the largest launch, see `kernelcast.features.touched_ranges.compare_touched`."""

    @property
    def spread(self) -> float | None:
        rates = [one.duration_s / one.box.work_group_count for one in list_windows(self.run)]
        return pstdev(rates) / fmean(rates) if len(rates) > 1 else None

    @property
    def issue_rate(self) -> float | None:
        if self.issued_per_work_item is None:
            return None
        return self.issued_per_work_item * self.run.ndrange.work_item_count / self.linear_s


def list_windows(run: SampleRun) -> list[TimedLaunch]:
    """List the launches that count: pilots only where there is nothing else."""
    return [one for one in run.launches if one.window != PILOT_WINDOW] or list(run.launches)


def find_longest(run: SampleRun) -> TimedLaunch:
    """Find the launch at the second sampling point: the one with the most work-groups."""
    return max(list_windows(run), key=lambda one: one.box.work_group_count)


_SAMPLED: Formulas[SampledSource] = {
    "sampled.run_s": lambda s: find_longest(s.run).duration_s,
    "sampled.run_work_groups_count": lambda s: find_longest(s.run).box.work_group_count,
    "sampled.work_items_count": lambda s: sum(
        math.prod(s.run.ndrange.work_items_of(one.box)[1]) for one in list_windows(s.run)
    ),
    "sampled.work_groups_count": lambda s: sum(
        one.box.work_group_count for one in list_windows(s.run)
    ),
    "sampled.total_s": lambda s: sum(one.duration_s for one in list_windows(s.run)),
    "sampled.linear_s": lambda s: s.linear_s,
    "sampled.linear_s_per_work_group":
        lambda s: _divide(s.linear_s, s.run.ndrange.work_group_count),
    "sampled.issued_instructions_per_s": lambda s: s.issue_rate,
    "sampled.issued_instructions_per_s_per_compute_unit":
        lambda s: None if s.issue_rate is None else s.issue_rate / s.compute_units,
    "sampled.spread_ratio": lambda s: s.spread,
    "sampled.even_flag": lambda s: s.run.is_even,
    "sampled.launch_overhead_s": lambda s: s.run.launch_overhead_s,
    "sampled.lines_per_work_group_ratio": lambda s: None if s.touched is None else s.touched[0],
    "sampled.pages_per_work_group_ratio": lambda s: None if s.touched is None else s.touched[1],
}  # fmt: skip


_ARITHMETIC = (
    Kind.ADD, Kind.MULTIPLY, Kind.FUSED, Kind.DIVIDE, Kind.LOGIC, Kind.COMPARE, Kind.SELECT,
    Kind.SPECIAL, Kind.SPECIAL_NATIVE,
)  # fmt: skip
"""Kinds that compute with numbers; conversions and addresses are counted apart."""
_FLOAT_KINDS = tuple(kind for kind in _ARITHMETIC if kind is not Kind.LOGIC)
_INTEGER_KINDS = tuple(kind for kind in _ARITHMETIC if kind is not Kind.SPECIAL_NATIVE)
_PLAIN_KINDS = {
    "address": Kind.ADDRESS, "branches": Kind.BRANCH, "jumps": Kind.JUMP, "barriers": Kind.BARRIER,
    "atomics": Kind.ATOMIC, "calls": Kind.CALL, "copies": Kind.COPY,
}  # fmt: skip
_NUMBERS = [
    ({"number": number, "bits": bits, "per_lane": True}, f"{short}{bits}", kinds)
    for number, short, widths, kinds in (
        (NumberClass.FLOAT, "fp", (16, 32, 64), _FLOAT_KINDS),
        (NumberClass.INTEGER, "int", (8, 16, 32, 64), _INTEGER_KINDS),
    )
    for bits in widths
]
_ACCESSES = [
    (space, verb, is_store)
    for space in (MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.LOCAL, MemorySpace.PRIVATE)
    for verb, is_store in (("load", False), ("store", True))
    if not (space is MemorySpace.CONSTANT and is_store)
]


def _count_flops(counts: OperationCounts) -> float:
    """Count floating-point operations of all widths, lanes apart, a fused one as two."""
    every = counts.count(*_FLOAT_KINDS, number=NumberClass.FLOAT, per_lane=True)
    return every + counts.count(Kind.FUSED, number=NumberClass.FLOAT, per_lane=True)


def _count_global_bytes(counts: OperationCounts) -> float:
    return sum(
        counts.count_memory(MemorySpace.GLOBAL, is_store=one, in_bytes=True)
        for one in (False, True)
    )


def _count_arithmetic(counts: OperationCounts) -> float:
    return counts.count(*_ARITHMETIC, per_lane=True)


_EXECUTED: Formulas[OperationCounts] = {
    "flops_per_work_item": _count_flops,
    **{f"{name}_operations_per_work_item": methodcaller("count", *_ARITHMETIC, **counted)
       for counted, name, _ in _NUMBERS},
    **{f"{name}_{kind}_per_work_item": methodcaller("count", kind, **counted)
       for counted, name, kinds in _NUMBERS for kind in kinds},
    "conversions_per_work_item": methodcaller("count", Kind.CONVERT, per_lane=True),
    **{f"{name}_per_work_item": methodcaller("count", kind)
       for name, kind in _PLAIN_KINDS.items()},
    **{f"{space}_{verb}{what}_per_work_item":
           methodcaller("count_memory", space, is_store=is_store, in_bytes=what == "_bytes")
       for space, verb, is_store in _ACCESSES for what in ("s", "_bytes")},
    "lanes_per_operation":
        lambda counts: _divide(_count_arithmetic(counts), counts.count(*_ARITHMETIC)),
    "special_operations_ratio": lambda counts: _divide(
        counts.count(Kind.SPECIAL, Kind.SPECIAL_NATIVE, per_lane=True), _count_arithmetic(counts)
    ),
    "flops_per_byte": lambda counts: _divide(_count_flops(counts), _count_global_bytes(counts)),
    "operations_per_byte":
        lambda counts: _divide(_count_arithmetic(counts), _count_global_bytes(counts)),
}  # fmt: skip

WARP_WIDTH = 32
"""Work-items taken to run in step, whatever the device, so that vectors can be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterSource:
    counters: SoftwareCounters
    facts: KernelFacts

    @property
    def warp(self) -> WarpCounters | None:
        return next((one for one in self.counters.warps if one.width == WARP_WIDTH), None)

    def add_up(
        self, of: Callable[[RequestPattern], float] = lambda _: 1.0, *, is_store: bool | None = None
    ) -> float | None:
        """Weigh global and constant memory by requests; None where nothing is known."""
        known = [
            one.requests * of(one) for one in self.counters.patterns
            if one.space in (MemorySpace.GLOBAL, MemorySpace.CONSTANT)
            and is_store in (None, one.is_store)
        ]  # fmt: skip
        return sum(known) if known else None

    def count_sectors(self, *, is_store: bool | None = None) -> float | None:
        return self.add_up(lambda one: one.sectors_per_request, is_store=is_store)

    def compare_sectors(self, count: float | None) -> float | None:
        sectors = self.count_sectors()
        return _divide(sectors, count) if count and sectors is not None else None

    def count_accesses(self, *spaces: MemorySpace) -> float:
        counts = self.counters.executed
        return sum(
            counts.count_memory(space, is_store=one) for space in spaces for one in (False, True)
        )

    @property
    def conflicts(self) -> float | None:
        patterns = [one for one in self.counters.patterns if one.space is MemorySpace.LOCAL]
        if not patterns and self.count_accesses(MemorySpace.LOCAL):
            return None
        return sum((one.requests * one.bank_conflicts_per_request for one in patterns), 0.0)

    @property
    def known_share(self) -> float | None:
        """Share of loads and stores whose sites have a pattern."""
        executed = self.count_accesses(
            MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.LOCAL
        )  # fmt: skip
        if self.warp is None or not executed:
            return None
        return min(1.0, sum(one.requests for one in self.counters.patterns) / executed)


def _of_warp(
    formula: Callable[[WarpCounters], float | None],
) -> Callable[[CounterSource], float | None]:
    return lambda source: None if source.warp is None else formula(source.warp)


def _of_executed(
    formula: Callable[[OperationCounts], float | None],
) -> Callable[[CounterSource], float | None]:
    return lambda source: formula(source.counters.executed)


_COUNTERS: Formulas[CounterSource] = {
    "counters.measured_flag": lambda s: s.counters.is_measured,
    "counters.exact_flag": lambda s: s.counters.is_exact,
    "counters.counted_work_items_count": lambda s: s.counters.work_items,
    "counters.issued_instructions_per_work_item": _of_warp(lambda warp: warp.issued),
    "counters.executed_instructions_per_work_item":
        _of_warp(lambda warp: warp.executed / warp.width),
    "counters.serialised_instructions_per_warp":
        _of_warp(lambda warp: warp.issued - warp.executed / warp.width),
    "counters.lane_efficiency_ratio": _of_warp(lambda warp: warp.lane_efficiency),
    "counters.branches_per_warp": _of_warp(lambda warp: warp.branches),
    "counters.divergent_branches_per_warp": _of_warp(lambda warp: warp.divergent_branches),
    "counters.global_sectors_per_warp": lambda s: s.count_sectors(),
    "counters.global_load_requests_per_warp": lambda s: s.add_up(is_store=False),
    "counters.coalesced_global_load_requests_per_warp":
        lambda s: s.add_up(lambda one: float(one.is_coalesced), is_store=False),
    "counters.global_store_requests_per_warp": lambda s: s.add_up(is_store=True),
    "counters.global_load_sectors_per_warp": lambda s: s.count_sectors(is_store=False),
    "counters.global_store_sectors_per_warp": lambda s: s.count_sectors(is_store=True),
    "counters.global_sectors_per_request": lambda s: s.compare_sectors(s.add_up()),
    "counters.global_sector_excess_ratio":
        lambda s: s.compare_sectors(s.add_up(lambda one: one.ideal_sectors_per_request)),
    "counters.bank_conflicts_per_warp": lambda s: s.conflicts,
    "counters.known_requests_ratio": lambda s: s.known_share,
    "counters.loop_iterations_per_work_item": lambda s: sum(
        s.counters.block_counts[one.id] for one in s.facts.blocks
        if one.kind is BlockKind.LOOP_BODY
    ),
    "counters.loop_imbalance_ratio": lambda s: max(
        (one.most / one.mean for one in s.counters.loops if one.mean), default=None
    ),
    **{f"counters.{name}": _of_executed(formula) for name, formula in _EXECUTED.items()},
}  # fmt: skip


_LIMITERS = (
    "fp32", "fp64", "int", "special", "L1", "L2", "L3", "DRAM", "latency", "chain", "local",
    "atomics", "barriers", "dispatch", "translation", "tail", "launch",
)  # fmt: skip
_QUANTITIES = (
    "l1_cycles_per_warp", "l1_lines_per_warp", "l1_load_requests_per_warp",
    "l1_store_requests_per_warp", "l1_allocated_bytes_per_work_group",
    "l1_oversubscription_ratio", "l2_load_bytes_per_work_group", "l2_store_bytes_per_work_group",
    "l2_oversubscription_ratio", "l3_load_bytes_per_work_group", "l3_store_bytes_per_work_group",
    "dram_load_bytes_per_work_group", "dram_store_bytes_per_work_group",
    "reused_bytes_per_work_group", "pages_of_wave_count", "work_groups_per_compute_unit",
    "waves_count", "exposed_l1_s", "vector_work_items_count", "mwp_cwp_s",
)  # fmt: skip


def _read(table: str, key: str, estimate: AnalyticEstimate) -> float | None:
    found: float | None = getattr(estimate, table).get(key)
    return found


_ANALYTIC: Formulas[AnalyticEstimate] = {
    "analytic.l1_miss_ratio": partial(_read, "quantities", "l1_miss_ratio"),
    "analytic.l2_miss_ratio": partial(_read, "quantities", "l2_miss_ratio"),
    "analytic.estimate_s": lambda estimate: estimate.seconds,
    "analytic.largest_limiter_ratio":
        lambda estimate: _divide(max(estimate.limiters.values()), estimate.seconds),
    **{f"analytic.{name.lower()}_limiter_s": partial(_read, "limiters", name)
       for name in _LIMITERS},
    **{f"analytic.{name}": partial(_read, "quantities", name) for name in _QUANTITIES},
}  # fmt: skip


Source: TypeAlias = (
    StaticSource | SaturationPoint | CompilerFacts | SampledSource | CounterSource
    | AnalyticEstimate
)  # fmt: skip
_FORMULAS: Mapping[type[Source], Formulas[Any]] = {
    StaticSource: _STATIC, SaturationPoint: _SATURATION, CompilerFacts: _COMPILER,
    SampledSource: _SAMPLED, CounterSource: _COUNTERS, AnalyticEstimate: _ANALYTIC,
}  # fmt: skip


@cache
def make_schema() -> FeatureSchema:
    names = (name for formulas in _FORMULAS.values() for name in formulas)
    return FeatureSchema(names=tuple(names), version=SCHEMA_VERSION)


def combine(*sources: Source, analytic: Mapping[str, float] | None = None) -> FeatureVector:
    values: dict[str, float] = {}
    for source in sources:
        for name, formula in _FORMULAS[type(source)].items():
            value = formula(source)
            if value is not None:
                values[name] = float(value)
    return make_vector({**values, **(analytic or {})}, make_schema())
