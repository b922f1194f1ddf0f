"""Finds everything about a launch that does not depend on samples, as a collection does.

A module of its own, since source analysis and analytic models take longer to import than samples
to take: a launch whose facts are known does without.
"""

from kernelcast.features.analysis import infer_accesses
from kernelcast.features.vector import CounterSource
from kernelcast.launches.counting import count_exactly
from kernelcast.launches.features import (
    DeviceFindings,
    FeatureSettings,
    add_analytic_findings,
    add_counts,
    compose_vector,
    read_source_features,
)
from kernelcast.launches.machines import find_own_machine
from kernelcast.launches.recordings import LaunchFacts
from kernelcast.records.feature_vector import FeatureGroup, group_of
from kernelcast.records.machine import read_peaks
from kernelcast.records.problem import Problem
from kernelcast.sampling.compiler_facts import read_compiler_facts
from kernelcast.sampling.counting import CountingLaunch
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.session import DeviceSession

_EVERYTHING = FeatureSettings(groups=frozenset(FeatureGroup))


def gather_facts(session: DeviceSession, launch: OpenCLLaunch, problem: Problem) -> LaunchFacts:
    """Find all features but the sampled ones."""
    features = read_source_features(problem, _EVERYTHING)
    found = DeviceFindings(
        ndrange=launch.ndrange,
        compute_units=session.description.compute_units,
        compiler=read_compiler_facts(session, problem.kernel, problem.ndrange),
        saturation=launch.saturation,
    )
    device_id, notes = session.description.id, len(found.notes)
    machine = find_own_machine(device_id)
    # Without an instrumented run where the source tells what it would count.
    found.counters = count_exactly(features.facts, problem, features.counters)
    if found.counters is not None:
        add_analytic_findings(found, problem, device_id, None, with_rivals=False)
        if found.analytic is None and machine is not None:
            # It may be that the model wants recorded addresses after all.
            del found.notes[notes:]
            found.counters = None
    if found.counters is None:
        recorded = (
            add_counts(found, problem, launch) if isinstance(launch, CountingLaunch) else None
        )
        add_analytic_findings(found, problem, device_id, recorded, with_rivals=False)
    counters = found.counters or features.counters
    warp = CounterSource(counters=counters, facts=features.facts).warp
    return LaunchFacts(
        values={
            name: one
            for name, one in compose_vector(features, found).as_dict().items()
            if group_of(name) is not FeatureGroup.SAMPLED
        },
        issued_per_work_item=warp.issued if warp else None,
        analytic=found.analytic,
        accesses=infer_accesses(problem.kernel, len(problem.arguments)),
        notes=tuple(found.notes),
        peaks=read_peaks(machine),
    )
