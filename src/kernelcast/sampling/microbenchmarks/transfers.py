"""Transfers between host and device: latency and bandwidth per direction."""

import time
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcast.records.device import DeviceKind
from kernelcast.sampling.mapping import map_memory, unmap_memory
from kernelcast.sampling.microbenchmarks.findings import BenchmarkResult, Findings
from kernelcast.sampling.microbenchmarks.harness import Bench
from kernelcast.sampling.microbenchmarks.statistics import (
    as_rate,
    as_trait,
    check_result,
    make_curve,
)
from kernelcast.sampling.opencl import cl

Bytes: TypeAlias = npt.NDArray[np.uint8]

_LEAST_BYTES = 4
_MOST_BYTES = 2**26
_SEED = 12


def run_transfers(bench: Bench) -> BenchmarkResult:
    """Measure blocking transfers of a host array by the host's clock, to and fro."""
    findings = Findings("transfers")
    most = min(_MOST_BYTES, bench.description.max_allocation_bytes)
    content = np.frombuffer(np.random.default_rng(_SEED).bytes(most), dtype=np.uint8)
    buffer = bench.buffer(most)
    back = np.zeros(most, dtype=np.uint8)
    queue = bench.session.queue

    def write(size: int) -> None:
        cl.enqueue_copy(queue, buffer, content[:size])

    def read(size: int) -> None:
        cl.enqueue_copy(queue, back[:size], buffer)

    with findings.attempting("costs/transfer_to_device_s"):
        _measure(bench, findings, "transfer_to_device", write, most)
    with findings.attempting("costs/transfer_from_device_s"):
        _measure(bench, findings, "transfer_from_device", read, most)
    with findings.attempting("costs/transfer_round_trip"):
        write(most)
        read(most)
        check_result(back, content)
    if bench.description.kind is DeviceKind.CPU:
        _measure_maps(bench, findings, buffer, most)
    return findings.result()


def _measure(
    bench: Bench,
    findings: Findings,
    name: str,
    transfer: Callable[[int], None],
    most: int,
) -> None:
    """Measure one direction: latency of the least size, bandwidth of the largest."""
    per_step = bench.effort.pick(quick=16, normal=4, full=2)
    sizes = [_LEAST_BYTES]
    while sizes[-1] * per_step < most:
        sizes.append(sizes[-1] * per_step)
    sizes.append(most)
    times = [bench.measure(lambda size=size: _time(transfer, size)) for size in sizes]  # type: ignore[misc]  # mypy cannot type a default of a lambda
    findings.costs[f"{name}_s"] = as_trait(times[0], name)
    findings.costs[f"{name}_bytes_per_s"] = as_rate(times[-1], sizes[-1], name)
    direction = f"transfers/{name.removeprefix('transfer_')}"
    findings.curves.append(make_curve(direction, "bytes", "seconds", sizes, times))


def _measure_maps(bench: Bench, findings: Findings, buffer: cl.Buffer, most: int) -> None:
    """Measure mapping and unmapping, which on a host's own memory should move nothing."""
    queue = bench.session.queue
    unmap_s: list[float] = []

    def map_once(flags: cl.map_flags, size: int) -> float:
        start = time.perf_counter()
        mapped = map_memory(queue, buffer, size, flags)
        seconds = time.perf_counter() - start
        start = time.perf_counter()
        unmap_memory(queue, mapped)
        unmap_s.append(time.perf_counter() - start)
        return seconds

    for name, flags in (("map_read", cl.map_flags.READ), ("map_write", cl.map_flags.WRITE)):
        with findings.attempting(f"costs/{name}_s"):
            measured = bench.measure(lambda flags=flags: map_once(flags, most))  # type: ignore[misc]  # mypy cannot type a default of a lambda
            findings.costs[f"{name}_s"] = as_trait(measured, f"map {most} bytes")
    with findings.attempting("costs/unmap_s"):

        def unmap_once() -> float:
            map_once(cl.map_flags.WRITE, most)
            return unmap_s[-1]

        findings.costs["unmap_s"] = as_trait(bench.measure(unmap_once), f"unmap {most} bytes")


def _time(transfer: Callable[[int], None], size: int) -> float:
    start = time.perf_counter()
    transfer(size)
    return time.perf_counter() - start
