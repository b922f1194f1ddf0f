"""Features of how work-items that run in step share instructions and memory requests."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.vector.definitions import Feature, divide
from kernelcast.records.operations import MemorySpace
from kernelcast.records.software_counters import RequestPattern, SoftwareCounters, WarpCounters

WARP_WIDTH = 32
"""Work-items taken to run in step, whatever the device, so that vectors can be compared."""

_LOOP_BODY = "loop body"


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


def _sectors_per_request(source: CounterSource) -> float | None:
    requests = _add_up(_global(source))
    sectors = _sectors(source)
    return divide(sectors, requests) if requests and sectors is not None else None


def _sector_excess(source: CounterSource) -> float | None:
    ideal = _add_up(_global(source), lambda one: one.ideal_sectors_per_request)
    sectors = _sectors(source)
    return divide(sectors, ideal) if ideal and sectors is not None else None


def _coalesced_loads(source: CounterSource) -> float | None:
    return _add_up(_global(source, is_store=False), lambda one: float(one.is_coalesced))


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


def _iterations(source: CounterSource) -> float:
    counts = source.counters.block_counts
    return sum(counts[one.id] for one in source.facts.blocks if one.kind == _LOOP_BODY)


def _imbalance(source: CounterSource) -> float | None:
    return max((one.most / one.mean for one in source.counters.loops if one.mean), default=None)


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
            _coalesced_loads, table_1="global loads coalesced"),
    Feature("counters.global_store_requests_per_warp", "store requests to global memory",
            lambda s: _add_up(_global(s, is_store=True))),
    Feature("counters.global_load_sectors_per_warp", "sectors that load requests touch",
            lambda s: _sectors(s, is_store=False)),
    Feature("counters.global_store_sectors_per_warp", "sectors that store requests touch",
            lambda s: _sectors(s, is_store=True)),
    Feature("counters.global_sectors_per_request", "sectors of a request, mean",
            _sectors_per_request),
    Feature("counters.global_sector_excess_ratio",
            "sectors over those that the bytes would need, 1 if perfectly coalesced",
            _sector_excess),
    Feature("counters.bank_conflicts_per_warp",
            "extra passes of local memory requests, for 32 banks of 4 bytes",
            _conflicts, table_1="bank conflicts"),
    Feature("counters.known_requests_ratio",
            "share of loads and stores whose addresses are known: what the request features "
            "speak of", _known_share),
)  # fmt: skip
_LOOPS: tuple[Feature[CounterSource], ...] = (
    Feature("counters.loop_iterations_per_work_item", "iterations of all loops", _iterations),
    Feature("counters.loop_imbalance_ratio",
            "most over mean iterations per entry of a loop among work-items, of the most "
            "uneven loop; absent without loops", _imbalance),
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

FEATURES = (*_ORIGIN, *_WARPS, *_REQUESTS, *_LOOPS)
"""In the order of the schema."""
