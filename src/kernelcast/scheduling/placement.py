"""Places tasks that wait for each other on devices, by estimates: HEFT.

H. Topcuoglu, S. Hariri, M. Wu: Performance-effective and low-complexity task scheduling for
heterogeneous computing. IEEE TPDS 13(3), 2002, section 5.1.
"""

import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from statistics import fmean
from typing import Any

from kernelcast.predictor.launch_estimates import Placement, find_confidence, read_time
from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Estimate, Interval

Time = float | Interval | Estimate
"""A time in seconds, alone or with its interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Something to run on one of several devices, by id, after other tasks have ended."""

    name: str
    times: Mapping[str, Time]
    after: tuple[str, ...] = ()


def place_tasks(
    tasks: Sequence[Task],
    *,
    move_s: Callable[[Task, Task, str, str], float] = lambda *_: 0.0,
    free_s: Mapping[str, float] | None = None,
) -> dict[str, Placement]:
    """Place tasks where each ends first, those with the most work behind them first; `move_s` tells
    what data takes between two devices, `free_s` when each device is free, in seconds."""
    by_name = {task.name: task for task in tasks}
    behind = _find_later(tasks, by_name)

    def move(task: Task, later: Task, source: str, target: str) -> float:
        return 0.0 if source == target else move_s(task, later, source, target)

    seconds = {
        task.name: {device: read_time(time)[0] for device, time in task.times.items()}
        for task in tasks
    }
    ranks: dict[str, float] = {}
    for name in behind:
        after_s = [
            ranks[later]
            + fmean(
                move(by_name[name], by_name[later], one, other)
                for one in by_name[name].times
                for other in by_name[later].times
            )
            for later in behind[name]
        ]
        ranks[name] = fmean(seconds[name].values()) + max(after_s, default=0.0)
    busy = {device: [(0.0, end_s)] for device, end_s in (free_s or {}).items()}
    placed: dict[str, Placement] = {}
    # Equal ranks stay in an order in which nothing precedes what it waits for.
    order = [*ranks][::-1]
    for name in sorted(order, key=lambda name: -ranks[name]):
        task, starts_s = by_name[name], {}
        for device in task.times:
            ready_s = max(
                (placed[one].end_s + move(by_name[one], task, placed[one].device, device)
                 for one in task.after), default=0.0,
            )  # fmt: skip
            for begin_s, end_s in busy.get(device, ()):  # into the first gap that is long enough
                if ready_s + seconds[name][device] <= begin_s:
                    break
                ready_s = max(ready_s, end_s)
            starts_s[device] = ready_s
        ends_s = {device: start_s + seconds[name][device] for device, start_s in starts_s.items()}
        best = min(ends_s, key=lambda device: ends_s[device])
        rivals = {device: (task.times[device], start_s) for device, start_s in starts_s.items()}
        placed[name] = Placement(
            device=best, start_s=starts_s[best], end_s=ends_s[best],
            confidence=find_confidence(rivals, best),
        )  # fmt: skip
        bisect.insort(busy.setdefault(best, []), (placed[name].start_s, placed[name].end_s))
    return dict(sorted(placed.items(), key=lambda item: item[1].start_s))


def _find_later(tasks: Sequence[Task], by_name: Mapping[str, Task]) -> dict[str, list[str]]:
    """List the tasks that wait for each, last tasks first."""
    if len(by_name) < len(tasks):
        raise InputError(f"{len(tasks)} tasks have {len(by_name)} names; give each one of its own")
    for task in tasks:
        missing = [name for name in task.after if name not in by_name]
        if missing or not task.times:
            what = f"waits for {missing[0]!r}, which is no task" if missing else "has no device"
            raise InputError(f"task {task.name!r}: {what}")
    try:
        order = [*TopologicalSorter({task.name: task.after for task in tasks}).static_order()]
    except CycleError as error:
        msg = f"tasks wait for each other in a circle: {' after '.join(error.args[1])}"
        raise InputError(msg) from None
    later: dict[str, list[str]] = {name: [] for name in reversed(order)}
    for task in tasks:
        for name in task.after:
            later[name].append(task.name)
    return later


def submit_options(
    placements: Mapping[str, Placement], workers: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, Any]]:
    """Make ``workers`` and ``priority`` of `distributed.Client.submit` for each task, so that Dask
    does as placed; `workers` are the addresses of those that use each device."""
    return {
        name: {"workers": list(addresses), "priority": -placement.start_s}
        for name, placement, addresses in _find_workers(placements, workers)
    }


def worker_orders(
    placements: Mapping[str, Placement], workers: Mapping[str, int]
) -> dict[str, dict[str, int]]:
    """Make the fields of each task's ``struct starpu_task`` that have StarPU do as placed;
    `workers` are StarPU's numbers of those that use each device."""
    counts: dict[int, int] = {}
    orders = {}
    for name, _, worker in _find_workers(placements, workers):
        counts[worker] = counts.get(worker, 0) + 1
        orders[name] = {
            "execute_on_a_specific_worker": 1, "workerid": worker, "workerorder": counts[worker],
        }  # fmt: skip
    return orders


def _find_workers(
    placements: Mapping[str, Placement], workers: Mapping[str, Any]
) -> Iterator[tuple[str, Placement, Any]]:
    for name, placement in sorted(placements.items(), key=lambda item: item[1].start_s):
        if placement.device not in workers:
            raise InputError(f"{name!r} is placed on {placement.device}, which no worker uses")
        yield name, placement, workers[placement.device]
