"""What a lane costs whose neighbours load from elsewhere."""

import numpy as np

from kernelcast.sampling.microbenchmarks.findings import BenchmarkResult, Findings
from kernelcast.sampling.microbenchmarks.harness import Bench
from kernelcast.sampling.microbenchmarks.statistics import as_trait, check_result

NAME = "gathers"
_COST = "gather_lane_s"
_LOCAL_SIZE = 64
_LOADS = 32
_CELLS = 2048
"""8 KiB of them, less than any L1 cache holds."""
_MOST_GROUPS = 2**16
_SEED = 7
# Neighbours look at places that only data tell, and no loop stands between a runtime and its loop
# over work-items.
_SOURCE = f"""
kernel void kc_gather(global uint *out, global const uint *cells, global const int *places)
{{
    const int place = places[get_local_id(0)];
    uint sum = 0;
    {" ".join(f"sum += cells[place ^ {load}];" for load in range(_LOADS))}
    out[get_global_id(0)] = sum;
}}
"""


def measure_gathers(bench: Bench) -> BenchmarkResult:
    """Load from L1 at addresses of which no two neighbours' lie side by side.

    ``gather_lane_s`` is the time of a core per work-item and load. Sums of what was loaded prove
    it.
    """
    findings = Findings(NAME)
    with findings.attempting(_COST):
        generator = np.random.default_rng(_SEED)
        local_size = min(_LOCAL_SIZE, bench.description.max_work_group_size)
        content = generator.integers(0, 2**32, size=_CELLS, dtype=np.uint32)
        starts = generator.permutation(_CELLS // _LOADS)[:local_size].astype(np.int32) * _LOADS
        cells, places = bench.buffer(content), bench.buffer(starts)
        out = bench.buffer(4 * local_size * _MOST_GROUPS)
        kernel = bench.set_args(bench.build_kernel(_SOURCE, "kc_gather"), out, cells, places)

        def run(groups: int) -> float:
            return bench.time_launch(kernel, groups * local_size, local_size)

        groups = bench.calibrate_length(run, first=256, most=_MOST_GROUPS)
        groups = bench.prove_work(run, groups, most=_MOST_GROUPS)
        measured = bench.measure(lambda: run(groups))
        sums = content.reshape(-1, _LOADS).sum(axis=1, dtype=np.uint32)[starts // _LOADS]
        check_result(bench.read(out, np.uint32, local_size * groups), np.tile(sums, groups))
        scale = bench.units / (groups * local_size * _LOADS)
        findings.costs[_COST] = as_trait(measured, NAME, scale=scale)
    return findings.result()
