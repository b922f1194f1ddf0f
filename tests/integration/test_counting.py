import runpy
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from kernelcast.features.analysis import read_facts
from kernelcast.features.counting.static import bind_scalars, count_statically
from kernelcast.features.counting.summary import summarise
from kernelcast.launches.counting import count_launch
from kernelcast.launches.preparing import prepared_launch
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.arguments import Access
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import MemorySpace, OperationKind
from kernelcast.records.problem import Problem
from kernelcast.records.software_counters import CounterSample, RecordedAddresses
from kernelcast.sampling.session import DeviceSession
from support.address_sets import bind_group, enumerate_offsets
from support.problems import buffer_of, number_of, write_problem

pytestmark = pytest.mark.device

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*/reference.py"))


def _count(
    session: DeviceSession, problem: Problem
) -> tuple[NDRange, CounterSample, RecordedAddresses]:
    with prepared_launch(session, problem, seed=0) as launch:
        return launch.ndrange, *count_launch(launch, problem.kernel)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_counters_and_addresses_are_those_that_the_source_foretells(
    session: DeviceSession, path: Path
) -> None:
    """At each work-item what follows exactly from loops and guards; where data decide, no others.

    Sizes are those of the example's reference: counting is all that takes time.
    """
    parameters = runpy.run_path(str(path))["SMALL"]
    problem = read_problem(next(path.parent.glob("*.yaml")), parameters=parameters)
    if "double" in problem.kernel.source and not session.description.has_fp64:
        pytest.skip("the device has no double precision")
    ndrange, sample, addresses = _count(session, problem)
    facts = read_facts(problem.kernel)
    scalars = bind_scalars(facts, problem.arguments)
    foretold = count_statically(facts, ndrange, scalars, sample.work_groups)
    for counter in np.flatnonzero(foretold.is_exact):
        np.testing.assert_array_equal(sample.counts[:, :, counter], foretold.counts[:, :, counter])
    sites = {access.site for access in facts.accesses}
    assert sites
    for site, group in product(sites, addresses.work_groups):
        accesses = [access for access in facts.accesses if access.site == site]
        if any(access.offset_bytes is None for access in accesses):
            continue
        bound = bind_group(ndrange, group, scalars)
        computed = set().union(*(enumerate_offsets(access, bound) for access in accesses))
        chosen = (addresses.sites == site) & (addresses.groups == group)
        recorded = set(np.unique(addresses.offsets_bytes[chosen]).tolist())
        if all(access.is_exact for access in accesses):
            assert computed == recorded, accesses[0].text
        else:
            assert recorded <= computed, accesses[0].text


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for (int i = 0; i < n; ++i) { if (i == 3) break; a[g] += i; }", (3, 6)),
        ("for (int i = 0; i < n; ++i) { if (i == 3) continue; a[g] += i; }", (4, 9)),
        ("if (g > 1000) return; if (g > 2000) a[g] = n;", (0, 0)),
        ("int i = 0; do { a[g] += i; } while (++i < n && a[g] < 1000);", (5, 10)),
        ("switch (n) { case 5: a[g] = 1; case 6: a[g] = 2; break; default: a[g] = 3; }", (2, 0)),
        ("int i = 0; again: ++i; if (i < n) goto again; a[g] = i;", (1, 5)),
        ("for (int i = 0; i < n; ++i) a[g] += help(i);", (5, 10 + 0 + 1 + 2 + 3 + 4)),
        ("EACH(i, n) a[g] += i; END", (5, 10)),
    ],
)
def test_jumps_are_counted_right(
    session: DeviceSession, body: str, expected: tuple[int, int]
) -> None:
    """Counts stores and sums through every kind of jump, and in blocks that macros hide."""
    helper = "#define EACH(v, n) for (int v = 0; v < (n); ++v) {\n#define END }\n"
    helper += "int help(int x) { int y = 0; while (y < x && y < 4) ++y; return y; }\n"
    source = f"{helper}kernel void k(global int *a, int n) {{ int g = get_global_id(0); {body} }}"
    buffer = replace(buffer_of("int32"), access=Access.READ_WRITE)
    problem = write_problem(source, buffer, number_of(5), local=(16,))
    _, sample, _ = _count(session, problem)
    executed = summarise(read_facts(problem.kernel), sample).executed
    stores = executed.count_memory(MemorySpace.GLOBAL, is_store=True)
    assert (stores, executed.count(OperationKind.ADD)) == pytest.approx(expected)
