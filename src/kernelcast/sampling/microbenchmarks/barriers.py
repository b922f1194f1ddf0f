"""What a barrier costs a work-group."""

import numpy as np

from kernelcast.records.traits import Trait
from kernelcast.sampling.microbenchmarks.findings import BenchmarkResult, Findings
from kernelcast.sampling.microbenchmarks.harness import Bench, LoopLaunch
from kernelcast.sampling.microbenchmarks.statistics import (
    check_result,
    difference_trait,
    make_curve,
)

NAME = "barrier"
_USUAL_SIZE = 64
_SIZES = (1, 4, 16, 64, 256)
_GROUPS_OF_A_UNIT = 8
_CHECKED = 5
_STEPS = 8
_OPERANDS = (1664525, 1013904223)
_STEP = "x = (x + a) ^ b;"
_BARRIER = "barrier(CLK_LOCAL_MEM_FENCE);"
_SOURCE = """
kernel void kc_barrier(global uint *out, global const uint *in, int n)
{
    const size_t item = get_global_id(0);
    const uint a = in[0], b = in[1];
    uint x = (uint)item;
    for (int i = 0; i < n; ++i) {
        BODY
    }
    out[item] = x;
}
"""


def measure_barriers(bench: Bench) -> BenchmarkResult:
    """Time loops of eight barriers against the same loops with one, by work-group size.

    The cost is what a further barrier adds per work-group: on a CPU its work-items are suspended
    and resumed one after the other. A loop without any barrier is no baseline there: PoCL runs it
    35 times as slowly, since it vectorises across work-items between barriers only.
    """
    findings = Findings(NAME)
    sizes = [size for size in _SIZES if size <= bench.description.max_work_group_size]
    sizes = bench.effort.pick(quick=[_USUAL_SIZE], normal=sizes, full=sizes)
    costs: dict[int, Trait[float]] = {}
    for size in sizes:
        with findings.attempting(f"{NAME}/{size}"):
            costs[size] = _measure_cost(bench, size)
    if _USUAL_SIZE in costs:
        findings.costs["barrier_s"] = costs[_USUAL_SIZE]
    else:
        findings.not_obtained["barrier_s"] = findings.not_obtained.pop(
            f"{NAME}/{_USUAL_SIZE}", f"the device has no work-groups of {_USUAL_SIZE} work-items"
        )
    if costs:
        y_name = "seconds per barrier and work-group"
        findings.curves.append(
            make_curve(NAME, "work-items of a work-group", y_name, costs, list(costs.values()))
        )
    return findings.result()


def _measure_cost(bench: Bench, local_size: int) -> Trait[float]:
    """Measure one barrier of one work-group, in seconds."""
    groups = _GROUPS_OF_A_UNIT
    many = _prepare(bench, [f"{_STEP} {_BARRIER}"] * _STEPS, local_size)
    one = _prepare(bench, [_STEP] * (_STEPS - 1) + [f"{_STEP} {_BARRIER}"], local_size)
    measured, iterations = many.measure_proven()
    count = iterations * (_STEPS - 1) * groups
    baseline = one.measure(iterations)
    return difference_trait(measured, baseline, NAME, scale=1 / count)


def _prepare(bench: Bench, body: list[str], local_size: int) -> LoopLaunch:
    items = local_size * _GROUPS_OF_A_UNIT * bench.units
    out, given = bench.buffer(4 * items), bench.buffer(np.array(_OPERANDS, dtype=np.uint32))
    source = _SOURCE.replace("BODY", "\n        ".join(body))
    launch = LoopLaunch(
        bench=bench,
        kernel=bench.build_kernel(source, "kc_barrier"),
        arguments=(out, given),
        global_size=items,
        local_size=local_size,
    )
    launch.time(_CHECKED)
    x = np.arange(items, dtype=np.uint32)
    for _ in range(_CHECKED * _STEPS):
        x = (x + np.uint32(_OPERANDS[0])) ^ np.uint32(_OPERANDS[1])
    check_result(bench.read(out, np.uint32, items), x)
    return launch
