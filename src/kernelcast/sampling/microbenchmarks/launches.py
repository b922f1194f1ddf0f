"""What launches and work-groups cost that do nothing."""

import time

import numpy as np
import numpy.typing as npt

from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import MeasurementError
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.sampling.microbenchmarks.findings import BenchmarkResult, Findings
from kernelcast.sampling.microbenchmarks.harness import Bench
from kernelcast.sampling.microbenchmarks.statistics import (
    Measured,
    as_trait,
    difference_trait,
    fit_line,
    make_curve,
)
from kernelcast.sampling.opencl import OtherDriver, cl

LAUNCH = "launch"
DISPATCH = "dispatch"
_NANOSECOND = 1e-9
_BATCH = 32
_SOURCE = """
kernel void kc_idle(global int *sink, int never)
{
    if (get_global_id(0) == (size_t)never)
        *sink = 1;
}
"""
_NEVER = 0x7FFFFFFF
_FEWEST_GROUPS = 256
_MOST_GROUPS = 2**20
_STRAIGHT = 1.5
ROW_ORDER = "dispatch_row_order"
# Work-groups per compute unit: some eight times what is active at once. A row of the grid.
_ORDER_GROUPS, _ORDER_WIDTH, _ORDER_STEPS = 256, 64, 500


def measure_launch(bench: Bench) -> BenchmarkResult:
    """Measure three costs of an empty launch of one work-item.

    ``launch_s`` is what the caller waits from enqueueing until the queue has finished,
    ``launch_queued_to_start_s`` the time from queued to start by profiling events (clpeak's kernel
    launch latency), ``launch_in_batch_s`` the time per launch where many are enqueued at once.
    """
    findings = Findings(LAUNCH)
    queue, sink = bench.session.queue, bench.buffer(4)
    kernel = _build(bench, sink)

    def finish() -> float:
        start_s = time.perf_counter()
        cl.enqueue_nd_range_kernel(queue, kernel, (1,), (1,))
        queue.finish()
        return time.perf_counter() - start_s

    def batch() -> float:
        start_s = time.perf_counter()
        for _ in range(_BATCH):
            cl.enqueue_nd_range_kernel(queue, kernel, (1,), (1,))
        queue.finish()
        return (time.perf_counter() - start_s) / _BATCH

    def wait_for_start() -> float:
        event = cl.enqueue_nd_range_kernel(queue, kernel, (1,), (1,))
        queue.finish()
        return float(event.profile.start - event.profile.queued) * _NANOSECOND

    with findings.attempting("launch_s"):
        findings.costs["launch_s"] = as_trait(bench.measure(finish), LAUNCH)
    with findings.attempting("launch_in_batch_s"):
        findings.costs["launch_in_batch_s"] = as_trait(bench.measure(batch), LAUNCH)
    with findings.attempting("launch_queued_to_start_s"):
        if not bench.session.uses_event_timer:
            msg = "the device's profiling events disagree with the host clock"
            raise MeasurementError(msg)
        if isinstance(queue, OtherDriver):
            msg = "CUDA's events do not tell when a launch was queued"
            raise MeasurementError(msg)
        findings.costs["launch_queued_to_start_s"] = as_trait(bench.measure(wait_for_start), LAUNCH)
    return findings.result()


def measure_dispatch(bench: Bench) -> BenchmarkResult:
    """Measure what each further empty work-group of one work-item adds to a launch."""
    findings = Findings(DISPATCH)
    what = "work_group_dispatch_s"
    with findings.attempting(what):
        sink = bench.buffer(4)
        kernel = _build(bench, sink)
        most = _find_count(bench, kernel)
        counts = [most // 4, most // 2, most]
        times = [_measure_groups(bench, kernel, count) for count in counts]
        _check_straight(counts, times)
        findings.costs[what] = difference_trait(
            times[-1], times[0], DISPATCH, scale=1 / (counts[-1] - counts[0])
        )
        findings.curves.append(make_curve(DISPATCH, "empty work-groups", "seconds", counts, times))
    if bench.description.kind is DeviceKind.GPU:
        rows = _ORDER_GROUPS * bench.description.compute_units // _ORDER_WIDTH
        tickets = bench.session.probe.run((_ORDER_WIDTH, max(1, rows)), steps=_ORDER_STEPS).tickets
        findings.costs[ROW_ORDER] = find_row_order(tickets)
    return findings.result()


def find_row_order(tickets: npt.NDArray[np.int32]) -> Trait[float]:
    """Find how far work-groups begin row by row, as windows of rows take for granted.

    Parameters
    ----------
    tickets : ndarray of shape (n_work_groups,)
        The place of each work-group among all in the order of their begins.

    Returns
    -------
    Trait
        Rank correlation of numbers and places: 1 for rows, about 0 for any order that jumps.

    Examples
    --------
    >>> find_row_order(np.array([0, 1, 2, 3])).value
    1.0
    """
    correlation = np.corrcoef(tickets, np.arange(len(tickets)))[0, 1]
    return Trait(value=round(float(correlation), 6), source=TraitSource.MEASURED, origin=DISPATCH)


def _build(bench: Bench, sink: cl.Buffer) -> cl.Kernel:
    kernel = bench.build_kernel(_SOURCE, "kc_idle")
    return bench.set_args(kernel, sink, _NEVER)


def _find_count(bench: Bench, kernel: cl.Kernel) -> int:
    """Find a number of work-groups that takes long beside the launch itself."""
    groups = bench.calibrate_length(
        lambda count: bench.time_launch(kernel, count * _FEWEST_GROUPS, 1),
        most=_MOST_GROUPS // _FEWEST_GROUPS,
    )
    return max(4, groups) * _FEWEST_GROUPS


def _measure_groups(bench: Bench, kernel: cl.Kernel, groups: int) -> Measured:
    return bench.measure(lambda: bench.time_launch(kernel, groups, 1))


def _check_straight(counts: list[int], times: list[Measured]) -> None:
    """Refuse times that do not lie on a line; the shortest, which noise spares."""
    intercept, slope = fit_line(counts, [one.minimum for one in times])
    for count, one in zip(counts, times, strict=True):
        line = intercept + slope * count
        if slope <= 0 or not line / _STRAIGHT < one.minimum < line * _STRAIGHT:
            msg = f"{count} empty work-groups take {one.minimum:.3g} s, the line says {line:.3g} s"
            raise MeasurementError(msg)
