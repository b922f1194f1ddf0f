"""Ranks configurations by models: nothing runs on a device.

GPUs are ranked by the analytic model. What a launch costs on a CPU is counted here, for comparing
configurations of one kernel: variants differ in what `kernelcast.analytic.cpu` leaves out, which
are loops that barriers cut into vectors, far places that no prefetcher follows, and the sets of a
cache that the rows of a tile fall into. On ``benchmarks/results/tuning`` that model picks 70 % of
the best speed in the mean where this one picks 89 %.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import ceil, gcd, prod
from typing import Any, NamedTuple

import numpy as np

from kernelcast.analytic.cpu.opencl.core import GATHER_ADDS, time_core
from kernelcast.analytic.cpu.opencl.device import CpuDevice, read_device
from kernelcast.expressions import Symbol, SymbolKind, Value
from kernelcast.expressions.accesses import AccessKind
from kernelcast.expressions.axes import bind_names, list_axes
from kernelcast.features.counting.static import choose_work_groups, count_statically
from kernelcast.features.counting.summary import count_blocks
from kernelcast.launches.modelling.estimating import estimate_analytically
from kernelcast.launches.modelling.launches import (
    ModelledKernel,
    choose_local_size,
    model_kernel,
)
from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.errors import DeviceLimitError, InputError, KernelcastError
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import MAX_DIMENSIONS, NDRange
from kernelcast.records.operations import (
    MemorySpace,
    NumberClass,
    Operation,
    OperationCounts,
    OperationKind,
)
from kernelcast.records.problem import Problem
from kernelcast.sampling.compiler_facts import check_memory, check_sizes
from kernelcast.tuning.report import TunedConfiguration
from kernelcast.tuning.space import SearchSpace

_ADDRESS_KINDS = (OperationKind.ADD, OperationKind.MULTIPLY, OperationKind.CONVERT)
_FAR = (MemorySpace.GLOBAL, MemorySpace.CONSTANT)
_WORTH_PROCESSES = 32


class Axis(NamedTuple):
    """A loop that a core goes through, over work-items, work-groups or in the kernel."""

    extent: int
    block: int | None = None
    """Of a loop in the kernel, the block of its body."""


class Walk(NamedTuple):
    """How accesses of one buffer that move alike go through memory."""

    buffer: str
    bytes: int
    steps: tuple[int, ...]
    """Bytes from one iteration of each axis to the next, innermost first."""
    inside: tuple[bool, ...]
    """Axes that are around it; others do not repeat it."""

    def find_shape(self, axes: Sequence[Axis], line: int) -> tuple[float, list[tuple[int, int]]]:
        """Describe the places that the innermost axes reach together: the lines of a chunk side by
        side, and how often chunks are repeated how many lines apart, for each way to go on."""
        chunk = self.bytes
        far: list[tuple[int, int]] = []
        steps = zip(map(abs, self.steps), axes, strict=False)
        for step, (extent, _) in sorted(one for one in steps if one[0] and one[1].extent > 1):
            if not far and step <= max(chunk, line):
                chunk += step * (extent - 1)
            elif far and step % far[-1][1] == 0 and step <= prod(far[-1]):
                # Chunks that fall onto earlier ones lengthen their row.
                count, apart = far.pop()
                far.append((count + step // apart * (extent - 1), apart))
            else:
                far.append((extent, step))
        return max(1.0, chunk / line), [(extent, step // line) for extent, step in far]

    def count_streams(self, axes: Sequence[Axis], line: int) -> int:
        """Count the far places that are visited before one of them moves on."""
        streams, chunk = 1, self.bytes
        apart: list[tuple[int, int]] = []
        for axis, step in zip(axes, map(abs, self.steps), strict=True):
            if axis.extent == 1 or not step:
                continue
            apart.append((step, axis.extent))
            if step > max(line, chunk):
                streams *= axis.extent
                continue
            # What lay apart may now be side by side.
            while near := [one for one in apart if one[0] <= max(line, chunk)]:
                chunk += sum(step * (extent - 1) for step, extent in near)
                apart = [one for one in apart if one not in near]
            # Neighbouring lines after which a prefetcher is ahead.
            if chunk >= 8 * line:
                break
        return streams


def count_moved(
    walks: Mapping[Walk, bool], axes: Sequence[Axis], line_bytes: int, size_bytes: float, ways: int
) -> tuple[float, float, float]:
    """Count the lines that a cache loads, writes back, and loads with no prefetcher in time.

    `walks` says of each whether it stores.
    """
    # A layer condition: what one iteration of an axis touches is still there in the next if all
    # accesses of an iteration fit the cache, and each access the sets that its addresses fall into.
    # The outermost axis whose iterations fit is the one along which lines are reused.
    sets = 2 ** (max(1, int(size_bytes / line_bytes / ways)).bit_length() - 1)
    for depth in range(len(axes) + 1):
        reached, crowded = [], 0.0
        for walk in walks:
            chunk_lines, far = walk.find_shape(axes[:depth], line_bytes)
            lines = chunk_lines * prod(extent for extent, _ in far)
            found = min(sets, ceil(chunk_lines))  # sets that the lines fall into
            for extent, apart in far:
                step = apart % sets
                found = min(sets, found * min(extent, sets // gcd(step, sets) if step else 1))
            reached.append(lines)
            crowded += lines / max(1, found)
        if sum(reached) * line_bytes > size_bytes or crowded > ways:
            break
    streams = [one.count_streams(axes, line_bytes) for one in walks]
    beside = sum(one for one in streams if one > 1) - 1
    loaded = stored = unforeseen = 0.0
    for (walk, is_store), lines, apart in zip(walks.items(), reached, streams, strict=True):
        around = zip(axes[depth:], walk.inside[depth:], strict=True)
        lines *= prod(axis.extent for axis, inside in around if inside)
        loaded += lines
        stored += lines if is_store else 0.0
        if apart > 1:
            # Streams beside each other of which half are late, as measured with columns of 8 to 512
            # rows.
            unforeseen += lines * beside / (beside + 64)
    return loaded, stored, unforeseen


class Nest:
    """The loops of a kernel for one launch."""

    def __init__(self, kernel: ModelledKernel, ndrange: NDRange, device: CpuDevice) -> None:
        self.kernel, self.ndrange = kernel, ndrange
        facts = self.facts = kernel.facts
        sample = count_statically(facts, ndrange, kernel.scalars, choose_work_groups(ndrange, 3))
        present = count_blocks(facts, sample)[sample.is_present]
        counts = self.counts = present.mean(axis=0).tolist()
        """Mean executions of each block per work-item."""
        # Blocks with a barrier in them: loops in which work-items wait for each other.
        waiting: set[int] = set()
        for block in facts.blocks:
            at = block.id if block.operations.count(OperationKind.BARRIER) else None
            while at is not None:
                waiting.add(at)
                at = facts.blocks[at].parent
        self.trips: dict[int, float] = {
            block.id: counts[block.id] / counts[block.parent] if counts[block.parent] else 0.0
            for block in facts.blocks
            if block.kind == "loop body" and block.parent is not None
        }
        """Mean iterations of each loop per entry, by the block of its body."""
        width = device.width
        if width == 1:
            # Only where no loop is left between barriers does a loop over work-items hold no other
            # loop, and is vectorised.
            loops = self.trips.items()
            is_plain = all(body in waiting or trips <= 1 for body, trips in loops)
            width = device.lanes if is_plain else 1
        self.width = width if ndrange.known_local_size[0] % width == 0 else 1
        """How many neighbours along dimension 0 run in the lanes of a vector."""
        own: dict[bool, list[Axis]] = {False: [], True: []}
        for body, trips in sorted(self.trips.items(), reverse=True):
            own[body in waiting].append(Axis(max(1, round(trips)), body))
        first, *others = list_axes(ndrange)
        self.axes = [
            Axis(self.width),
            *own[False],
            Axis(max(1, first.local // self.width)),
            *(Axis(one.local) for one in others),
            *own[True],
            *(Axis(one.groups) for one in (first, *others)),
        ]
        """The loops that a core goes through, innermost first."""

    def list_strides(self) -> Iterator[tuple[int | None, Walk | None]]:
        """List how each access moves, for a work-group in the middle: bytes from a work-item to its
        neighbour along dimension 0, and its walk, which accesses of local memory have none of; None
        where addresses depend on data."""
        # Columns of the values are the first work-item and iterations, then a step in each
        # dimension of the work-group, of the grid of work-groups, and of each loop.
        marks = np.eye(2 * MAX_DIMENSIONS + len(self.trips) + 1, dtype=np.int64)[1:]
        ids: dict[Symbol, Value] = {**bind_names(self.kernel.scalars)}
        for axis in list_axes(self.ndrange):
            outer = marks[MAX_DIMENSIONS + axis.number] + axis.groups // 2
            ids |= axis.bind(outer, marks[axis.number], axis.local)
        places = {body: 2 * MAX_DIMENSIONS + at for at, body in enumerate(self.trips)}
        for access in self.facts.accesses:
            if access.offset_bytes is None:
                yield None, None
                continue
            around: list[int] = []  # bodies of the loops around it, outermost first
            block: int | None = access.block
            while block is not None:
                if block in self.trips:
                    around.insert(0, block)
                block = self.facts.blocks[block].parent
            names = (Symbol(SymbolKind.LOOP, one.name) for one in access.loops)
            loops = {name: marks[places[body]] for name, body in zip(names, around, strict=False)}
            try:
                found = np.asarray(access.offset_bytes.evaluate(ids | loops))
            except InputError as error:
                where = f"{self.facts.kernel}, line {access.line}"
                raise InputError(f"{where}: address of {access.text}: {error}") from error
            first, *others = np.broadcast_to(found, (1 + len(marks),)).tolist()
            moves = [other - first for other in others]
            lane = moves[0]
            dimensions = iter((lane, lane * self.width, *moves[1 : 2 * MAX_DIMENSIONS]))
            walk = Walk(
                buffer=access.buffer or "",
                bytes=access.bytes,
                # Loops beside the access are not around it.
                steps=tuple(
                    next(dimensions) if one.block is None
                    else moves[places[one.block]] if one.block in around else 0
                    for one in self.axes
                ),
                inside=tuple(one.block is None or one.block in around for one in self.axes),
            )  # fmt: skip
            yield lane, walk if access.space in _FAR else None


def cost_launch(kernel: ModelledKernel, ndrange: NDRange, device: CpuDevice) -> AnalyticEstimate:
    """Estimate what a launch costs beside other configurations of its kernel."""
    nest = Nest(kernel, ndrange, device)
    width, accesses = nest.width, nest.facts.accesses
    groups = ndrange.work_group_count
    items = ceil(groups / device.cores) / groups * ndrange.work_item_count  # of the busiest core
    # Where a compiler knows the addresses of a block, laying them out becomes steps of pointers.
    stepped = {one.block for one in accesses if one.offset_bytes is not None}
    executed: dict[Operation, float] = defaultdict(float)
    for block, count in zip(nest.facts.blocks, nest.counts, strict=True):
        for operation, times in block.operations.operations.items():
            is_stepped = block.id in stepped and operation.kind in _ADDRESS_KINDS
            if not (is_stepped and operation.number is NumberClass.INTEGER):
                executed[operation] += count * times
    counts = OperationCounts(operations=dict(executed), memory={})
    ports, _ = time_core(counts, device, width, ())
    loaded_s = device.levels[0].load_s_per_byte * device.cores / width
    l1_s = 0.0
    walks: dict[Walk, bool] = defaultdict(bool)  # and whether it stores
    for access, (lane_bytes, walk) in zip(accesses, nest.list_strides(), strict=True):
        size = access.bytes
        if width == 1 or lane_bytes in (0, size, -size):
            seconds = loaded_s * max(4 * device.lanes, (width if lane_bytes else 1) * size)
        else:  # lanes that lie apart are loaded one by one
            seconds = GATHER_ADDS * device.add_s * max(1, size // 4)
        l1_s += nest.counts[access.block] * seconds
        if walk is not None:
            walks[walk] |= access.kind is not AccessKind.LOAD
    arithmetic_s = sum(ports.get(one, 0.0) for one in ("fp32", "fp64", "special", "int"))
    core = {"arithmetic": arithmetic_s, "L1": l1_s}
    far = {}
    for nearer, farther in pairwise(device.levels):
        loaded, stored, unforeseen = count_moved(
            walks, nest.axes, device.line_bytes, nearer.size_bytes, 12
        )
        seconds = device.line_bytes * (
            loaded * farther.load_s_per_byte + stored * farther.store_s_per_byte
        )
        # Cache misses that a core waits for at once.
        waiting = unforeseen * farther.latency_s / 4.0 / device.cores
        far[farther.name] = seconds + waiting
    ends = max(core.values()) * items, max(far.values(), default=0.0)
    rest = {
        "dispatch": groups * device.costs.get("work_group_dispatch_s", 0.0),
        "launch": device.costs.get("launch_s", 0.0),
    }
    parts = {name: seconds * items for name, seconds in core.items()} | far | rest
    # Three tenths of the shorter of computing and moving data add to the longer.
    return AnalyticEstimate(
        model="cpu_cost",
        machine=device.id,
        seconds=max(ends) + 0.3 * min(ends) + sum(rest.values()),
        limiter=max(parts, key=parts.__getitem__),
        limiters=parts,
        quantities={"vector_work_items_count": width},
    )


def refuse_misfit(problem: Problem, device: DeviceDescription, *, local_bytes: int = 0) -> None:
    """Refuse a launch that a device cannot take."""
    check_memory(device, problem.arguments, local_bytes)
    if problem.ndrange.local_size is not None:
        check_sizes(device, problem.kernel, problem.ndrange)


def predict(
    device: DeviceDescription, machine: MachineDescription, problem: Problem
) -> dict[str, Any]:
    ndrange = problem.ndrange
    seconds, obstacle, limiter, note = None, "", "", ""
    try:
        refuse_misfit(problem, device)
        kernel = model_kernel(problem)
        note = next((one.reason for one in kernel.facts.gaps), "")
        refuse_misfit(problem, device, local_bytes=kernel.facts.local_bytes)
        ndrange, _ = choose_local_size(ndrange, kernel.facts)
        made = (
            cost_launch(kernel, ndrange, read_device(machine))
            if machine.kind is DeviceKind.CPU
            else estimate_analytically(kernel.launch(), machine)
        )
        seconds, limiter = made.seconds, made.limiter
    except DeviceLimitError as error:
        obstacle = str(error)
    except KernelcastError as error:
        # Not known to be impossible: it is ranked behind all that have a prediction.
        limiter = f"not modelled: {error}"
    return {
        "global_size": ndrange.global_size, "local_size": ndrange.local_size or (),
        "build_options": problem.kernel.build_options, "predicted_s": seconds,
        "obstacle": obstacle, "limiter": limiter, "note": note,
    }  # fmt: skip


@contextmanager
def several_processes(space: SearchSpace) -> Iterator[Executor | None]:
    """Open processes that predict beside each other, where that pays and is safe."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    # A copy of a process with threads may hang.
    is_safe = sys.platform == "linux" and threading.active_count() == 1
    if cores < 2 or not is_safe or len(space.configurations) < _WORTH_PROCESSES:
        yield None
        return
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(
        max_workers=min(cores, 8),
        mp_context=context,
        # Ctrl-C ends the parent, which ends them.
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),
    ) as one:
        yield one


def rank(
    space: SearchSpace,
    device: DeviceDescription,
    machine: MachineDescription,
    *,
    executor: Executor | None = None,
    report: Callable[[int, int], None] = lambda _, __: None,
) -> dict[int, TunedConfiguration]:
    if machine.kind is DeviceKind.CPU:
        read_device(machine)  # complains once, not for each configuration
    found = {one.number: one for one in space.configurations}
    numbers = [number for number, one in found.items() if one.problem is not None]
    problems = [one.problem for one in space.configurations if one.problem is not None]
    predict_one = partial(predict, device, machine)
    answers = (
        map(predict_one, problems)
        if executor is None
        else executor.map(predict_one, problems, chunksize=4)
    )
    for done, (number, prediction) in enumerate(zip(numbers, answers, strict=True), start=1):
        found[number] = replace(found[number], **prediction)
        report(done, len(numbers))
    return found
