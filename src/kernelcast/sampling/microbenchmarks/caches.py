"""The benchmark of caches: sizes, latencies and bandwidths of every level."""

from dataclasses import replace

import numpy as np

from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import MeasurementError
from kernelcast.records.machine import CacheFacts, MemoryFacts
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.sampling.microbenchmarks.findings import BenchmarkResult, Findings
from kernelcast.sampling.microbenchmarks.fits import Interval, fit_bandwidths
from kernelcast.sampling.microbenchmarks.harness import Bench
from kernelcast.sampling.microbenchmarks.host_caches import HostCache, read_host_caches
from kernelcast.sampling.microbenchmarks.latency_curves import (
    choose_global_sizes,
    draw_walk,
    fit_points,
    walk_global,
)
from kernelcast.sampling.microbenchmarks.levels_match import as_measured, match_caches
from kernelcast.sampling.microbenchmarks.statistics import as_rate, make_curve
from kernelcast.sampling.microbenchmarks.working_sets import (
    WorkingSets,
    list_shapes,
    make_set_sizes,
)

_LEAST_SET_BYTES = 2048
# A working set of half a cache leaves room for what else is in it.
_SHARE = 0.5


def run_caches(bench: Bench) -> BenchmarkResult:
    """Measure sizes, latencies and bandwidths of the caches, and the latency beyond them."""
    findings = Findings("caches")
    is_host = bench.description.kind is DeviceKind.CPU
    host_caches = read_host_caches() if is_host else ()
    caches: tuple[CacheFacts, ...] = ()
    with findings.attempting("caches"):
        caches = _find_caches(bench, findings, host_caches)
    if caches:
        with findings.attempting("caches/load_bytes_per_s"):
            sets = order_sets(bench, caches)
            caches = _add_loads(bench, findings, sets, caches)
            # Copies take one shape, whatever reads each size fastest.
            caches = tuple(_add_copy(findings, sets[0], cache, is_host) for cache in caches)
    findings.caches.extend(caches)
    return findings.result()


def _find_caches(
    bench: Bench, findings: Findings, host_caches: tuple[HostCache, ...]
) -> tuple[CacheFacts, ...]:
    """Find sizes and latencies by the random walk."""
    points = walk_global(bench, choose_global_sizes(bench, host_caches))
    findings.curves.append(draw_walk("walk/global", points))
    fit = fit_points(points, is_host=bench.description.kind is DeviceKind.CPU)
    findings.memories.append(
        MemoryFacts(space="global", latency_s=as_measured(fit.beyond_s, "walk/global"))
    )
    matched = match_caches(fit, host_caches)
    findings.not_obtained.update(matched.remarks)
    return _add_driver_line(bench, matched.caches)


def _add_driver_line(bench: Bench, caches: tuple[CacheFacts, ...]) -> tuple[CacheFacts, ...]:
    """Add the line that the driver reports where nobody else did: it is the last cache's."""
    line = int(bench.session.device.global_mem_cacheline_size)
    if not caches or caches[-1].line_bytes is not None or line <= 0:
        return caches
    reported = Trait(value=line, source=TraitSource.REPORTED, origin="driver")
    return (*caches[:-1], replace(caches[-1], line_bytes=reported))


def order_sets(bench: Bench, caches: tuple[CacheFacts, ...]) -> list[WorkingSets]:
    """Order ways to read by their speed in the two nearest caches, the fastest first.

    In the nearest alone noise decides: on PoCL one way reads 360 or 100 GB/s there and another 210
    or 60, but 200 and 50 from the next cache. Not every one can read large sets in one launch:
    those are left to the next.
    """
    sizes = [cache.size_bytes.value for cache in caches if cache.size_bytes is not None]
    most = min(2 * max(sizes), bench.description.max_allocation_bytes)
    nearest = [int(size * _SHARE) for size in sorted(sizes)[:2]]
    found: list[tuple[float, WorkingSets]] = []
    reasons = []
    for shape in list_shapes(bench):
        try:
            sets = WorkingSets(bench, shape, most)
            found.append((sum(_time_byte(sets, size) for size in nearest), sets))
        except MeasurementError as error:
            reasons.append(str(error))
    if not found:
        raise MeasurementError("; ".join(reasons))
    return [sets for _, sets in sorted(found, key=lambda one: one[0])]


def _time_byte(sets: WorkingSets, size_bytes: int) -> float:
    measured, moved = sets.measure_load(sets.round_size(size_bytes))
    return measured.median / moved


def _pick(sets: list[WorkingSets], size_bytes: int) -> WorkingSets:
    """Pick the fastest way to read a working set of some size, or the one that reaches furthest."""
    able = [one for one in sets if one.reach_bytes >= size_bytes]
    return able[0] if able else max(sets, key=lambda one: one.reach_bytes)


def _add_loads(
    bench: Bench, findings: Findings, sets: list[WorkingSets], caches: tuple[CacheFacts, ...]
) -> tuple[CacheFacts, ...]:
    """Read working sets of all sizes, and give each level its bandwidth."""
    capacities = [cache.size_bytes.value for cache in caches if cache.size_bytes is not None]
    per_octave = bench.effort.pick(quick=1, normal=2, full=3)
    wanted = make_set_sizes(_LEAST_SET_BYTES, 2 * max(capacities), per_octave=per_octave)
    sizes: list[int] = []
    rates: list[Trait[float]] = []
    rounded = {_pick(sets, size).round_size(size): size for size in wanted}
    for size, asked in sorted(rounded.items()):
        with findings.attempting(f"working_sets/load/{size}"):
            measured, moved = _pick(sets, asked).measure_load(size)
            rates.append(as_rate(measured, moved, "working_sets/load"))
            sizes.append(size)
    y_name = "bytes per second, all compute units"
    findings.curves.append(
        make_curve("working_sets/load", "working set in bytes", y_name, sizes, rates)
    )
    fitted = fit_bandwidths(
        np.array(sizes, dtype=np.float64),
        np.array([rate.value for rate in rates]),
        tuple(float(capacity) for capacity in capacities),
    )
    bandwidths = iter(fitted)
    return tuple(
        replace(cache, load_bytes_per_s=_widen(next(bandwidths), rates))
        if cache.size_bytes is not None
        else cache
        for cache in caches
    )


def _add_copy(
    findings: Findings, sets: WorkingSets, cache: CacheFacts, is_host: bool
) -> CacheFacts:
    """Copy within a cache, every compute unit its own part."""
    what = f"caches/{cache.name}/copy_bytes_per_s"
    if not is_host or cache.size_bytes is None:
        findings.not_obtained[what] = "it is not known how many compute units share the cache"
        return cache
    rates = []
    with findings.attempting(what):
        # Work-groups of one compute unit run one after the other, so that all parts of a shared
        # cache count, and of an own one only the part at work, source and copy.
        is_shared = cache.shared_by is not None and cache.shared_by.value > 1
        parts = 2 * (sets.groups if is_shared else 1)
        size = sets.round_size(int(cache.size_bytes.value * _SHARE / parts))
        measured, moved = sets.measure_copy(size)
        rates.append(as_rate(measured, moved, "working_sets/copy"))
    return replace(cache, copy_bytes_per_s=rates[0]) if rates else cache


def _widen(interval: Interval, rates: list[Trait[float]]) -> Trait[float]:
    """Give a fitted bandwidth an interval no narrower than that of the points behind it."""
    spread = float(np.median([(rate.high or 1.0) / rate.value for rate in rates]))
    fitted = as_measured(interval, "working_sets/load")
    return replace(
        fitted,
        low=min(interval.low, interval.value / spread),
        high=max(interval.high, interval.value * spread),
    )
