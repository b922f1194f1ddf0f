from pathlib import Path

import numpy as np
import pytest

from kernelcast.features.analysis import read_facts
from kernelcast.features.counting.static import bind_scalars, count_statically
from kernelcast.features.counting.summary import summarise
from kernelcast.launches.counting import Counted, count_launch
from kernelcast.launches.preparing import prepared_launch
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.arguments import Access, BufferArgument, ElementType, ScalarArgument
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import MemorySpace, OperationKind
from kernelcast.records.problem import Problem
from kernelcast.sampling.counting import CountingLaunch
from kernelcast.sampling.session import DeviceSession
from support.address_sets import bind_group, enumerate_offsets

pytestmark = pytest.mark.device

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*/*.yaml"))
# Sizes at which counting is all that takes time; some work-groups are full, some are not.
SMALL = {
    "chebyshev_fp64": {"N": 4096, "TERMS": 32},
    "convolution": {"WIDTH": 200, "HEIGHT": 120},
    "grid_stride": {"N": 40_007, "WORK_ITEMS": 4096},
    "histogram": {"N": 400_003},
    "inplace_update": {"N": 40_008, "STEPS": 12},
    "mandelbrot": {"SIDE": 128, "LIMIT": 100},
    "matmul_tiled": {"N": 128},
    "nbody": {"N": 1024},
    "pointer_chase": {"N": 4096, "WORK_ITEMS": 4096, "STEPS": 20},
    "reduction": {"N": 40_007, "GROUPS": 32},
    "scan_blocks": {"N": 10_007},
    "spmv_csr": {"ROWS": 1000, "COLUMNS": 5000, "NNZ": 1_000_000},
    "stencil2d": {"NX": 256, "NY": 128},
    "stencil3d": {"NX": 50, "NY": 30, "NZ": 21},
    "transcendental": {"N": 8192},
    "transpose": {"WIDTH": 130, "HEIGHT": 75},
    "triad": {"N": 20_480, "SWEEPS": 4},
    "triangular": {"N": 2048},
}


def read_small(path: Path) -> Problem:
    """Read an example, made small; whole if nobody has said how."""
    return read_problem(path, parameters=SMALL.get(path.stem, {}))


def _count(session: DeviceSession, problem: Problem, work_groups: int = 4) -> Counted:
    with prepared_launch(session, problem, CountingLaunch, seed=0) as launch:
        return count_launch(launch, problem.kernel, work_groups=work_groups)


@pytest.fixture(scope="module")
def outcomes() -> dict[tuple[str, str], Counted]:
    """Keep what was counted, since some runtimes compile slowly."""
    return {}


@pytest.fixture(params=EXAMPLES, ids=lambda path: path.stem)
def example(
    request: pytest.FixtureRequest,
    session: DeviceSession,
    outcomes: dict[tuple[str, str], Counted],
) -> tuple[Problem, Counted]:
    """Count an example on a device, or skip it where the device lacks double precision."""
    problem = read_small(request.param)
    if "double" in problem.kernel.source and not session.description.has_fp64:
        pytest.skip("the device has no double precision")
    key = (session.description.id, problem.name)
    if key not in outcomes:
        outcomes[key] = _count(session, problem)
    return problem, outcomes[key]


def test_counters_are_those_that_the_source_foretells(example: tuple[Problem, Counted]) -> None:
    """Counts at each work-item what follows exactly from loops and guards."""
    problem, counted = example
    facts = read_facts(problem.kernel)
    scalars = bind_scalars(facts, problem.arguments)
    foretold = count_statically(facts, counted.ndrange, scalars, counted.sample.work_groups)
    for counter, is_exact in enumerate(foretold.is_exact):
        if is_exact:
            np.testing.assert_array_equal(
                counted.sample.counts[:, :, counter], foretold.counts[:, :, counter]
            )


def test_addresses_are_those_that_the_expressions_describe(
    example: tuple[Problem, Counted],
) -> None:
    """Touches exactly the computed addresses, or some of them where data decides."""
    problem, counted = example
    facts, addresses = read_facts(problem.kernel), counted.addresses
    scalars = bind_scalars(facts, problem.arguments)
    sites = {access.site for access in facts.accesses}
    assert sites
    for site in sites:
        accesses = [access for access in facts.accesses if access.site == site]
        if any(access.offset_bytes is None for access in accesses):
            continue
        for group in addresses.work_groups:
            bound = bind_group(counted.ndrange, group, scalars)
            computed = set().union(*(enumerate_offsets(access, bound) for access in accesses))
            chosen = (addresses.sites == site) & (addresses.groups == group)
            recorded = set(np.unique(addresses.offsets_bytes[chosen]).tolist())
            if counted.is_log_complete and all(access.is_exact for access in accesses):
                assert computed == recorded, accesses[0].text
            else:
                assert recorded <= computed, accesses[0].text


def make_problem(source: str, *, size: int = 64) -> Problem:
    """Give a problem of the kernel `k(global int *a, int n)` over 16-wide work-groups."""
    return Problem(
        name="k",
        kernel=Kernel(name="k", source=source),
        ndrange=NDRange(global_size=(size,), local_size=(16,)),
        arguments=(
            BufferArgument(element=ElementType("int32"), count=size, access=Access.READ_WRITE),
            ScalarArgument(element=ElementType("int32"), values=(5,)),
        ),
    )


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
    ],
)
def test_jumps_are_counted_right(
    session: DeviceSession, body: str, expected: tuple[int, int]
) -> None:
    """Counts stores and sums through every kind of jump."""
    helper = "int help(int x) { int y = 0; while (y < x && y < 4) ++y; return y; }\n"
    source = f"{helper}kernel void k(global int *a, int n) {{ int g = get_global_id(0); {body} }}"
    problem = make_problem(source)
    counted = _count(session, problem)
    executed = summarise(read_facts(problem.kernel), counted.sample).executed
    stores = executed.count_memory(MemorySpace.GLOBAL, is_store=True)
    assert (stores, executed.count(OperationKind.ADD)) == pytest.approx(expected)


def test_blocks_hidden_in_macros_are_counted(session: DeviceSession) -> None:
    """Counts a loop that a macro opens and closes."""
    source = (
        "#define EACH(v, n) for (int v = 0; v < (n); ++v) {\n#define END }\n"
        "kernel void k(global int *a, int n) { EACH(i, n) a[get_global_id(0)] += i; END }"
    )
    counted = _count(session, make_problem(source))
    assert set(counted.sample.counts.ravel().tolist()) == {5.0, 6.0}  # the body, and its test
    assert counted.addresses.sites.size > 0
