"""A GPU that exists as numbers only: runs of a cycle-level simulator.

Whole launches, launches of the first work-groups and warmed windows; nothing is simulated here.
``runs.json`` names the simulator, its version and the meaning of each number. Shapes, ratios and
counters are to be trusted, absolute times are not.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from kernelcast.collection.corpus_problems import prepare_launch
from kernelcast.records.arguments import Argument, BufferArgument, ElementType, ScalarArgument
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.training_data.applications import find_kernels

SECTOR_BYTES = 32
CLOCK_HZ = 1.38e9
"""Of a V100: it turns cycles into seconds, which nobody should take for a real GPU's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedGpu:
    """The device that was simulated."""

    id: str
    description: str
    simulator: str
    """The simulator's name of its configuration, in words, and the simulator's version."""
    compute_units: int
    """Streaming multiprocessors."""
    l2_bytes: int
    """Capacity of the L2 cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRun:
    """One launch of consecutive work-groups, which see the ids and sizes of the whole launch."""

    begin: int
    end: int
    """First work-group in dispatch order, and the one behind the last."""
    warmed_by: tuple[int, int] | None
    """Begin and end of the work-groups that ran just before; None: caches were empty."""
    cycles: int
    """Without what every launch costs."""
    counters: Mapping[str, int]
    """Instructions, accesses and misses in sectors."""
    ends: tuple[tuple[int, int], ...]
    """Numbers of work-groups, and the cycle at which so many had ended."""

    @property
    def work_groups(self) -> int:
        """How many ran."""
        return self.end - self.begin

    def count_per_work_group(self, counter: str) -> float:
        """Give the mean of a counter, ``l2_misses`` for instance."""
        return self.counters[counter] / self.work_groups

    def cycle_at(self, work_groups: float) -> float:
        """Give the cycle at which so many work-groups had ended, by the line between two ends."""
        counts, cycles = zip((0, 0), *self.ends, strict=True)
        return float(np.interp(work_groups, counts, cycles))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedKernel:
    """A kernel and its simulated launches."""

    name: str
    """``application/kernel`` of the corpus, or ``small/kernel``."""
    function: str
    """The kernel's name in its source."""
    gpu: SimulatedGpu
    """Where it ran."""
    group_counts: tuple[int, ...]
    local_size: tuple[int, ...]
    """Of the whole launch."""
    concurrency: int
    """Work-groups that the whole device holds at once: P_sat times compute units."""
    registers: int
    local_bytes: int
    """Of a work-item, of a work-group."""
    runs: tuple[SimulatedRun, ...]
    """All there are."""
    parameters: Mapping[str, int] = field(default_factory=dict)
    """Of a corpus kernel."""
    arguments: Sequence[Mapping[str, Any]] = ()
    """Of a small kernel: sizes of buffers and values of scalars; none where they are not known."""
    counted: Sequence[int] = ()
    """Instructions of each work-group by software counters, where they depend on data; empty
    elsewhere."""

    @property
    def work_groups(self) -> int:
        """Of the whole launch."""
        return math.prod(self.group_counts)

    @property
    def whole(self) -> SimulatedRun | None:
        """The whole launch from empty caches, else after the last work-groups; None: neither."""
        found = [one for one in self.runs if one.work_groups == self.work_groups]
        return min(found, key=lambda one: one.warmed_by is not None, default=None)

    def find(
        self, begin: int, end: int, warmed_by: tuple[int, int] | None = None
    ) -> SimulatedRun | None:
        """Give a run, or None where it was not simulated."""
        wanted = (begin, end, warmed_by)
        found = (one for one in self.runs if (one.begin, one.end, one.warmed_by) == wanted)
        return next(found, None)

    def require(
        self, begin: int, end: int, warmed_by: tuple[int, int] | None = None
    ) -> SimulatedRun:
        """Give a run that was simulated."""
        found = self.find(begin, end, warmed_by)
        assert found is not None, f"{self.name}: [{begin}, {end}) was not simulated"
        return found

    def list_windows(self, multiple: int) -> tuple[SimulatedRun, ...]:
        """Give the windows of some P_sat that ran right behind their own warm-up, by place."""
        found = [
            one
            for one in self.runs
            if one.work_groups == multiple * self.concurrency
            and one.warmed_by is not None
            and one.warmed_by[1] == one.begin
        ]
        return tuple(sorted(found, key=lambda one: one.begin))


@cache
def load_simulated_kernels() -> tuple[SimulatedKernel, ...]:
    """Load every kernel that was simulated."""
    path = files("support.simulated_gpu") / "runs.json"
    held = json.loads(path.read_text(encoding="utf-8"))
    gpus = {
        name: SimulatedGpu(id=name, simulator=held["simulator"], **facts)
        for name, facts in held["devices"].items()
    }
    latency, names = held["launch_latency_cycles"], held["counters"]
    for one in held["kernels"]:
        one["gpu"] = gpus[one["gpu"]]
        one["runs"] = tuple(_read_run(run, names, latency) for run in one["runs"])
        one["group_counts"], one["local_size"] = (
            tuple(one[name]) for name in ("group_counts", "local_size")
        )
        if len(one.get("counted", ())) == 1:
            one["counted"] *= math.prod(one["group_counts"])
    return tuple(SimulatedKernel(**one) for one in held["kernels"])


def _read_run(run: list[Any], names: list[str], latency: int) -> SimulatedRun:
    begin, end, warm_begin, warm_end, cycles, counters, step, ends = run
    return SimulatedRun(
        begin=begin,
        end=end,
        warmed_by=None if warm_begin is None else (warm_begin, warm_end),
        cycles=cycles - latency,
        counters=dict(zip(names, counters, strict=True)),
        ends=tuple(
            (min((place + 1) * step, end - begin), cycle - latency)
            for place, cycle in enumerate(ends)
        ),
    )


def make_problem(kernel: SimulatedKernel, cache_folder: Path) -> Problem:
    """Give the problem whose launch was simulated."""
    if kernel.parameters:
        [entry] = find_kernels(kernel.name)
        return prepare_launch(
            entry, kernel.parameters, local_size=kernel.local_size, cache_folder=cache_folder
        ).problem
    source = (files("support.simulated_gpu") / "kernels.cl").read_text(encoding="utf-8")
    sizes = zip(kernel.group_counts, kernel.local_size, strict=True)
    return Problem(
        name=kernel.name,
        kernel=Kernel(name=kernel.function, source=source),
        ndrange=NDRange(
            global_size=tuple(count * local for count, local in sizes),
            local_size=kernel.local_size,
        ),
        arguments=tuple(_make_argument(one) for one in kernel.arguments),
    )


def _make_argument(held: Mapping[str, Any]) -> Argument:
    if "buffer" in held:
        return BufferArgument(element=ElementType.parse(held["buffer"]), count=held["count"])
    return ScalarArgument(element=ElementType.parse(held["scalar"]), values=(held["value"],))
