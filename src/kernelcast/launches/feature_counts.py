"""Software counters of a launch: from its source, or from an instrumented run."""

from dataclasses import replace

from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.analysis import analyse
from kernelcast.features.counting.bindings import bind_scalars
from kernelcast.features.counting.requests import compute_requests, measure_requests
from kernelcast.features.counting.sampled_groups import choose_work_groups
from kernelcast.features.counting.static import count_statically
from kernelcast.features.counting.summary import summarise
from kernelcast.features.counting.trips import find_loops
from kernelcast.launches.counting import Counted, choose_recorded
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.software_counters import SoftwareCounters


def count_from_source(facts: KernelFacts, problem: Problem, ndrange: NDRange) -> SoftwareCounters:
    """Derive counters from the source, for a few work-groups spread over the index space.

    Parameters
    ----------
    problem : Problem
        For its arguments.
    ndrange : NDRange
        The launch; the local size is chosen.

    Returns
    -------
    SoftwareCounters
        What depends on data is guessed, and `is_exact` is False then.
    """
    scalars = bind_scalars(facts, problem.arguments)
    groups = choose_work_groups(ndrange)
    sample = count_statically(facts, ndrange, scalars, groups)
    patterns = compute_requests(facts, ndrange, scalars, work_groups=groups)
    return summarise(facts, sample, patterns=patterns)


def count_exactly(
    facts: KernelFacts, problem: Problem, derived: SoftwareCounters
) -> SoftwareCounters | None:
    """Give what an instrumented run would count, where the source tells all of it.

    Parameters
    ----------
    derived : SoftwareCounters
        What `count_from_source` gave for it.

    Returns
    -------
    SoftwareCounters or None
        Of the work-groups that a run counts, memory requests of those that it records; None where
        a count or an address depends on data, on an argument that is not known, or on a local
        size that the device chooses.
    """
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
    """Tell whether work-items may skip an access in different iterations.

    A record has no iterations, only the order: the n-th executions count as one request there.
    """
    loops = find_loops(facts, access.loops)
    return not access.guard.symbols().isdisjoint(one.symbol for one in loops)


def summarise_run(problem: Problem, counted: Counted) -> SoftwareCounters:
    """Summarise what an instrumented run counted and recorded."""
    facts = analyse(problem.kernel).facts
    patterns = measure_requests(facts, counted.addresses)
    return replace(
        summarise(facts, counted.sample, patterns=patterns),
        instrumented_s=counted.instrumented_s,
        plain_s=counted.plain_s,
    )
