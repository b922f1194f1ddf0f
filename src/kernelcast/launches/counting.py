"""Counts what a launch executes: from its source, or by running an instrumented copy."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.analysis import read_facts
from kernelcast.features.counting.static import (
    bind_scalars,
    choose_work_groups,
    count_statically,
)
from kernelcast.features.counting.summary import compute_requests, measure_requests, summarise
from kernelcast.features.counting_copy import write_counting_copy
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.software_counters import CounterSample, RecordedAddresses, SoftwareCounters
from kernelcast.sampling.instrumented import count_boxes, make_sample, read_log
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.plan import box_near
from kernelcast.workers import COUNTING

Chosen = TypeVar("Chosen")


def count_launch(
    launch: OpenCLLaunch,
    kernel: Kernel,
    *,
    seed: int = 0,
    report: Callable[[str], None] = lambda _: None,
) -> tuple[CounterSample, RecordedAddresses]:
    """Run a copy of the kernel that counts on a few work-groups, and on some of them also records
    addresses."""
    ndrange = launch.ndrange
    chosen = choose_work_groups(ndrange, 8, seed)
    boxes = [box_near(group, 1, ndrange.group_counts) for group in chosen]
    report(COUNTING)
    copy = write_counting_copy(kernel)
    built = launch.build_copy(copy.kernel, copy.header)
    sample = make_sample(ndrange, count_boxes(launch, copy, built, boxes, capacity=1))
    report("recording addresses")
    recorded = choose_recorded(boxes)
    # Once to see how much there is to write down, then for good.
    trial = count_boxes(launch, copy, built, recorded, capacity=1)
    most = max(int(counts[-1].max()) for _, counts, _ in trial)
    # Addresses written down per work-group at most: 64 MiB.
    capacity = max(1, min(most, (1 << 22) // ndrange.work_group_size))
    logged = count_boxes(launch, copy, built, recorded, capacity=capacity)
    return sample, read_log(ndrange, logged)


def choose_recorded(counted: Sequence[Chosen]) -> Sequence[Chosen]:
    return counted[:: -(-len(counted) // 2)]  # two of them


def count_from_source(facts: KernelFacts, problem: Problem, ndrange: NDRange) -> SoftwareCounters:
    """Derive counters from the source; `is_exact` is False where data decide."""
    scalars = bind_scalars(facts, problem.arguments)
    groups = choose_work_groups(ndrange)
    sample = count_statically(facts, ndrange, scalars, groups)
    patterns = compute_requests(facts.accesses, ndrange, scalars, work_groups=groups)
    return summarise(facts, sample, patterns=patterns)


def count_exactly(
    facts: KernelFacts, problem: Problem, derived: SoftwareCounters
) -> SoftwareCounters | None:
    """Give what an instrumented run would count; None where the source does not tell all of it."""
    places = {one.site for one in facts.accesses}
    is_known = len(places) == len(facts.accesses) and all(
        one.is_exact
        and one.bytes
        # A record has no iterations, only the order: the n-th executions are one request there.
        and one.guard.symbols().isdisjoint(loop.symbol for loop in one.loops)
        for one in facts.accesses
    )
    if not (derived.is_exact and is_known) or problem.ndrange.local_size is None:
        return None
    scalars = bind_scalars(facts, problem.arguments)
    groups = choose_recorded(choose_work_groups(problem.ndrange))
    patterns = compute_requests(facts.accesses, problem.ndrange, scalars, work_groups=groups)
    if len(patterns) < len(places):
        return None
    return replace(derived, patterns=patterns, is_measured=True)


def summarise_run(
    problem: Problem, sample: CounterSample, addresses: RecordedAddresses
) -> SoftwareCounters:
    facts = read_facts(problem.kernel)
    patterns = measure_requests(facts.accesses, addresses)
    return replace(summarise(facts, sample, patterns=patterns), is_measured=True)
