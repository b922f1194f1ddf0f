"""The clock of a CPU device, from instructions whose latency in cycles is known."""

import numpy as np

from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import MeasurementError
from kernelcast.records.traits import Trait
from kernelcast.sampling.microbenchmarks.findings import BenchmarkResult, Findings
from kernelcast.sampling.microbenchmarks.harness import Bench, LoopLaunch
from kernelcast.sampling.microbenchmarks.statistics import Measured, as_rate, check_result

NAME = "clock"
_UNROLL = 32
_CHECKED = 3
_ADD_CYCLES = 2
"""An addition and an exclusive or take a cycle each, on every current CPU."""
_MULTIPLY_CYCLES = 4
"""A multiplication takes three on x86-64 (Intel since Nehalem, AMD since Zen), and one for xor."""
_TOLERANCE = 0.06
_SOURCE = """
kernel void kc_clock(global uint *out, global const uint *in, int n)
{
    const uint a = in[0], b = in[1];
    uint x = in[2] + (uint)get_global_id(0);
    for (int i = 0; i < n; ++i) {
        BODY
    }
    out[get_global_id(0)] = x;
}
"""
_OPERANDS = (1664525, 1013904223, 12345)


def measure_clock(bench: Bench) -> BenchmarkResult:
    """Count dependent one-cycle instructions per second, if a second chain bears it out.

    A chain of additions and exclusive ors, which no compiler can shorten, takes two cycles per
    step; the same chain with multiplications takes four. Only where the times are as 2 to 4 are
    the chains executed as assumed, and their rate is the clock.
    """
    findings = Findings(NAME)
    with findings.attempting("clock_hz"):
        if bench.description.kind is not DeviceKind.CPU:
            msg = "no instruction of this device is known to take one cycle"
            raise MeasurementError(msg)
        added, added_count = _measure_chain(bench, "+")
        multiplied, multiplied_count = _measure_chain(bench, "*")
        ratio = (multiplied.minimum / multiplied_count) / (added.minimum / added_count)
        findings.clock_hz = judge(added, added_count, ratio)
    return findings.result()


def judge(added: Measured, steps: float, ratio: float) -> Trait[float]:
    """Give the clock if multiplications take as long as they should beside additions.

    Parameters
    ----------
    added : Measured
        Time of the chain of additions, in seconds.
    ratio : float
        Time of a step that multiplies over that of one that adds.
    """
    expected = _MULTIPLY_CYCLES / _ADD_CYCLES
    if abs(ratio - expected) > _TOLERANCE * expected:
        msg = (
            f"a step that multiplies takes {ratio:.2f} times one that adds, "
            f"{expected:.2f} expected: latencies in cycles are not what they are taken for"
        )
        raise MeasurementError(msg)
    return as_rate(added, steps * _ADD_CYCLES, NAME)


def _measure_chain(bench: Bench, operator: str) -> tuple[Measured, float]:
    """Measure a launch of one work-item, so that threads do not matter; give it with its steps."""
    given, out = bench.buffer(np.array(_OPERANDS, dtype=np.uint32)), bench.buffer(4)
    body = "\n        ".join([f"x = (x {operator} a) ^ b;"] * _UNROLL)
    kernel = bench.build_kernel(_SOURCE.replace("BODY", body), "kc_clock")
    launch = LoopLaunch(
        bench=bench, kernel=kernel, arguments=(out, given), global_size=1, local_size=1
    )
    launch.time(_CHECKED)
    a, b, start = (np.uint32(one) for one in _OPERANDS)
    x = np.array([start])
    for _ in range(_CHECKED * _UNROLL):
        x = (x + a if operator == "+" else x * a) ^ b
    check_result(bench.read(out, np.uint32, 1), x)
    measured, iterations = launch.measure_proven()
    return measured, float(iterations * _UNROLL)
