"""Software counters of a launch: from its source, or from an instrumented run."""

from dataclasses import replace

from kernelcast.features.analysis import analyse
from kernelcast.features.counting.bindings import bind_scalars
from kernelcast.features.counting.requests import compute_requests, measure_requests
from kernelcast.features.counting.sampled_groups import choose_work_groups
from kernelcast.features.counting.static import count_statically
from kernelcast.features.counting.summary import summarise
from kernelcast.predictor.counting import Counted
from kernelcast.records.kernel_facts import KernelFacts
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.software_counters import SoftwareCounters


def count_from_source(facts: KernelFacts, problem: Problem, ndrange: NDRange) -> SoftwareCounters:
    """Derive counters from the source, for a few work-groups spread over the index space.

    Parameters
    ----------
    facts : KernelFacts
        The kernel.
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
    sample = count_statically(facts, ndrange, scalars, choose_work_groups(ndrange))
    patterns = compute_requests(facts, ndrange, scalars)
    return summarise(facts, sample, patterns=patterns)


def summarise_run(problem: Problem, counted: Counted) -> SoftwareCounters:
    """Summarise what an instrumented run counted.

    Returns
    -------
    SoftwareCounters
        Memory requests are those recorded, or computed where no addresses were recorded.
    """
    facts = analyse(problem.kernel).facts
    if counted.addresses is not None:
        patterns = measure_requests(facts, counted.addresses)
    else:
        scalars = bind_scalars(facts, problem.arguments)
        patterns = compute_requests(facts, counted.ndrange, scalars)
    return replace(
        summarise(facts, counted.sample, patterns=patterns),
        instrumented_s=counted.instrumented_s,
        plain_s=counted.plain_s,
    )
