"""Bandwidth of global memory: loads by element size and kind of loop, and copies."""

from dataclasses import dataclass, replace

from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import MeasurementError
from kernelcast.records.machine import MemoryFacts
from kernelcast.records.traits import Trait
from kernelcast.sampling.microbenchmarks.findings import BenchmarkResult, Findings
from kernelcast.sampling.microbenchmarks.harness import Bench
from kernelcast.sampling.microbenchmarks.host_caches import read_host_caches
from kernelcast.sampling.microbenchmarks.statistics import make_curve
from kernelcast.sampling.microbenchmarks.streams import (
    Loop,
    Order,
    Stream,
    StreamMemory,
    make_memory,
)

PAPER_SIZES = (1, 2, 4, 8, 16)
"""Bytes of an element in the paper; 32 and 64 are float8 and float16, as clpeak has them."""
_WIDE_SIZES = (32, 64)
_UNKNOWN_BYTES = 2**28
_BEYOND_CACHES = 4
_LOADS = 32
_MOST_BYTES = 2**30
_FIGURE_BYTES = 4
_COPIED_SIZES = (4, 16, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Best:
    """The fastest of several streams."""

    stream: Stream
    rate: Trait[float]


def run_bandwidth(bench: Bench) -> BenchmarkResult:
    """Measure how fast all compute units together read and copy global memory."""
    findings = Findings("bandwidth")
    facts = MemoryFacts(space="global")
    with findings.attempting("memories/global/load_bytes_per_s"):
        memory = make_memory(bench, _choose_bytes(bench))
        loads = _measure_loads(bench, findings, memory)
        facts = replace(facts, load_bytes_per_s={size: best.rate for size, best in loads.items()})
        _add_figure(bench, findings, memory, loads)
        facts = replace(facts, copy_bytes_per_s=_measure_copy(bench, findings, memory))
    findings.memories.append(facts)
    return findings.result()


def _choose_bytes(bench: Bench) -> int:
    """Choose arrays of four times the last cache, so that it can hold little of them."""
    caches = read_host_caches() if bench.description.kind is DeviceKind.CPU else ()
    known = max((cache.size_bytes for cache in caches), default=_UNKNOWN_BYTES // _BEYOND_CACHES)
    wanted = max(_BEYOND_CACHES * known, 2**27)
    limits = (bench.description.max_allocation_bytes, bench.description.global_memory_bytes // 4)
    return int(min(wanted, _MOST_BYTES, *limits))


def _measure_loads(bench: Bench, findings: Findings, memory: StreamMemory) -> dict[int, _Best]:
    """Measure each element size in each order, and keep the best order."""
    found = {}
    for size in (*PAPER_SIZES, *_WIDE_SIZES):
        with findings.attempting(f"memories/global/load_bytes_per_s/{size}"):
            streams = [
                Stream(element_bytes=size, order=order, loop=Loop.UNROLLED, loads=_LOADS)
                for order in Order
            ]
            found[size] = _find_best(bench, findings, memory, streams)
    return found


def _find_best(
    bench: Bench, findings: Findings, memory: StreamMemory, streams: list[Stream]
) -> _Best:
    """Measure the one that a trial shows to be fastest; those that compute wrongly are noted."""
    found = []
    reasons = []
    for stream in streams:
        try:
            found.append(memory.prepare(bench, stream))
        except MeasurementError as error:
            reasons.append(f"{stream.label}: {error}")
    if not found:
        raise MeasurementError("; ".join(reasons))
    findings.not_obtained.update(
        {f"bandwidth/{reason.partition(':')[0]}": reason for reason in reasons}
    )
    best = max(found, key=lambda one: one.moved_bytes / one.trial_s)
    return _Best(stream=best.stream, rate=best.measure(bench))


def _add_figure(
    bench: Bench, findings: Findings, memory: StreamMemory, loads: dict[int, _Best]
) -> None:
    """Draw the paper's figure 6: bandwidth over loads per work-item, for three kinds of loop."""
    if _FIGURE_BYTES not in loads:
        return
    order = loads[_FIGURE_BYTES].stream.order
    counts = bench.effort.pick(
        quick=(4, 32), normal=(1, 4, 16, 64), full=(1, 2, 4, 8, 16, 32, 64, 128)
    )
    for loop in Loop:
        with findings.attempting(f"bandwidth/{loop}"):
            streams = [
                Stream(element_bytes=_FIGURE_BYTES, order=order, loop=loop, loads=count)
                for count in counts
            ]
            rates = [memory.measure(bench, stream) for stream in streams]
            curve = make_curve(
                f"bandwidth/{loop}", "loads per work-item", "bytes per second", counts, rates
            )
            findings.curves.append(curve)


def _measure_copy(bench: Bench, findings: Findings, memory: StreamMemory) -> Trait[float] | None:
    """Measure copies in each order; loads and stores count."""
    streams = [
        Stream(element_bytes=size, order=order, loop=Loop.UNROLLED, loads=_LOADS, is_copy=True)
        for size in bench.effort.pick(quick=_COPIED_SIZES[1:], normal=_COPIED_SIZES,
                                      full=_COPIED_SIZES)
        for order in Order
    ]  # fmt: skip
    rates = []
    with findings.attempting("memories/global/copy_bytes_per_s"):
        rates.append(_find_best(bench, findings, memory, streams).rate)
    return rates[0] if rates else None
