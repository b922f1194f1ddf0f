"""Latency over the size of the array, per address space."""

import statistics

import numpy as np

from kernelcast.records.device import DeviceKind
from kernelcast.records.machine import Curve, MemoryFacts
from kernelcast.records.traits import Trait
from kernelcast.sampling.microbenchmarks.findings import Findings
from kernelcast.sampling.microbenchmarks.fits import Interval, LatencyFit, fit_levels
from kernelcast.sampling.microbenchmarks.harness import Bench
from kernelcast.sampling.microbenchmarks.host_caches import HostCache
from kernelcast.sampling.microbenchmarks.levels_match import as_measured
from kernelcast.sampling.microbenchmarks.walk import (
    Walk,
    WalkPlan,
    WalkPoint,
    make_sizes,
    make_walk_memory,
    walk_sizes,
)

_LEAST_BYTES = 2048
_MOST_BYTES = 2**30
_UNKNOWN_CACHE_BYTES = 2**26
# Array sizes beyond the last cache that show where it ends.
_BEYOND_CACHES = 4
_MOST_PRIVATE_BYTES = 2**15
_MOST_CONSTANT_BYTES = 2**22
_LEAST_POINTS = 6
_RUNS = 4


def choose_plan(bench: Bench) -> WalkPlan:
    """Choose how long to walk; launches that are slow to start need longer runs."""
    run_s, passes, warm_s = bench.effort.pick(
        quick=(6e-4, 2, 0.05), normal=(1e-3, 3, 0.1), full=(1.5e-3, 4, 0.25)
    )
    overhead_s = 0.0 if bench.session.uses_event_timer else bench.launch_overhead_s
    run_s = max(run_s, 6 * overhead_s)
    return WalkPlan(run_s=run_s, runs=_RUNS, passes=passes, warm_s=warm_s)


def choose_global_sizes(bench: Bench, host_caches: tuple[HostCache, ...]) -> list[int]:
    """Choose array sizes up to four times the last cache, as far as the device can hold them."""
    known = max((cache.size_bytes for cache in host_caches), default=_UNKNOWN_CACHE_BYTES)
    if bench.description.kind is not DeviceKind.CPU:
        known = bench.effort.pick(quick=known, normal=2 * known, full=4 * known)
    most = min(_BEYOND_CACHES * known, _MOST_BYTES, bench.description.max_allocation_bytes)
    most = min(most, bench.description.global_memory_bytes // 4)
    per_octave = bench.effort.pick(quick=3, normal=4, full=6)
    return make_sizes(_LEAST_BYTES, most, per_octave=per_octave)


def walk_global(bench: Bench, sizes_bytes: list[int]) -> list[WalkPoint]:
    """Walk through global memory, and prove that the time grows with the steps."""
    walk = Walk(bench, "global", make_walk_memory(bench, sizes_bytes[-1]))
    prove_walk(bench, walk, sizes_bytes[0])
    return walk_sizes(walk, sizes_bytes, choose_plan(bench))


def walk_space(bench: Bench, space: str) -> list[WalkPoint]:
    """Walk through local, constant or private memory."""
    most = find_most_bytes(bench, space)
    walk = Walk(bench, space, make_walk_memory(bench, most), most_bytes=most)
    sizes = make_sizes(_LEAST_BYTES, most, per_octave=bench.effort.pick(quick=1, normal=2, full=3))
    prove_walk(bench, walk, sizes[0])
    return walk_sizes(walk, sizes, choose_plan(bench))


def prove_walk(bench: Bench, walk: Walk, size_bytes: int) -> None:
    """Prove that longer walks take longer."""
    walk.lay_out(size_bytes)
    iterations = walk.choose_iterations(choose_plan(bench).run_s * 2)
    bench.prove_work(walk.time_steps, iterations, most=walk.most_iterations)


def find_most_bytes(bench: Bench, space: str) -> int:
    """Find how large an array can be in an address space, in bytes."""
    if space == "local":
        # The runtime may keep some for itself.
        return bench.description.local_memory_bytes // 2
    if space == "constant":
        return min(int(bench.session.device.max_constant_buffer_size), _MOST_CONSTANT_BYTES)
    return _MOST_PRIVATE_BYTES


def draw_walk(name: str, points: list[WalkPoint]) -> Curve:
    """Make a curve of the points; the interval goes from the shortest run to the usual one."""
    return Curve(
        name=name,
        x_name="size of the array in bytes",
        y_name="seconds per dependent load",
        x=tuple(float(point.size_bytes) for point in points),
        y=tuple(point.latency_s for point in points),
        low=tuple(point.latency_s for point in points),
        high=tuple(point.usual_s for point in points),
    )


def fit_points(points: list[WalkPoint], *, is_host: bool) -> LatencyFit:
    """Find the cache levels in the points."""
    sizes = np.array([point.size_bytes for point in points], dtype=np.float64)
    latencies = np.array([point.latency_s for point in points])
    return fit_levels(sizes, latencies, is_host=is_host)


def add_space(bench: Bench, findings: Findings, space: str) -> None:
    """Measure one small address space; its latency is that of the largest array."""
    with findings.attempting(f"memories/{space}/latency_s"):
        points = walk_space(bench, space)
        findings.curves.append(draw_walk(f"walk/{space}", points))
        findings.memories.append(
            MemoryFacts(space=space, latency_s=_find_latency(bench, points, f"walk/{space}"))
        )


def _find_latency(bench: Bench, points: list[WalkPoint], origin: str) -> Trait[float]:
    if len(points) >= _LEAST_POINTS:
        is_host = bench.description.kind is DeviceKind.CPU
        return as_measured(fit_points(points, is_host=is_host).beyond_s, origin)
    values = [point.latency_s for point in points]
    usual = statistics.median(values)
    return as_measured(Interval(value=usual, low=min(values), high=max(values)), origin)
