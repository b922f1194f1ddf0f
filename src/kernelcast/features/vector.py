"""Every feature there is, in the order of the schema, and the vectors made of them."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from operator import methodcaller
from statistics import fmean, pstdev
from typing import Any, Generic, TypeAlias, TypeVar

from kernelcast.expressions import TRUE
from kernelcast.expressions.accesses import AddressPattern, LoopFacts
from kernelcast.expressions.kernel_facts import BlockKind, KernelFacts
from kernelcast.records.arguments import BufferArgument, LocalArgument
from kernelcast.records.device import CompilerFacts, SaturationPoint
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.feature_vector import FeatureSchema, FeatureVector, check_name, make_vector
from kernelcast.records.operations import MemorySpace, NumberClass, Operation, OperationCounts
from kernelcast.records.operations import OperationKind as Kind
from kernelcast.records.problem import Problem
from kernelcast.records.samples import PILOT_WINDOW, SampleRun, TimedLaunch
from kernelcast.records.software_counters import RequestPattern, SoftwareCounters, WarpCounters

SCHEMA_VERSION = 1
"""Grows when a feature keeps its name and changes its meaning."""

Of = TypeVar("Of")


@dataclass(frozen=True, slots=True)
class Feature(Generic[Of]):
    name: str
    """``group.what_unit``."""
    meaning: str
    """For the reference, without a full stop."""
    compute: Callable[[Of], float | None]
    table_1: str = ""
    """What the sampling paper's Table 1 calls it; empty if it is not there."""

    def __post_init__(self) -> None:
        check_name(self.name)


def compute_features(features: Iterable[Feature[Of]], source: Of) -> dict[str, float]:
    found = ((one.name, one.compute(source)) for one in features)
    return {name: float(value) for name, value in found if value is not None}


def divide(numerator: float, denominator: float) -> float | None:
    """Divide, or give None where there is nothing to divide by."""
    return numerator / denominator if denominator else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticSource:
    facts: KernelFacts
    problem: Problem
    """The launch; its local size may be open."""


def _loop_sites(source: StaticSource) -> dict[int, list[LoopFacts]]:
    """Give each loop of the source with all the ways it is reached."""
    found: dict[int, list[LoopFacts]] = {}
    for loop in source.facts.loops:
        found.setdefault(loop.line, []).append(loop)
    return found


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
    Feature("static.loop_depth_count", "loops around the innermost code",
            lambda s: max(0, min(1, len(s.facts.loops)),
                          *(len(one.loops) for one in s.facts.accesses),
                          *(len(one.loops) for one in s.facts.reaches))),
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
    facts: CompilerFacts
    saturation: SaturationPoint | None = None


def _compiled(
    name: str, meaning: str, *, fact: str = "", table_1: str = ""
) -> Feature[CompilerSource]:
    def read(source: CompilerSource) -> float | None:
        trait = source.facts.known.get(fact or name)
        return None if trait is None else trait.value

    return Feature(f"compiler.{name}", meaning, read, table_1)


_COMPILER: tuple[Feature[CompilerSource], ...] = (
    Feature("compiler.active_work_groups_per_compute_unit",
            "P_sat: work-groups active at once on a compute unit, the value in use",
            lambda s: None if s.saturation is None else s.saturation.p_sat.value,
            table_1="active work-groups"),
    Feature("compiler.computed_active_work_groups_per_compute_unit",
            "the same by the vendor's occupancy rules",
            lambda s: None if s.saturation is None else s.saturation.computed),
    _compiled("registers_per_work_item",
              "32-bit hardware registers", table_1="registers per work-item"),
    _compiled("private_bytes_per_work_item", "private memory that does not fit into registers"),
    _compiled("local_bytes_per_work_group",
              "local memory that the compiled kernel declares, without local arguments"),
    _compiled("preferred_work_group_multiple_count",
              "work-items of which a work-group should have a multiple",
              fact="preferred_work_group_multiple"),
    _compiled("max_work_group_size_count",
              "work-items of the largest work-group of this kernel", fact="max_work_group_size"),
    _compiled("sub_group_size_count",
              "work-items per sub-group (warp, wavefront, vector) at this local size",
              fact="sub_group_size"),
    _compiled("sub_groups_per_work_group", "sub-groups of a work-group at this local size"),
    _compiled("stack_frame_bytes_per_work_item",
              "call stack, arrays and spilled registers together"),
    _compiled("spill_store_bytes_per_work_item",
              "bytes that instructions which spill registers store, each counted once"),
    _compiled("spill_load_bytes_per_work_item",
              "bytes that instructions which fill registers load, each counted once"),
    _compiled("ptx_virtual_registers_count",
              "registers that the PTX declares, before hardware registers are allocated",
              fact="ptx_virtual_register_count"),
    _compiled("ptx_instructions_count",
              "instructions in the PTX of the kernel's own body, each counted once",
              fact="ptx_instruction_count"),
)  # fmt: skip


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


_ARITHMETIC = (
    Kind.ADD, Kind.MULTIPLY, Kind.FUSED, Kind.DIVIDE, Kind.LOGIC, Kind.COMPARE, Kind.SELECT,
    Kind.SPECIAL, Kind.SPECIAL_NATIVE,
)  # fmt: skip
"""Kinds that compute with numbers; conversions and addresses are counted apart."""

_FLOAT_KINDS = tuple(kind for kind in _ARITHMETIC if kind is not Kind.LOGIC)
_INTEGER_KINDS = tuple(kind for kind in _ARITHMETIC if kind is not Kind.SPECIAL_NATIVE)
_TEXTS = {
    Kind.ADD: "sums and differences", Kind.MULTIPLY: "products",
    Kind.FUSED: "fused products and sums, each one operation",
    Kind.DIVIDE: "quotients and remainders", Kind.LOGIC: "bitwise operations and shifts",
    Kind.COMPARE: "comparisons", Kind.SELECT: "choices, minima and maxima",
    Kind.SPECIAL: "precise special functions", Kind.SPECIAL_NATIVE: "native special functions",
}  # fmt: skip
_OTHERS = {
    Kind.ADDRESS: ("address", "sums on pointers, subscripts included"),
    Kind.BRANCH: ("branches", "conditional branches"),
    Kind.JUMP: ("jumps", "unconditional branches, as laid out without optimisation"),
    Kind.BARRIER: ("barriers", "barriers"),
    Kind.ATOMIC: ("atomics", "atomic operations"),
    Kind.CALL: ("calls", "calls of functions whose work is not known"),
    Kind.COPY: ("copies", "prefetches"),
}  # fmt: skip
_KINDS_OF_NUMBERS = [
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


def count_flops(counts: OperationCounts) -> float:
    """Count floating-point operations of all widths, lanes apart, a fused one as two."""
    every = counts.count(*_FLOAT_KINDS, number=NumberClass.FLOAT, per_lane=True)
    return every + counts.count(Kind.FUSED, number=NumberClass.FLOAT, per_lane=True)


def _count_global_bytes(counts: OperationCounts) -> float:
    return sum(counts.memory_bytes(MemorySpace.GLOBAL, is_store=one) for one in (False, True))


def _count_arithmetic(counts: OperationCounts) -> float:
    return counts.count(*_ARITHMETIC, per_lane=True)


WARP_WIDTH = 32
"""Work-items taken to run in step, whatever the device, so that vectors can be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterSource:
    counters: SoftwareCounters
    facts: KernelFacts

    @property
    def warp(self) -> WarpCounters | None:
        """Counters of the width in use; None if that width was not counted."""
        return next((one for one in self.counters.warps if one.width == WARP_WIDTH), None)


def _executed(
    name: str, meaning: str, read: Callable[[OperationCounts], float | None], table_1: str = ""
) -> Feature[CounterSource]:
    return Feature(
        f"counters.{name}", meaning, lambda source: read(source.counters.executed), table_1
    )


def _of_warp(
    formula: Callable[[WarpCounters], float | None],
) -> Callable[[CounterSource], float | None]:
    return lambda source: None if source.warp is None else formula(source.warp)


def _global(source: CounterSource, *, is_store: bool | None = None) -> list[RequestPattern]:
    return [
        one
        for one in source.counters.patterns
        if one.space in (MemorySpace.GLOBAL, MemorySpace.CONSTANT)
        and is_store in (None, one.is_store)
    ]


def _add_up(
    patterns: Iterable[RequestPattern], of: Callable[[RequestPattern], float] = lambda _: 1.0
) -> float | None:
    """Weigh by requests; None where nothing is known."""
    known = list(patterns)
    return sum(one.requests * of(one) for one in known) if known else None


def _sectors(source: CounterSource, *, is_store: bool | None = None) -> float | None:
    return _add_up(_global(source, is_store=is_store), lambda one: one.sectors_per_request)


def _sectors_over(source: CounterSource, count: float | None) -> float | None:
    sectors = _sectors(source)
    return divide(sectors, count) if count and sectors is not None else None


def _conflicts(source: CounterSource) -> float | None:
    patterns = [one for one in source.counters.patterns if one.space is MemorySpace.LOCAL]
    if not patterns and not _count_accesses(source, MemorySpace.LOCAL):
        return 0.0
    return _add_up(patterns, lambda one: one.bank_conflicts_per_request)


def _count_accesses(source: CounterSource, space: MemorySpace) -> float:
    counts = source.counters.executed
    return sum(counts.count_memory(space, is_store=one) for one in (False, True))


def _known_share(source: CounterSource) -> float | None:
    """Give the share of loads and stores whose sites have a pattern."""
    executed = sum(_count_accesses(source, one) for one in (
        MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.LOCAL))  # fmt: skip
    if source.warp is None or not executed:
        return None
    known = sum(one.requests for one in source.counters.patterns)
    return min(1.0, known / executed)


_COUNTERS: tuple[Feature[CounterSource], ...] = (
    Feature("counters.measured_flag",
            "1 if an instrumented run counted, or the source told all that it would count; 0 "
            "if counts were derived from the source",
            lambda s: s.counters.is_measured),
    Feature("counters.exact_flag", "1 if nothing was estimated", lambda s: s.counters.is_exact),
    Feature("counters.counted_work_items_count", "work-items that were looked at",
            lambda s: s.counters.work_items),
    Feature("counters.issued_instructions_per_work_item",
            "instructions issued to the lane of a work-item, whether it takes part or waits",
            _of_warp(lambda warp: warp.issued), table_1="issued instructions"),
    Feature("counters.executed_instructions_per_work_item",
            "instructions in which a work-item takes part",
            _of_warp(lambda warp: warp.executed / warp.width),
            table_1="executed instructions"),
    Feature("counters.serialised_instructions_per_warp",
            "instructions issued beyond those of one pass without divergence",
            _of_warp(lambda warp: warp.issued - warp.executed / warp.width),
            table_1="warp serializes"),
    Feature("counters.lane_efficiency_ratio",
            "share of lanes that do useful work, 1 without divergence",
            _of_warp(lambda warp: warp.lane_efficiency)),
    Feature("counters.branches_per_warp", "conditional branches issued per warp",
            _of_warp(lambda warp: warp.branches)),
    Feature("counters.divergent_branches_per_warp",
            "those at which work-items of a warp part, at least",
            _of_warp(lambda warp: warp.divergent_branches), table_1="divergent branches"),
    Feature("counters.global_sectors_per_warp",
            "32-byte sectors that requests to global and constant memory touch",
            _sectors, table_1="total L1 accesses"),
    Feature("counters.global_load_requests_per_warp",
            "load requests to global and constant memory",
            lambda s: _add_up(_global(s, is_store=False)), table_1="global loads"),
    Feature("counters.coalesced_global_load_requests_per_warp",
            "those that need at most 1.5 times the sectors of their bytes",
            lambda s: _add_up(_global(s, is_store=False), lambda one: float(one.is_coalesced)),
            table_1="global loads coalesced"),
    Feature("counters.global_store_requests_per_warp", "store requests to global memory",
            lambda s: _add_up(_global(s, is_store=True))),
    Feature("counters.global_load_sectors_per_warp", "sectors that load requests touch",
            lambda s: _sectors(s, is_store=False)),
    Feature("counters.global_store_sectors_per_warp", "sectors that store requests touch",
            lambda s: _sectors(s, is_store=True)),
    Feature("counters.global_sectors_per_request", "sectors of a request, mean",
            lambda s: _sectors_over(s, _add_up(_global(s)))),
    Feature("counters.global_sector_excess_ratio",
            "sectors over those that the bytes would need, 1 if perfectly coalesced",
            lambda s: _sectors_over(
                s, _add_up(_global(s), lambda one: one.ideal_sectors_per_request))),
    Feature("counters.bank_conflicts_per_warp",
            "extra passes of local memory requests, for 32 banks of 4 bytes",
            _conflicts, table_1="bank conflicts"),
    Feature("counters.known_requests_ratio",
            "share of loads and stores whose addresses are known: what the request features "
            "speak of", _known_share),
    Feature("counters.loop_iterations_per_work_item", "iterations of all loops",
            lambda s: sum(s.counters.block_counts[one.id] for one in s.facts.blocks
                          if one.kind is BlockKind.LOOP_BODY)),
    Feature("counters.loop_imbalance_ratio",
            "most over mean iterations per entry of a loop among work-items, of the most "
            "uneven loop; absent without loops",
            lambda s: max((one.most / one.mean for one in s.counters.loops if one.mean),
                          default=None)),
    _executed("flops_per_work_item",
              "floating-point operations of all widths, per lane, a fused one as two",
              count_flops),
    *(_executed(f"{name}_operations_per_work_item",
                f"arithmetic on {name} of all kinds, per lane",
                methodcaller("count", *_ARITHMETIC, **counted))
      for counted, name, _ in _KINDS_OF_NUMBERS),
    *(_executed(f"{name}_{kind}_per_work_item", f"{_TEXTS[kind]} of {name}, per lane",
                methodcaller("count", kind, **counted))
      for counted, name, kinds in _KINDS_OF_NUMBERS for kind in kinds),
    _executed("conversions_per_work_item", "conversions between types of numbers, per lane",
              methodcaller("count", Kind.CONVERT, per_lane=True)),
    *(_executed(f"{name}_per_work_item", text, methodcaller("count", kind),
                "branches" if kind is Kind.BRANCH else "")
      for kind, (name, text) in _OTHERS.items()),
    *(feature for space, verb, is_store in _ACCESSES for feature in (
        _executed(f"{space}_{verb}s_per_work_item",
                  f"{verb}s, {space} memory; a vector is one",
                  methodcaller("count_memory", space, is_store=is_store),
                  "shared loads/stores" if space is MemorySpace.LOCAL else ""),
        _executed(f"{space}_{verb}_bytes_per_work_item",
                  f"bytes {'stored to' if is_store else 'loaded from'} {space} memory",
                  methodcaller("memory_bytes", space, is_store=is_store)),
    )),
    _executed("lanes_per_operation",
              "lanes of an arithmetic operation, mean; absent where nothing is computed",
              lambda counts: divide(_count_arithmetic(counts), counts.count(*_ARITHMETIC))),
    _executed("special_operations_ratio", "share of special functions in arithmetic",
              lambda counts: divide(
                  counts.count(Kind.SPECIAL, Kind.SPECIAL_NATIVE, per_lane=True),
                  _count_arithmetic(counts))),
    _executed("flops_per_byte",
              "arithmetic intensity: floating-point operations over bytes loaded from and "
              "stored to global memory; absent where there are none",
              lambda counts: divide(count_flops(counts), _count_global_bytes(counts))),
    _executed("operations_per_byte", "the same with integer arithmetic, a fused operation as one",
              lambda counts: divide(_count_arithmetic(counts), _count_global_bytes(counts))),
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


def _read_from(
    table: str, key: str, name: str, meaning: str, table_1: str = ""
) -> Feature[AnalyticEstimate]:
    return Feature(
        f"analytic.{name}", meaning, lambda estimate: getattr(estimate, table).get(key), table_1
    )


ANALYTIC: tuple[Feature[AnalyticEstimate], ...] = (
    *(_read_from("quantities", f"{cache}_miss_ratio", f"{cache}_miss_ratio",
                 f"{cache.upper()} misses over issued instructions; absent where executed "
                 "instructions are not counted", "L1/L2 miss rate") for cache in ("l1", "l2")),
    Feature("analytic.estimate_s", "time of the launch by the analytic model of the device",
            lambda estimate: estimate.seconds),
    Feature("analytic.largest_limiter_ratio",
            "time of the largest limiter alone over that estimate",
            lambda estimate: divide(max(estimate.limiters.values()), estimate.seconds)),
    *(_read_from("limiters", name, f"{name.lower()}_limiter_s", f"limiter: {text}")
      for name, text in _LIMITERS.items()),
    *(_read_from("quantities", name, name, text) for name, text in _QUANTITIES.items()),
)  # fmt: skip


Source: TypeAlias = StaticSource | CompilerSource | SampledSource | CounterSource | AnalyticEstimate
_TABLES: Mapping[type[Source], tuple[Feature[Any], ...]] = {
    StaticSource: _STATIC, CompilerSource: _COMPILER, SampledSource: SAMPLED,
    CounterSource: _COUNTERS, AnalyticEstimate: ANALYTIC,
}  # fmt: skip


@cache
def list_features() -> tuple[Feature[Any], ...]:
    """Give every feature, for the reference; the order is the schema's."""
    return tuple(feature for table in _TABLES.values() for feature in table)


@cache
def make_schema() -> FeatureSchema:
    return FeatureSchema(names=tuple(one.name for one in list_features()), version=SCHEMA_VERSION)


def combine(*sources: Source, analytic: Mapping[str, float] | None = None) -> FeatureVector:
    values: dict[str, float] = {}
    for source in sources:
        values |= compute_features(_TABLES[type(source)], source)
    return make_vector({**values, **(analytic or {})}, make_schema())
