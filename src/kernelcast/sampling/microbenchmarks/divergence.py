"""What it costs when neighbouring work-items take different branches (paper, V.D)."""

from collections.abc import Sequence

import numpy as np

from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import MeasurementError
from kernelcast.records.machine import Curve
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.sampling.microbenchmarks.findings import BenchmarkResult, Findings
from kernelcast.sampling.microbenchmarks.harness import Bench, LoopLaunch
from kernelcast.sampling.microbenchmarks.statistics import as_rate, check_result, make_curve
from kernelcast.sampling.opencl import cl

NAME = "divergence"
_BRANCHES = 4
_UNROLL = 16
_COUNTS = (1, 2, 4, 8, 16, 32, 64)
_GROUPS_OF_A_UNIT = 16
_FULL_RATE = 0.85
_LEAST_GAIN = 1.5
"""A curve that rises less than this tells of no lock-step."""
_MULTIPLIERS = (1664525, 22695477, 1103515245, 214013)
_CHECKED = 3


def measure_divergence(bench: Bench) -> BenchmarkResult:
    """Vary how many neighbouring work-items take the same one of four branches.

    Each branch multiplies and adds integers with a factor of its own, so branches cannot be
    merged. Work-items that are executed in lock-step take all branches one after the other, until
    as many neighbours as are in step agree.
    """
    findings = Findings(NAME)
    with findings.attempting(NAME):
        curve, best_rates = _measure_curve(bench, _COUNTS)
        findings.curves.append(curve)
        with findings.attempting("warp_width"):
            findings.warp_width = _describe(bench, infer_width(curve.x, best_rates))
    return findings.result()


def infer_width(counts: Sequence[float], rates: Sequence[float]) -> int:
    """Infer how many work-items are executed in lock-step.

    Parameters
    ----------
    counts : sequence of float
        Neighbours that take the same branch, rising.
    rates : sequence of float
        Operations per second.

    Examples
    --------
    >>> infer_width([1, 2, 4, 8, 16, 32, 64], [1, 1, 1, 1.3, 2, 4, 4])
    32
    """
    best = max(rates)
    if best < _LEAST_GAIN * rates[0]:
        msg = (
            f"work-items that take different branches run at {rates[0] / best:.0%} of the rate of "
            "those that agree: they are not seen to be executed in lock-step"
        )
        raise MeasurementError(msg)
    pairs = zip(counts, rates, strict=True)
    return int(min(count for count, rate in pairs if rate >= _FULL_RATE * best))


def _describe(bench: Bench, width: int) -> Trait[int]:
    is_cpu = bench.description.kind is DeviceKind.CPU
    origin = f"{NAME} (work-items that the compiler vectorises together)" if is_cpu else NAME
    return Trait(value=width, source=TraitSource.MEASURED, origin=origin)


def _write_source() -> str:
    steps = "\n            ".join(["x = x * m + b;"] * _UNROLL)
    branches = " else ".join(
        f"if (branch == {number}) {{\n        const uint m = {factor}u;\n"
        f"        for (int i = 0; i < n; ++i) {{\n            {steps}\n        }}\n    }}"
        for number, factor in enumerate(_MULTIPLIERS)
    )
    return f"""
kernel void kc_divergence(global uint *out, global const uint *in, int agreeing, int n)
{{
    const size_t item = get_global_id(0);
    const uint b = in[0];
    const int branch = ((int)get_local_id(0) / agreeing) % {_BRANCHES};
    uint x = (uint)item;
    {branches}
    out[item] = x;
}}
"""


def _measure_curve(bench: Bench, counts: Sequence[int]) -> tuple[Curve, list[float]]:
    """Give the curve of medians, and the rates of the shortest runs, which noise spares."""
    local_size = min(_BRANCHES * _COUNTS[-1], bench.description.max_work_group_size)
    items = local_size * _GROUPS_OF_A_UNIT * bench.units
    out, given = bench.buffer(4 * items), bench.buffer(np.array([1013904223], dtype=np.uint32))
    kernel = bench.build_kernel(_write_source(), "kc_divergence")
    traits, best = [], []
    for count in counts:
        if _BRANCHES * count > local_size:
            break
        launch = LoopLaunch(
            bench=bench, kernel=kernel, arguments=(out, given, count), global_size=items,
            local_size=local_size,
        )  # fmt: skip
        launch.time(_CHECKED)
        _check(bench, out, local_size, count)
        measured, iterations = launch.measure_proven()
        amount = 2.0 * items * iterations * _UNROLL
        traits.append(as_rate(measured, amount, NAME))
        best.append(amount / measured.minimum)
    x_name = "neighbouring work-items that take the same branch"
    x = counts[: len(traits)]
    return make_curve(NAME, x_name, "operations per second", x, traits), best


def _check(bench: Bench, out: cl.Buffer, items: int, agreeing: int) -> None:
    x = np.arange(items, dtype=np.uint32)
    factors = np.array(_MULTIPLIERS, dtype=np.uint32)[x // agreeing % _BRANCHES]
    for _ in range(_CHECKED * _UNROLL):
        x = x * factors + np.uint32(1013904223)
    check_result(bench.read(out, np.uint32, items), x)
