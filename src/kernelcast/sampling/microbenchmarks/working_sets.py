"""Bandwidth over the size of a working set that is read, or copied, again and again."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import MeasurementError
from kernelcast.sampling.microbenchmarks.harness import MOST_ITERATIONS, Bench
from kernelcast.sampling.microbenchmarks.statistics import Measured, check_result

_WORD_BYTES = 4
_UNROLLED = 16
_SEED = 6
_FEWEST_TO_PROVE = 4
_CHECKED_ROUNDS = 3

# Integers, so that the sum can be checked bit by bit, and a rotation of the start by group, so
# that the compute units of a GPU do not all ask the same bank at once.
_SOURCE = """
#define UNROLLED 16
#define TYPE {type}
kernel void kc_load(global const TYPE *array, global uint *sums, int rounds, int count, int key)
{{
    int lane = get_local_id(0), width = get_local_size(0);
    int blocks = count / (UNROLLED * width);
    int first = (int)(((long)blocks * get_group_id(0)) / get_num_groups(0));
    {accumulators}
    for (int round = 0; round < rounds; ++round) {{
        for (int block = first; block < blocks; ++block) {{
            global const TYPE *at = array + (size_t)block * UNROLLED * width + lane;
            {loads}
        }}
        for (int block = 0; block < first; ++block) {{
            global const TYPE *at = array + (size_t)block * UNROLLED * width + lane;
            {loads}
        }}
    }}
    TYPE total = {total};
    uint sum = {sum};
    if (sum * (uint)key != 0)
        sums[get_global_id(0)] = sum;
}}
kernel void kc_copy(global const TYPE *array, global TYPE *copies, int rounds, int count)
{{
    int lane = get_local_id(0), width = get_local_size(0);
    int blocks = count / (UNROLLED * width);
    size_t base = (size_t)get_group_id(0) * count;
    for (int round = 0; round < rounds; ++round)
        for (int block = 0; block < blocks; ++block) {{
            size_t at = base + (size_t)block * UNROLLED * width + lane;
            {stores}
        }}
}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How work-groups read."""

    local_size: int
    words: int
    """4-byte words that a work-item reads at once: 1 to 16."""

    @property
    def block_bytes(self) -> int:
        """What a work-group reads in one iteration."""
        return self.local_size * self.words * _WORD_BYTES * _UNROLLED


_CPU_SHAPES = (Shape(local_size=1, words=16), Shape(local_size=16, words=1),
               Shape(local_size=16, words=4))  # fmt: skip
_GPU_SHAPES = (Shape(local_size=256, words=1), Shape(local_size=256, words=4),
               Shape(local_size=512, words=2))  # fmt: skip


def list_shapes(bench: Bench) -> tuple[Shape, ...]:
    """List the shapes worth trying."""
    shapes = _CPU_SHAPES if bench.description.kind is DeviceKind.CPU else _GPU_SHAPES
    most = bench.description.max_work_group_size
    return tuple(shape for shape in shapes if shape.local_size <= most) or _CPU_SHAPES[:1]


def make_source(shape: Shape) -> str:
    """Write the kernels for a shape."""
    kind = "uint" if shape.words == 1 else f"uint{shape.words}"
    lanes = [f"total.s{lane:x}" for lane in range(shape.words)]
    return _SOURCE.format(
        type=kind,
        accumulators=" ".join(f"TYPE a{n} = (TYPE)(0);" for n in range(_UNROLLED)),
        loads=" ".join(f"a{n} += at[{n} * width];" for n in range(_UNROLLED)),
        total=" + ".join(f"a{n}" for n in range(_UNROLLED)),
        sum="total" if shape.words == 1 else " + ".join(lanes),
        stores=" ".join(f"copies[at + {n} * width] = array[at + {n} * width];"
                        for n in range(_UNROLLED)),
    )  # fmt: skip


class WorkingSets:
    """Kernels that read or copy a working set, all compute units together.

    Parameters
    ----------
    most_bytes : int
        Largest working set, of all work-groups.
    """

    def __init__(self, bench: Bench, shape: Shape, most_bytes: int) -> None:
        self.shape = shape
        self._bench = bench
        # Several per compute unit, since runtimes hand them out by the handful.
        self.groups = 4 * bench.description.compute_units
        source = make_source(shape)
        self._load = bench.build_kernel(source, "kc_load")
        self._copy = bench.build_kernel(source, "kc_copy")
        words = -(-most_bytes // _WORD_BYTES)
        generator = np.random.default_rng(_SEED)
        self._content = generator.integers(0, 2**32, size=words, dtype=np.uint32)
        self._array = bench.buffer(self._content)
        self._sums = bench.buffer(_WORD_BYTES * self.groups * shape.local_size)
        self._most_bytes = words * _WORD_BYTES

    @property
    def reach_bytes(self) -> int:
        """Largest working set that one launch can read."""
        return min(self._most_bytes, self.shape.block_bytes * MOST_ITERATIONS)

    def round_size(self, size_bytes: int) -> int:
        """Give the nearest working set in whole blocks, at least one."""
        most = min(self._most_bytes // self.shape.block_bytes, MOST_ITERATIONS)
        return max(1, min(round(size_bytes / self.shape.block_bytes), most)) * (
            self.shape.block_bytes
        )

    def measure_load(self, size_bytes: int) -> tuple[Measured, int]:
        """Let every work-group read the same working set.

        Parameters
        ----------
        size_bytes : int
            What `round_size` gives.

        """
        self._check_sums(size_bytes)

        def run(rounds: int) -> float:
            return self._time_load(size_bytes, rounds, key=0)

        rounds = self._choose_rounds(run, size_bytes)
        measured = self._bench.measure(lambda: run(rounds))
        return measured, rounds * size_bytes * self.groups

    def measure_copy(self, size_bytes: int) -> tuple[Measured, int]:
        """Let every work-group copy its own part; loads and stores count.

        Parameters
        ----------
        size_bytes : int
            Of one work-group's source, what `round_size` gives.
        """
        if size_bytes * self.groups > self._most_bytes:
            msg = f"{self.groups} parts of {size_bytes} bytes are more than {self._most_bytes}"
            raise MeasurementError(msg)
        copies = self._bench.buffer(size_bytes * self.groups)
        count = size_bytes // (self.shape.words * _WORD_BYTES)

        def run(rounds: int) -> float:
            self._bench.set_args(self._copy, self._array, copies, rounds, count)
            size = self.groups * self.shape.local_size
            return self._bench.time_launch(self._copy, size, self.shape.local_size)

        rounds = self._choose_rounds(run, size_bytes)
        measured = self._bench.measure(lambda: run(rounds))
        words = size_bytes * self.groups // _WORD_BYTES
        check_result(self._bench.read(copies, np.uint32, words), self._content[:words])
        return measured, 2 * rounds * size_bytes * self.groups

    def _choose_rounds(self, run: Callable[[int], float], size_bytes: int) -> int:
        most = max(1, MOST_ITERATIONS // (size_bytes // self.shape.block_bytes + 1))
        rounds = self._bench.calibrate_length(run, most=most)
        if rounds < _FEWEST_TO_PROVE:
            return rounds
        return self._bench.prove_work(run, rounds, most=most)

    def _time_load(self, size_bytes: int, rounds: int, *, key: int) -> float:
        count = size_bytes // (self.shape.words * _WORD_BYTES)
        self._bench.set_args(self._load, self._array, self._sums, rounds, count, key)
        size = self.groups * self.shape.local_size
        return self._bench.time_launch(self._load, size, self.shape.local_size)

    def _check_sums(self, size_bytes: int) -> None:
        """Check that each work-group has read everything, bit by bit."""
        most = MOST_ITERATIONS // (size_bytes // self.shape.block_bytes + 1)
        rounds = max(1, min(_CHECKED_ROUNDS, most))
        self._time_load(size_bytes, rounds, key=1)
        count = self.groups * self.shape.local_size
        sums = self._bench.read(self._sums, np.uint32, count).reshape(self.groups, -1)
        once = int(np.sum(self._content[: size_bytes // _WORD_BYTES], dtype=np.uint64))
        expected = np.full(self.groups, once * rounds % 2**32, dtype=np.uint32)
        check_result(np.asarray(np.sum(sums, axis=1, dtype=np.uint32)), expected)


def make_set_sizes(least: int, most: int, *, per_octave: int) -> list[int]:
    """Give sizes of working sets that grow geometrically.

    Examples
    --------
    >>> make_set_sizes(1024, 4096, per_octave=1)
    [1024, 2048, 4096]
    """
    count = max(2, round(math.log2(most / least) * per_octave) + 1)
    return sorted({round(size) for size in np.geomspace(least, most, count)})
