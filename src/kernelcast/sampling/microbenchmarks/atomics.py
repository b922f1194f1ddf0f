"""How many atomic additions a device does per second."""

import numpy as np

from kernelcast.sampling.microbenchmarks.findings import BenchmarkResult, Findings
from kernelcast.sampling.microbenchmarks.harness import Bench, LoopLaunch
from kernelcast.sampling.microbenchmarks.statistics import as_rate, check_result

NAME = "atomics"
_LOCAL_SIZE = 64
_GROUPS_OF_A_UNIT = 16
_CHECKED = 5
_STEP = 3
# Intel's compiler adds to a fixed local address in a register: where the address is, only the
# arguments say, and it may move with every iteration.
_SOURCE = """
#define PLACE ((own * apart + i * hop) & (LOCAL_SIZE - 1))

kernel void kc_atomic_global(global int *cells, int step, int apart, int hop, int n)
{
    const int own = (int)get_local_id(0);
    global int *sums = cells + apart * (get_global_id(0) - own);
    for (int i = 0; i < n; ++i)
        atomic_add(&sums[PLACE], step);
}

kernel void kc_atomic_local(global int *cells, int step, int apart, int hop, int n)
{
    local int sums[LOCAL_SIZE];
    const int own = (int)get_local_id(0);
    sums[own] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < n; ++i)
        atomic_add(&sums[PLACE], step);
    barrier(CLK_LOCAL_MEM_FENCE);
    cells[get_global_id(0)] += sums[own];
}
"""
_PLACES = {"same": 0, "distinct": 1}


def measure_atomics(bench: Bench) -> BenchmarkResult:
    """Add integers atomically in global and local memory, at one address or each at its own.

    "Same" in local memory is one address per work-group. Addresses of neighbouring work-items
    are neighbours. The sums prove that every addition happened.
    """
    findings = Findings(NAME)
    for space in ("global", "local"):
        for place in _PLACES:
            what = f"atomic_{space}_{place}_per_s"
            with findings.attempting(what):
                launch = _prepare(bench, space, place)
                measured, iterations = launch.measure_proven()
                amount = float(launch.global_size * iterations)
                findings.costs[what] = as_rate(measured, amount, NAME)
    return findings.result()


def _prepare(bench: Bench, space: str, place: str) -> LoopLaunch:
    """Build the kernel and check its sums."""
    local_size = min(_LOCAL_SIZE, bench.description.max_work_group_size)
    items = local_size * _GROUPS_OF_A_UNIT * bench.units
    cells = bench.buffer(4 * items)
    apart = _PLACES[place]
    launch = LoopLaunch(
        bench=bench,
        kernel=bench.build_kernel(_SOURCE, f"kc_atomic_{space}", (f"-DLOCAL_SIZE={local_size}",)),
        arguments=(cells, _STEP, apart, apart),
        global_size=items,
        local_size=local_size,
    )
    launch.time(_CHECKED)
    sums = np.zeros(items, dtype=np.int32)
    if place == "distinct":
        sums[:] = _STEP * _CHECKED
    elif space == "local":
        sums[::local_size] = _STEP * _CHECKED * local_size
    else:
        sums[0] = _STEP * _CHECKED * items
    check_result(bench.read(cells, np.int32, items), sums)
    return launch
