"""Kernels that read or copy a large array once: the paper's copy kernel and its variants."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import MeasurementError
from kernelcast.records.traits import Trait
from kernelcast.sampling.microbenchmarks.harness import Bench
from kernelcast.sampling.microbenchmarks.statistics import as_rate
from kernelcast.sampling.opencl import cl

_LOCAL_SIZE = 256
_SEED = 6
_TRIALS = 3
_TYPES = {
    1: "uchar",
    2: "ushort",
    4: "uint",
    8: "uint2",
    16: "uint4",
    32: "uint8",
    64: "uint16",
}
_WORD_BYTES = 4
_LANE_TYPES = {1: np.uint8, 2: np.uint16, 4: np.uint32}


class Order(StrEnum):
    """Which elements a work-item takes."""

    GLOBAL = "global"
    """Neighbours to neighbours, a step of the global size apart: coalesced, as in the paper."""
    GROUP = "group"
    """Neighbours to neighbours, a step of the local size apart: a work-group stays together."""
    ITEM = "item"
    """One after the other: a CPU's prefetcher likes it where work-items are not vectorised."""


class Loop(StrEnum):
    """What the compiler knows of the loop."""

    DYNAMIC = "dynamic"
    """The count is an argument."""
    CONSTANT = "constant"
    """The count is known to the compiler."""
    UNROLLED = "unrolled"
    """There is no loop."""


_INDICES = {
    Order.GLOBAL: ("get_global_id(0)", "get_global_size(0)"),
    Order.GROUP: (
        "get_group_id(0) * get_local_size(0) * LOADS_OF + get_local_id(0)",
        "get_local_size(0)",
    ),
    Order.ITEM: ("get_global_id(0) * LOADS_OF", "1"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One kernel."""

    element_bytes: int
    order: Order
    loop: Loop
    loads: int
    """Elements of a work-item."""
    is_copy: bool = False
    """Whether it stores them as well."""

    @property
    def label(self) -> str:
        """A short name, for the origin of a number."""
        verb = "copy" if self.is_copy else "load"
        return f"{verb} {self.element_bytes} B, order {self.order}, {self.loop} x{self.loads}"

    @property
    def source(self) -> str:
        """OpenCL C."""
        kind = _TYPES[self.element_bytes]
        first, step = _INDICES[self.order]
        parameters = f"global const {kind} *array, global {kind} *found, int count, int key"
        before = f"size_t at = {first}; const size_t step = {step};"
        if self.is_copy:
            body, after = "found[at] = array[at]; at += step;", ""
        else:
            before += f" {kind} sum = ({kind})(0);"
            body = "sum += array[at]; at += step;"
            # The paper's trick: the compiler cannot know that nothing is stored.
            after = f"if ({self._collapse()} * (uint)key != 0) found[get_global_id(0)] = sum;"
        return f"""
#define LOADS_OF {"count" if self.loop is Loop.DYNAMIC else self.loads}
kernel void kc_stream({parameters})
{{
    {before}
    {self._repeat(body)}
    {after}
}}
"""

    def _repeat(self, body: str) -> str:
        if self.loop is Loop.UNROLLED:
            return "\n    ".join([body] * self.loads)
        return f"for (int i = 0; i < LOADS_OF; ++i) {{ {body} }}"

    def _collapse(self) -> str:
        """Make one word of a vector's lanes."""
        lanes = max(1, self.element_bytes // _WORD_BYTES)
        if lanes == 1:
            return "(uint)sum"
        return "(" + " + ".join(f"sum.s{lane:x}" for lane in range(lanes)) + ")"


class StreamMemory:
    """The array that streams read, and the one that they write."""

    def __init__(self, bench: Bench, content: npt.NDArray[np.uint8]) -> None:
        self._content = content
        self._array = bench.buffer(content)
        self._found = bench.buffer(content.nbytes)

    def prepare(self, bench: Bench, stream: Stream) -> "PreparedStream":
        """Build a stream and check that it reads, or copies, what it must."""
        kernel = bench.build_kernel(stream.source, "kc_stream")
        local_size = min(_LOCAL_SIZE, bench.description.max_work_group_size)
        items = self._content.nbytes // (stream.element_bytes * stream.loads)
        items -= items % local_size
        if items == 0:
            msg = f"{self._content.nbytes} bytes are too few for {stream.label}"
            raise MeasurementError(msg)

        def run(key: int = 0) -> float:
            bench.set_args(kernel, self._array, self._found, stream.loads, key)
            return bench.time_launch(kernel, items, local_size)

        self._check(bench, stream, items, run)
        moved = items * stream.loads * stream.element_bytes * (2 if stream.is_copy else 1)
        trial_s = min(run() for _ in range(_TRIALS))
        return PreparedStream(stream=stream, run=run, moved_bytes=moved, trial_s=trial_s)

    def measure(self, bench: Bench, stream: Stream) -> Trait[float]:
        """Measure a stream's bandwidth; raises as `prepare` does."""
        return self.prepare(bench, stream).measure(bench)

    def _check(self, bench: Bench, stream: Stream, items: int, run: Callable[[int], float]) -> None:
        """Check the sums, or the copies, of the whole array."""
        lane = np.dtype(_LANE_TYPES[min(stream.element_bytes, _WORD_BYTES)])
        read_bytes = items * stream.loads * stream.element_bytes
        found_bytes = read_bytes if stream.is_copy else items * stream.element_bytes
        zero = np.zeros(1, dtype=np.uint8)
        cl.enqueue_fill_buffer(bench.session.queue, self._found, zero, 0, found_bytes)
        run(1)
        found = bench.read(self._found, lane, found_bytes // lane.itemsize)
        if stream.is_copy:
            is_good = np.array_equal(found, self._content[:read_bytes].view(lane))
        else:
            is_good = _sum(found) == _sum(self._content[:read_bytes].view(lane))
        if not is_good:
            msg = f"{stream.label} computes wrongly: its time means nothing"
            raise MeasurementError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedStream:
    """A stream that is built and checked."""

    stream: Stream
    run: Callable[[], float]
    """Runs it once and gives the time in seconds."""
    moved_bytes: int
    """What one run moves."""
    trial_s: float

    def measure(self, bench: Bench) -> Trait[float]:
        """Measure its bandwidth."""
        return as_rate(bench.measure(self.run), self.moved_bytes, self.stream.label)


def make_memory(bench: Bench, size_bytes: int) -> StreamMemory:
    """Make arrays with random content."""
    generator = np.random.default_rng(_SEED)
    return StreamMemory(bench, np.frombuffer(generator.bytes(size_bytes), dtype=np.uint8))


def _sum(lanes: npt.NDArray[np.generic]) -> int:
    """Sum as the kernel's lanes do, which wrap around."""
    return int(np.sum(lanes, dtype=lanes.dtype))
