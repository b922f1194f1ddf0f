"""Every feature there is, in the order of the schema, and the vectors made of them."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from statistics import fmean, pstdev
from typing import Any, TypeAlias

from kernelcast.expressions import TRUE
from kernelcast.expressions.accesses import AddressPattern, LoopFacts
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.counter_features import (
    COUNTER_FEATURES,
    CounterSource,
    Feature,
    compute_counter_features,
    compute_features,
    divide,
)
from kernelcast.records.arguments import BufferArgument, LocalArgument
from kernelcast.records.device import CompilerFacts, SaturationPoint
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.feature_vector import FeatureSchema, FeatureVector, make_vector
from kernelcast.records.operations import NumberClass, Operation
from kernelcast.records.operations import OperationKind as Kind
from kernelcast.records.problem import Problem
from kernelcast.records.samples import PILOT_WINDOW, SampleRun, TimedLaunch

SCHEMA_VERSION = 1
"""Grows when a feature keeps its name and changes its meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticSource:
    """What static features are made of."""

    facts: KernelFacts
    """From the source."""
    problem: Problem
    """The launch; its local size may be open."""


def _loop_sites(source: StaticSource) -> dict[int, list[LoopFacts]]:
    """Give each loop of the source with all the ways it is reached."""
    found: dict[int, list[LoopFacts]] = {}
    for loop in source.facts.loops:
        found.setdefault(loop.line, []).append(loop)
    return found


def _loop_depth(source: StaticSource) -> float:
    facts = source.facts
    around = [*(one.loops for one in facts.accesses), *(one.loops for one in facts.reaches)]
    deepest = max((len(loops) for loops in around), default=0)
    return max(deepest, min(1, len(facts.loops)))


def _count_sites(source: StaticSource, kinds: Iterable[Kind]) -> float:
    return sum(block.operations.count(*kinds) for block in source.facts.blocks)


def _list_operations(source: StaticSource) -> Iterator[Operation]:
    for block in source.facts.blocks:
        yield from block.operations.operations


def _has_float(source: StaticSource, bits: int) -> float:
    return any(
        one.number is NumberClass.FLOAT and one.bits == bits for one in _list_operations(source)
    )


def _pattern_share(source: StaticSource, pattern: AddressPattern) -> float | None:
    accesses = source.facts.accesses
    return divide(sum(one.pattern is pattern for one in accesses), len(accesses))


_STATIC: tuple[Feature[StaticSource], ...] = (
    Feature("static.work_items_count", "work-items of the whole launch",
            lambda s: s.problem.ndrange.work_item_count),
    Feature("static.work_groups_count",
            "work-groups of the whole launch; absent while the device chooses the local size",
            lambda s: None if s.problem.ndrange.local_size is None
            else s.problem.ndrange.work_group_count),
    Feature("static.work_items_per_work_group",
            "work-items of a full work-group; absent while the device chooses the local size",
            lambda s: None if s.problem.ndrange.local_size is None
            else s.problem.ndrange.work_group_size),
    Feature("static.dimensions_count", "dimensions of the index space",
            lambda s: s.problem.ndrange.dimensions),
    Feature("static.buffers_count", "buffer arguments",
            lambda s: sum(isinstance(one, BufferArgument) for one in s.problem.arguments)),
    Feature("static.buffer_bytes", "bytes of all buffer arguments together",
            lambda s: s.problem.buffer_bytes),
    Feature("static.local_bytes_per_work_group",
            "local memory that the kernel declares, and local arguments",
            lambda s: s.facts.local_bytes + sum(
                one.bytes for one in s.problem.arguments if isinstance(one, LocalArgument))),
    Feature("static.functions_count", "functions that the kernel reaches, itself included",
            lambda s: len({one.function for one in s.facts.blocks})),
    Feature("static.blocks_count", "stretches of code that are executed equally often",
            lambda s: len(s.facts.blocks)),
    Feature("static.loops_count", "loops of the source", lambda s: len(_loop_sites(s))),
    Feature("static.uncounted_loops_count",
            "loops whose trip count depends on data, or that may end early",
            lambda s: sum(any(not (one.is_exact and one.trip_count) for one in loops)
                          for loops in _loop_sites(s).values())),
    Feature("static.loop_depth_count", "loops around the innermost code", _loop_depth),
    Feature("static.branch_sites_count",
            "places with a conditional branch, conditions of loops included",
            lambda s: _count_sites(s, [Kind.BRANCH])),
    Feature("static.barrier_sites_count", "barriers in the source",
            lambda s: _count_sites(s, [Kind.BARRIER])),
    Feature("static.atomic_sites_count", "atomic operations in the source",
            lambda s: _count_sites(s, [Kind.ATOMIC])),
    Feature("static.vector_lanes_count", "lanes of the widest vector operation",
            lambda s: max((one.lanes for one in _list_operations(s)), default=1)),
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
    Feature("static.guarded_access_ratio", "share of them behind a condition",
            lambda s: divide(sum(one.guard != TRUE for one in s.facts.accesses),
                             len(s.facts.accesses))),
    Feature("static.coverage_ratio",
            "share of accesses whose address is understood, or known to be indirect",
            lambda s: s.facts.coverage),
    Feature("static.gaps_count", "things in the source that are not understood",
            lambda s: len(s.facts.gaps)),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilerSource:
    """What compiler features are made of."""

    facts: CompilerFacts
    """Resources of the compiled kernel."""
    saturation: SaturationPoint | None = None
    """P_sat, where it was found."""


def _fact(name: str) -> Callable[[CompilerSource], float | None]:
    def read(source: CompilerSource) -> float | None:
        trait = source.facts.known.get(name)
        return None if trait is None else trait.value

    return read


_COMPILER: tuple[Feature[CompilerSource], ...] = (
    Feature("compiler.active_work_groups_per_compute_unit",
            "P_sat: work-groups active at once on a compute unit, the value in use",
            lambda s: None if s.saturation is None else s.saturation.p_sat.value,
            table_1="active work-groups"),
    Feature("compiler.computed_active_work_groups_per_compute_unit",
            "the same by the vendor's occupancy rules",
            lambda s: None if s.saturation is None else s.saturation.computed),
    Feature("compiler.registers_per_work_item", "32-bit hardware registers",
            _fact("registers_per_work_item"), table_1="registers per work-item"),
    Feature("compiler.private_bytes_per_work_item",
            "private memory that does not fit into registers",
            _fact("private_bytes_per_work_item")),
    Feature("compiler.local_bytes_per_work_group",
            "local memory that the compiled kernel declares, without local arguments",
            _fact("local_bytes_per_work_group")),
    Feature("compiler.preferred_work_group_multiple_count",
            "work-items of which a work-group should have a multiple",
            _fact("preferred_work_group_multiple")),
    Feature("compiler.max_work_group_size_count",
            "work-items of the largest work-group of this kernel", _fact("max_work_group_size")),
    Feature("compiler.sub_group_size_count",
            "work-items per sub-group (warp, wavefront, vector) at this local size",
            _fact("sub_group_size")),
    Feature("compiler.sub_groups_per_work_group", "sub-groups of a work-group at this local size",
            _fact("sub_groups_per_work_group")),
    Feature("compiler.stack_frame_bytes_per_work_item",
            "call stack, arrays and spilled registers together",
            _fact("stack_frame_bytes_per_work_item")),
    Feature("compiler.spill_store_bytes_per_work_item",
            "bytes that instructions which spill registers store, each counted once",
            _fact("spill_store_bytes_per_work_item")),
    Feature("compiler.spill_load_bytes_per_work_item",
            "bytes that instructions which fill registers load, each counted once",
            _fact("spill_load_bytes_per_work_item")),
    Feature("compiler.ptx_virtual_registers_count",
            "registers that the PTX declares, before hardware registers are allocated",
            _fact("ptx_virtual_register_count")),
    Feature("compiler.ptx_instructions_count",
            "instructions in the PTX of the kernel's own body, each counted once",
            _fact("ptx_instruction_count")),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledSource:
    """What sampled features are made of."""

    run: SampleRun
    """The timed launches."""
    linear_s: float
    """The linear model's time of the whole launch, in seconds."""
    compute_units: int
    issued_per_work_item: float | None = None
    """Instructions issued per work-item, by software counters; None without them."""
    touched: tuple[float, float] | None = None
    """Of the largest launch, see `kernelcast.features.touched_ranges.compare_touched`."""


def _windows(source: SampledSource) -> list[TimedLaunch]:
    """Give the launches that count: pilots only where there is nothing else."""
    launches = source.run.launches
    return [one for one in launches if one.window != PILOT_WINDOW] or list(launches)


def find_longest(run: SampleRun) -> TimedLaunch:
    """Find the launch at the second sampling point: the one with the most work-groups."""
    launches = [one for one in run.launches if one.window != PILOT_WINDOW] or list(run.launches)
    return max(launches, key=lambda one: one.box.work_group_count)


def _spread(source: SampledSource) -> float | None:
    rates = [one.duration_s / one.box.work_group_count for one in _windows(source)]
    return pstdev(rates) / fmean(rates) if len(rates) > 1 else None


def _issue_rate(source: SampledSource) -> float | None:
    if source.issued_per_work_item is None:
        return None
    return source.issued_per_work_item * source.run.ndrange.work_item_count / source.linear_s


SAMPLED: tuple[Feature[SampledSource], ...] = (
    Feature("sampled.run_s", "device time of the largest sampled launch",
            lambda s: find_longest(s.run).duration_s, table_1="execution time"),
    Feature("sampled.run_work_groups_count", "work-groups of the largest sampled launch (P2)",
            lambda s: find_longest(s.run).box.work_group_count),
    Feature("sampled.work_items_count", "work-items of all sampled launches, pilots aside",
            lambda s: sum(math.prod(s.run.ndrange.work_items_of(one.box)[1])
                          for one in _windows(s)), table_1="work-items"),
    Feature("sampled.work_groups_count", "work-groups of all sampled launches, pilots aside",
            lambda s: sum(one.box.work_group_count for one in _windows(s))),
    Feature("sampled.total_s", "device time of all sampled launches, pilots aside",
            lambda s: sum(one.duration_s for one in _windows(s))),
    Feature("sampled.linear_s", "the linear model's time of the whole launch",
            lambda s: s.linear_s),
    Feature("sampled.linear_s_per_work_group",
            "the linear model's time over the work-groups of the launch",
            lambda s: divide(s.linear_s, s.run.ndrange.work_group_count)),
    Feature("sampled.issued_instructions_per_s",
            "instructions issued by the whole launch, by software counters, over the linear "
            "model's time", _issue_rate, table_1="IPS"),
    Feature("sampled.issued_instructions_per_s_per_compute_unit",
            "the same per compute unit: what the learned model corrects",
            lambda s: None if (rate := _issue_rate(s)) is None else rate / s.compute_units),
    Feature("sampled.spread_ratio",
            "standard deviation of the time per work-group over the launches, over its mean; "
            "absent with one launch", _spread),
    Feature("sampled.even_flag", "1 if work-groups of different places take about the same time",
            lambda s: s.run.is_even),
    Feature("sampled.launch_overhead_s", "time of a launch that does nothing",
            lambda s: s.run.launch_overhead_s),
    Feature("sampled.lines_per_work_group_ratio",
            "cache lines that the largest sampled launch touches per work-group, over those of the "
            "whole launch; absent where addresses depend on data",
            lambda s: None if s.touched is None else s.touched[0]),
    Feature("sampled.pages_per_work_group_ratio", "the same of pages of 4 KiB",
            lambda s: None if s.touched is None else s.touched[1]),
)  # fmt: skip


_LIMITERS = {
    "fp32": "fp32 arithmetic",
    "fp64": "fp64 arithmetic",
    "int": "integer arithmetic",
    "special": "special functions",
    "L1": "the L1 caches, accesses and arriving sectors",
    "L2": "transfers between L1 and L2",
    "L3": "transfers between L2 and L3, on CPUs",
    "DRAM": "transfers between the last cache and memory",
    "latency": "waiting for loads one after the other, without traffic",
    "chain": "waiting for the result of the operation before, on CPUs",
    "local": "local memory with its bank conflicts",
    "atomics": "global atomics",
    "barriers": "barriers",
    "dispatch": "starting work-groups",
    "translation": "address translations that do not fit",
    "tail": "the last work-groups, while compute units idle",
    "launch": "starting the launch",
}
_QUANTITIES = {
    "l1_cycles_per_warp": "cycles of the L1 cache for all accesses of a warp",
    "l1_lines_per_warp": "lines of the L1 cache that the loads of a warp look up",
    "l1_load_requests_per_warp": "loads that a warp executes",
    "l1_store_requests_per_warp": "stores that a warp executes",
    "l1_allocated_bytes_per_work_group": "lines of the L1 cache that a work-group's loads touch",
    "l1_oversubscription_ratio": "lines that several warps need over the capacity of the L1 cache",
    "l2_load_bytes_per_work_group": "bytes from L2 to L1",
    "l2_store_bytes_per_work_group": "bytes from L1 to L2",
    "l2_oversubscription_ratio": "bytes that a wave touches over the capacity of L2",
    "l3_load_bytes_per_work_group": "bytes from L3 to L2, on CPUs",
    "l3_store_bytes_per_work_group": "bytes from L2 to L3, on CPUs",
    "dram_load_bytes_per_work_group": "bytes from DRAM to the last cache",
    "dram_store_bytes_per_work_group": "bytes from the last cache to DRAM",
    "reused_bytes_per_work_group": "loads that find in L2 what earlier waves left",
    "pages_of_wave_count": "pages of 2 MiB that a wave touches",
    "work_groups_per_compute_unit": "work-groups that a compute unit holds at once",
    "waves_count": "work-groups over those that the device holds at once",
    "exposed_l1_s": "time of L1 that transfers with DRAM wait for",
    "vector_work_items_count": "work-items in the lanes of a vector, on CPUs",
    "mwp_cwp_s": "time of the launch by Hong and Kim's model, to compare with: no learned model "
    "sees it",
}
_TABLE_1 = {
    "l1_miss_ratio": "L1 misses over issued instructions",
    "l2_miss_ratio": "L2 misses over issued instructions",
}


def _read_from(table: str, name: str) -> Callable[[AnalyticEstimate], float | None]:
    def read(estimate: AnalyticEstimate) -> float | None:
        values: Mapping[str, float] = getattr(estimate, table)
        return values.get(name)

    return read


ANALYTIC: tuple[Feature[AnalyticEstimate], ...] = (
    *(
        Feature(f"analytic.{name}", f"{text}; absent where executed instructions are not counted",
                _read_from("quantities", name),
                table_1="L1/L2 miss rate")
        for name, text in _TABLE_1.items()
    ),
    Feature("analytic.estimate_s", "time of the launch by the analytic model of the device",
            lambda estimate: estimate.seconds),
    Feature("analytic.largest_limiter_ratio",
            "time of the largest limiter alone over that estimate",
            lambda estimate: divide(max(estimate.limiters.values()), estimate.seconds)),
    *(
        Feature(f"analytic.{name.lower()}_limiter_s",
                f"time that {text} would take alone; absent where the model has no such part",
                _read_from("limiters", name))
        for name, text in _LIMITERS.items()
    ),
    *(
        Feature(f"analytic.{name}", text,
                _read_from("quantities", name))
        for name, text in _QUANTITIES.items()
    ),
)  # fmt: skip


Source: TypeAlias = StaticSource | CompilerSource | SampledSource | CounterSource | AnalyticEstimate


@cache
def list_features() -> tuple[Feature[Any], ...]:
    """Give every feature, for the reference; the order is the schema's."""
    return *_STATIC, *_COMPILER, *SAMPLED, *COUNTER_FEATURES, *ANALYTIC


@cache
def make_schema() -> FeatureSchema:
    return FeatureSchema(names=tuple(one.name for one in list_features()), version=SCHEMA_VERSION)


def combine(*sources: Source, analytic: Mapping[str, float] | None = None) -> FeatureVector:
    values: dict[str, float] = {}
    for source in sources:
        match source:
            case StaticSource():
                values |= compute_features(_STATIC, source)
            case CompilerSource():
                values |= compute_features(_COMPILER, source)
            case SampledSource():
                values |= compute_features(SAMPLED, source)
            case CounterSource():
                values |= compute_counter_features(source)
            case AnalyticEstimate():
                values |= compute_features(ANALYTIC, source)
    return make_vector({**values, **(analytic or {})}, make_schema())
