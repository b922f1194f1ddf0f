"""Bandwidth of global memory, and transfers between host and device."""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from kernelcast.records.device import Trait
from kernelcast.records.errors import MeasurementError
from kernelcast.records.machine import MemoryFacts
from kernelcast.sampling.microbenchmarks.bench import (
    Array,
    Bench,
    BenchmarkResult,
    Launch,
    add_lanes,
    check_result,
)
from kernelcast.sampling.opencl import cl

TYPES = {1: "uchar", 2: "ushort", 4: "uint", 8: "uint2", 16: "uint4", 32: "uint8", 64: "uint16"}
"""By the bytes of an element: 1 to 16 as in the paper, 32 and 64 as clpeak has them."""
# First element of a work-item, and the step to its next. Neighbours to neighbours, a step of the
# global size apart: coalesced, as in the paper; a step of the local size apart: a work-group stays
# together; one after the other: a CPU's prefetcher likes it where work-items are not vectorised.
ORDERS = {
    "global": ("get_global_id(0)", "get_global_size(0)"),
    "group": (
        "get_group_id(0) * get_local_size(0) * LOADS_OF + get_local_id(0)", "get_local_size(0)",
    ),
    "item": ("get_global_id(0) * LOADS_OF", "1"),
}  # fmt: skip
LOOPS = ("dynamic", "constant", "unrolled")
"""Whether the count is an argument, known to the compiler, or there is no loop."""


class Stream(NamedTuple):
    """A row: a kernel that reads, or copies, a large array once."""

    element_bytes: int
    order: str
    is_copy: bool = False
    loop: str = "unrolled"
    loads: int = 32

    @property
    def label(self) -> str:
        verb = "copy" if self.is_copy else "load"
        return f"{verb} {self.element_bytes} B, order {self.order}, {self.loop} x{self.loads}"

    @property
    def macros(self) -> dict[str, object]:
        first, following = ORDERS[self.order]
        move = "found[at] = array[at];" if self.is_copy else "sum += array[at];"
        moves = f"{move} at += step; "
        return {
            "TYPE": TYPES[self.element_bytes],
            "LOADS_OF": "count" if self.loop == "dynamic" else self.loads,
            "FIRST": first,
            "NEXT": following,
            "MOVES": moves * self.loads
            if self.loop == "unrolled"
            else f"for (int i = 0; i < LOADS_OF; ++i) {{ {moves}}}",
            "SUM": add_lanes("sum", self.element_bytes // 4),
            **({"COPIES": 1} if self.is_copy else {}),
        }


class StreamMemory:
    def __init__(self, bench: Bench, size_bytes: int) -> None:
        self._bench = bench
        self._content = np.frombuffer(np.random.default_rng(6).bytes(size_bytes), dtype=np.uint8)
        self._array = bench.buffer(self._content)
        self._found = bench.buffer(size_bytes)

    def prepare(self, stream: Stream) -> tuple[Callable[[], float], int]:
        """Build and check a stream; give what runs it once, and the bytes that this moves."""
        bench, found = self._bench, self._found
        kernel = bench.build("stream", stream.macros)
        local_size = min(256, bench.description.max_work_group_size)
        items = self._content.nbytes // (stream.element_bytes * stream.loads)
        items -= items % local_size
        if items == 0:
            raise MeasurementError(f"{self._content.nbytes} bytes are too few for {stream.label}")

        def run(key: int = 0) -> float:
            launch = Launch(items, local_size)
            return bench.time(kernel, launch, self._array, found, stream.loads, key)

        lane = np.dtype(f"u{min(stream.element_bytes, 4)}")
        read_bytes = items * stream.loads * stream.element_bytes
        written_bytes = read_bytes if stream.is_copy else items * stream.element_bytes
        zero = np.zeros(1, dtype=np.uint8)
        cl.enqueue_fill_buffer(bench.session.queue, found, zero, 0, written_bytes)
        run(1)
        written: Array = bench.read(found, lane, written_bytes // lane.itemsize)
        wanted: Array = self._content[:read_bytes].view(lane)
        # Sums wrap around, as the kernel's do.
        sums = (np.sum(one, dtype=lane) for one in (written, wanted))
        if not (np.array_equal(written, wanted) if stream.is_copy else len(set(sums)) == 1):
            raise MeasurementError(f"{stream.label} computes wrongly: its time means nothing")
        return run, read_bytes * (2 if stream.is_copy else 1)

    def measure_best(
        self, result: BenchmarkResult, streams: Sequence[Stream]
    ) -> tuple[Trait[float], Stream]:
        """Measure the stream that a trial shows to be fastest; what computes wrongly is noted."""
        trials = []
        reasons = {}
        for stream in streams:
            try:
                run, moved = self.prepare(stream)
                trials.append((min(run() for _ in range(3)) / moved, run, moved, stream))
            except MeasurementError as error:
                reasons[f"bandwidth/{stream.label}"] = f"{stream.label}: {error}"
        if not trials:
            raise MeasurementError("; ".join(reasons.values()))
        result.not_obtained.update(reasons)
        _, run, moved, stream = min(trials, key=lambda trial: trial[0])
        return self._bench.measure(run).as_rate(moved, stream.label), stream


def measure_bandwidth(bench: Bench, result: BenchmarkResult) -> None:
    facts = MemoryFacts(space="global")
    with result.attempting("memories/global/load_bytes_per_s"):
        # Arrays of four times the last cache, so that it can hold little of them.
        wanted = max(4 * bench.last_cache_bytes, 2**27)
        memory = StreamMemory(bench, min(wanted, bench.most_bytes))
        loads: dict[int, Trait[float]] = {}
        order = ""
        for size in TYPES:
            with result.attempting(f"memories/global/load_bytes_per_s/{size}"):
                streams = [Stream(size, one) for one in ORDERS]
                loads[size], best = memory.measure_best(result, streams)
                order = best.order if size == 4 else order
        facts = replace(facts, load_bytes_per_s=loads)
        # The paper's figure 6.
        counts = bench.effort.pick((4, 32), (1, 4, 16, 64), (1, 2, 4, 8, 16, 32, 64, 128))
        for loop in LOOPS if order else ():
            name, axes = f"bandwidth/{loop}", ("loads per work-item", "bytes per second")
            with result.attempting(name):
                rates = []
                for count in counts:
                    run, moved = memory.prepare(stream := Stream(4, order, loop=loop, loads=count))
                    rates.append(bench.measure(run).as_rate(moved, stream.label))
                result.draw(name, axes, counts, rates)
        with result.attempting("memories/global/copy_bytes_per_s"):
            sizes = bench.effort.pick((16, 64), (4, 16, 64), (4, 16, 64))
            copies = [Stream(*one, is_copy=True) for one in itertools.product(sizes, ORDERS)]
            rate, _ = memory.measure_best(result, copies)
            facts = replace(facts, copy_bytes_per_s=rate)
    result.memories += (facts,)


def measure_transfers(bench: Bench, result: BenchmarkResult) -> None:
    most = min(2**26, bench.most_bytes)
    content = np.frombuffer(np.random.default_rng(12).bytes(most), dtype=np.uint8)
    buffer, back = bench.buffer(most), np.zeros(most, dtype=np.uint8)
    queue = bench.session.queue
    per_step = bench.effort.pick(16, 4, 2)
    grown = (4 * per_step**step for step in range(24))
    sizes = [*(size for size in grown if size < most), most]

    def time_copy(size: int, is_read: bool) -> float:
        sides = (back[:size], buffer) if is_read else (buffer, content[:size])
        start_s = time.perf_counter()
        cl.enqueue_copy(queue, *sides)
        return time.perf_counter() - start_s

    for is_read, direction in enumerate(("to_device", "from_device")):
        name = f"transfer_{direction}"
        with result.attempting(f"costs/{name}_s"):
            times = [bench.measure(partial(time_copy, size, bool(is_read))) for size in sizes]
            if is_read:
                check_result(back, content)
            # Latency of the least size, bandwidth of the largest.
            result.costs[f"{name}_s"] = times[0].as_trait(name)
            result.costs[f"{name}_bytes_per_s"] = times[-1].as_rate(most, name)
            traits = [one.as_trait(name) for one in times]
            result.draw(f"transfers/{direction}", ("bytes", "seconds"), sizes, traits)
