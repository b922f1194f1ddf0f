"""What a feature is, and features of software counters: what work-items execute and share."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, Generic, TypeVar

from kernelcast.expressions.kernel_facts import BlockKind, KernelFacts
from kernelcast.records.feature_vector import check_name
from kernelcast.records.operations import MemorySpace, NumberClass, OperationCounts
from kernelcast.records.operations import OperationKind as Kind
from kernelcast.records.software_counters import RequestPattern, SoftwareCounters, WarpCounters

Source = TypeVar("Source")


@dataclass(frozen=True, slots=True)
class Feature(Generic[Source]):
    """One feature."""

    name: str
    """``group.what_unit``."""
    meaning: str
    """For the reference, without a full stop."""
    compute: Callable[[Source], float | None]
    """Gives its value, or None where it is not known."""
    table_1: str = ""
    """What the sampling paper's Table 1 calls it; empty if it is not there."""

    def __post_init__(self) -> None:
        check_name(self.name)


def compute_features(features: Iterable[Feature[Source]], source: Source) -> dict[str, float]:
    """Give the value of each feature that is known."""
    found = ((one.name, one.compute(source)) for one in features)
    return {name: float(value) for name, value in found if value is not None}


def divide(numerator: float, denominator: float) -> float | None:
    """Divide, or give None where there is nothing to divide by."""
    return numerator / denominator if denominator else None


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
    Kind.COPY: ("copies", "copies between global and local memory by a whole work-group"),
}  # fmt: skip
_SPACES = (MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.LOCAL, MemorySpace.PRIVATE)


def count_flops(counts: OperationCounts) -> float:
    """Count floating-point operations of all widths, lanes apart, a fused one as two."""
    every = counts.count(*_FLOAT_KINDS, number=NumberClass.FLOAT, per_lane=True)
    return every + counts.count(Kind.FUSED, number=NumberClass.FLOAT, per_lane=True)


def _count_global_bytes(counts: OperationCounts) -> float:
    """Add up bytes loaded from and stored to global memory."""
    return sum(counts.memory_bytes(MemorySpace.GLOBAL, is_store=one) for one in (False, True))


def _make(
    name: str, meaning: str, read: Callable[[OperationCounts], float | None], table_1: str = ""
) -> Feature[SoftwareCounters]:
    return Feature(f"counters.{name}", meaning, lambda source: read(source.executed), table_1)


def _count_arithmetic(counts: OperationCounts) -> float:
    return counts.count(*_ARITHMETIC, per_lane=True)


def _describe_numbers() -> Iterator[Feature[SoftwareCounters]]:
    """Describe sums over all kinds of arithmetic for each type of number, then each kind's."""
    numbers = [
        ({"number": number, "bits": bits, "per_lane": True}, f"{short}{bits}", kinds)
        for number, short, widths, kinds in (
            (NumberClass.FLOAT, "fp", (16, 32, 64), _FLOAT_KINDS),
            (NumberClass.INTEGER, "int", (8, 16, 32, 64), _INTEGER_KINDS),
        )
        for bits in widths
    ]
    for counted, name, _ in numbers:
        yield _make(f"{name}_operations_per_work_item",
                    f"arithmetic on {name} of all kinds, per lane",
                    methodcaller("count", *_ARITHMETIC, **counted))  # fmt: skip
    for counted, name, kinds in numbers:
        for kind in kinds:
            yield _make(f"{name}_{kind}_per_work_item", f"{_TEXTS[kind]} of {name}, per lane",
                        methodcaller("count", kind, **counted))  # fmt: skip


def _describe_memory() -> Iterator[Feature[SoftwareCounters]]:
    for space in _SPACES:
        paper = "shared loads/stores" if space is MemorySpace.LOCAL else ""
        for verb, is_store in (("load", False), ("store", True)):
            if space is MemorySpace.CONSTANT and is_store:
                continue
            past = "stored to" if is_store else "loaded from"
            yield _make(
                f"{space}_{verb}s_per_work_item",
                f"{verb}s, {space} memory; a vector is one",
                methodcaller("count_memory", space, is_store=is_store),
                paper,
            )
            yield _make(f"{space}_{verb}_bytes_per_work_item", f"bytes {past} {space} memory",
                        methodcaller("memory_bytes", space, is_store=is_store))  # fmt: skip


_OPERATIONS: tuple[Feature[SoftwareCounters], ...] = (
    _make("flops_per_work_item",
          "floating-point operations of all widths, per lane, a fused one as two", count_flops),
    *_describe_numbers(),
    _make("conversions_per_work_item", "conversions between types of numbers, per lane",
          lambda counts: counts.count(Kind.CONVERT, per_lane=True)),
    *(_make(f"{name}_per_work_item", text, methodcaller("count", kind),
            "branches" if kind is Kind.BRANCH else "")
      for kind, (name, text) in _OTHERS.items()),
    *_describe_memory(),
    _make("lanes_per_operation",
          "lanes of an arithmetic operation, mean; absent where nothing is computed",
          lambda counts: divide(_count_arithmetic(counts), counts.count(*_ARITHMETIC))),
    _make("special_operations_ratio", "share of special functions in arithmetic",
          lambda counts: divide(
              counts.count(Kind.SPECIAL, Kind.SPECIAL_NATIVE, per_lane=True),
              _count_arithmetic(counts))),
    _make("flops_per_byte",
          "arithmetic intensity: floating-point operations over bytes loaded from and "
          "stored to global memory; absent where there are none",
          lambda counts: divide(count_flops(counts), _count_global_bytes(counts))),
    _make("operations_per_byte", "the same with integer arithmetic, a fused operation as one",
          lambda counts: divide(_count_arithmetic(counts), _count_global_bytes(counts))),
)  # fmt: skip

WARP_WIDTH = 32
"""Work-items taken to run in step, whatever the device, so that vectors can be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterSource:
    """What features of software counters are made of."""

    counters: SoftwareCounters
    """Measured, or derived from the source."""
    facts: KernelFacts
    """The kernel that was counted."""

    @property
    def warp(self) -> WarpCounters | None:
        """Counters of the width in use; None if that width was not counted."""
        return next((one for one in self.counters.warps if one.width == WARP_WIDTH), None)


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


_WARPS: tuple[Feature[CounterSource], ...] = (
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
)  # fmt: skip
_REQUESTS: tuple[Feature[CounterSource], ...] = (
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
)  # fmt: skip
_LOOPS: tuple[Feature[CounterSource], ...] = (
    Feature("counters.loop_iterations_per_work_item", "iterations of all loops",
            lambda s: sum(s.counters.block_counts[one.id] for one in s.facts.blocks
                          if one.kind is BlockKind.LOOP_BODY)),
    Feature("counters.loop_imbalance_ratio",
            "most over mean iterations per entry of a loop among work-items, of the most "
            "uneven loop; absent without loops",
            lambda s: max((one.most / one.mean for one in s.counters.loops if one.mean),
                          default=None)),
)  # fmt: skip
_ORIGIN: tuple[Feature[CounterSource], ...] = (
    Feature("counters.measured_flag",
            "1 if an instrumented run counted, or the source told all that it would count; 0 "
            "if counts were derived from the source",
            lambda s: s.counters.is_measured),
    Feature("counters.exact_flag", "1 if nothing was estimated", lambda s: s.counters.is_exact),
    Feature("counters.counted_work_items_count", "work-items that were looked at",
            lambda s: s.counters.work_items),
)  # fmt: skip

_SHARING = (*_ORIGIN, *_WARPS, *_REQUESTS, *_LOOPS)


def compute_counter_features(source: CounterSource) -> dict[str, float]:
    return {
        **compute_features(_SHARING, source), **compute_features(_OPERATIONS, source.counters),
    }  # fmt: skip


COUNTER_FEATURES: tuple[Feature[Any], ...] = (*_SHARING, *_OPERATIONS)
"""In the order of the schema."""
