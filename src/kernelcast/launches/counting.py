"""Counts what a launch executes: from its source, or by running an instrumented copy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.analysis import Analysis, analyse
from kernelcast.features.counting.bindings import bind_scalars, choose_work_groups
from kernelcast.features.counting.requests import compute_requests, measure_requests
from kernelcast.features.counting.static import count_statically
from kernelcast.features.counting.summary import summarise
from kernelcast.features.counting.trips import find_loops
from kernelcast.features.counting_copy import write_counting_copy
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.software_counters import (
    CounterSample,
    InstrumentedKernel,
    RecordedAddresses,
    SoftwareCounters,
)
from kernelcast.sampling.counting import (
    BuiltCopy,
    CountingLaunch,
    make_sample,
    read_log,
)
from kernelcast.workers.deaths import COUNTING

_MOST_LOGGED = 1 << 22
"""Addresses written down per work-group at most: 64 MiB."""
_LOGGED_GROUPS = 2
Chosen = TypeVar("Chosen")


@dataclass(frozen=True, slots=True, kw_only=True)
class CountSettings:
    work_groups: int = 8
    """Work-groups that are counted, spread over the index space."""
    seed: int = 0
    compares_times: bool = True
    """Whether the time of counting is compared with the plain kernel's; that needs a copy that only
    counts, beside the one that records addresses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    ndrange: NDRange
    sample: CounterSample
    addresses: RecordedAddresses
    """Of some of the counted work-groups."""
    is_log_complete: bool
    """False if a work-item touched memory more often than could be written down."""
    instrumented_s: float
    plain_s: float
    """Time of the counted work-groups, and of the same ones of the plain kernel, in seconds; 0
    where they were not compared."""


def count_launch(
    launch: CountingLaunch,
    kernel: Kernel,
    analysis: Analysis,
    settings: CountSettings,
    *,
    report: Callable[[str], None] = lambda _: None,
) -> Counted:
    groups = choose_work_groups(launch.ndrange, settings.work_groups, settings.seed)
    boxes = [_box_of(launch.ndrange, group) for group in groups]
    report(COUNTING)
    source = write_counting_copy(kernel, records_addresses=True)
    copy = _Copy(launch=launch, source=source, built=launch.build_counting(source))
    if settings.compares_times:
        sample, instrumented_s, plain_s = _count(launch, kernel, boxes)
    else:
        sample, instrumented_s, plain_s = copy.count(boxes), 0.0, 0.0
    report("recording addresses")
    addresses, is_complete = copy.record(analysis, choose_recorded(boxes))
    return Counted(
        ndrange=launch.ndrange,
        sample=sample,
        addresses=addresses,
        is_log_complete=is_complete,
        instrumented_s=instrumented_s,
        plain_s=plain_s,
    )


def choose_recorded(counted: Sequence[Chosen]) -> Sequence[Chosen]:
    """Choose those of the counted work-groups that write their addresses down."""
    return counted[:: -(-len(counted) // _LOGGED_GROUPS)]


def _count(
    launch: CountingLaunch, kernel: Kernel, boxes: Sequence[GroupBox]
) -> tuple[CounterSample, float, float]:
    """Run the counting copy, and the plain kernel over the same work-groups for comparison."""
    instrumented = write_counting_copy(kernel)
    if not instrumented.counter_count:
        # Straight-line code: each work-item executes each block once, nothing is left to count.
        return make_sample(launch.ndrange, boxes), 0.0, 0.0
    built = launch.build_counting(instrumented)
    launch.warm_up(boxes[0])
    launch.count(instrumented, built, boxes[:1])  # compiles, where a runtime does that late
    counted = launch.count(instrumented, built, boxes)
    launch.settle()
    plain_s = sum(launch.time_boxes(boxes))
    sample = make_sample(launch.ndrange, boxes, counted, instrumented.counter_count)
    return sample, sum(one.duration_s for one in counted), plain_s


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """A copy of the kernel that counts and records addresses, built for a launch."""

    launch: CountingLaunch
    source: InstrumentedKernel
    built: BuiltCopy

    def count(self, boxes: Sequence[GroupBox]) -> CounterSample:
        """Count without recording more than one address."""
        if not self.source.counter_count:
            return make_sample(self.launch.ndrange, boxes)
        counted = self.launch.count(self.source, self.built, boxes, capacity=1)
        return make_sample(self.launch.ndrange, boxes, counted, self.source.counter_count)

    def record(
        self, analysis: Analysis, boxes: Sequence[GroupBox]
    ) -> tuple[RecordedAddresses, bool]:
        """Run once to see how much there is to write down, then for good."""
        launch, source = self.launch, self.source
        trial = launch.count(source, self.built, boxes, capacity=1)
        most = max(int(one.counts[source.counter_count].max()) for one in trial)
        capacity = max(1, min(most, _MOST_LOGGED // launch.ndrange.work_group_size))
        counted = launch.count(source, self.built, boxes, capacity=capacity)
        facts = analysis.facts
        owners = {access.site: access.buffer for access in facts.accesses}
        names = [*(one.name for one in facts.parameters), *(one.name for one in facts.local_arrays)]
        numbers = {name: number for number, name in enumerate(names)}
        return read_log(launch.ndrange, counted, source, owners, numbers), capacity >= most


def _box_of(ndrange: NDRange, group: int) -> GroupBox:
    start = []
    for count in ndrange.group_counts:
        start.append(group % count)
        group //= count
    return GroupBox(start=tuple(start), shape=(1,) * len(start))


def count_from_source(facts: KernelFacts, problem: Problem, ndrange: NDRange) -> SoftwareCounters:
    """Derive counters from the source; `is_exact` is False where data decide."""
    scalars = bind_scalars(facts, problem.arguments)
    groups = choose_work_groups(ndrange)
    sample = count_statically(facts, ndrange, scalars, groups)
    patterns = compute_requests(facts, ndrange, scalars, work_groups=groups)
    return summarise(facts, sample, patterns=patterns)


def count_exactly(
    facts: KernelFacts, problem: Problem, derived: SoftwareCounters
) -> SoftwareCounters | None:
    """Give what an instrumented run would count; None where the source does not tell all of it."""
    places = {one.site for one in facts.accesses}
    is_known = len(places) == len(facts.accesses) and all(
        one.is_exact and one.bytes and not _skips_iterations(facts, one) for one in facts.accesses
    )
    if not (derived.is_exact and is_known) or problem.ndrange.local_size is None:
        return None
    scalars = bind_scalars(facts, problem.arguments)
    groups = choose_recorded(choose_work_groups(problem.ndrange))
    patterns = compute_requests(facts, problem.ndrange, scalars, work_groups=groups)
    if len(patterns) < len(places):
        return None
    return replace(derived, patterns=patterns, instrumented_s=0.0, plain_s=0.0)


def _skips_iterations(facts: KernelFacts, access: MemoryAccess) -> bool:
    loops = find_loops(facts, access.loops)
    return not access.guard.symbols().isdisjoint(one.symbol for one in loops)


def summarise_run(problem: Problem, counted: Counted) -> SoftwareCounters:
    facts = analyse(problem.kernel).facts
    patterns = measure_requests(facts, counted.addresses)
    return replace(
        summarise(facts, counted.sample, patterns=patterns),
        instrumented_s=counted.instrumented_s,
        plain_s=counted.plain_s,
    )
