"""Runs a graph of tasks on a cluster, event by event.

Tasks that are ready wait in the order of their upward ranks. As long as no more than a number of
tasks is under way, the first of them is put into the queue of a device (what "HEFT-like" means
here: ranks and earliest expected end of HEFT, decided while the program runs, as StarPU's dmdas
does). Devices work off their queues in order. Moving data takes no time.
"""

import heapq
from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.scheduling.cluster.graphs import TaskGraph, rank_upward
from kernelcast.scheduling.cluster.knowledge import DeviceState, Knowledge
from kernelcast.scheduling.cluster.machines import Cluster

DEFAULT_LOOKAHEAD = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Schedule:
    """What ran where and when."""

    devices: npt.NDArray[np.int64]
    starts_s: npt.NDArray[np.float64]
    ends_s: npt.NDArray[np.float64]

    @property
    def makespan_s(self) -> float:
        """When the last task ended, in seconds."""
        return float(self.ends_s.max())


def simulate(
    graph: TaskGraph,
    cluster: Cluster,
    knowledge: Knowledge,
    *,
    lookahead: int = DEFAULT_LOOKAHEAD,
) -> Schedule:
    """Run all tasks."""
    run = _Run(graph, cluster, knowledge, lookahead * cluster.devices)
    run.work()
    return Schedule(devices=run.devices, starts_s=run.starts_s, ends_s=run.ends_s)


class _Run:
    """The state of one simulation."""

    def __init__(
        self, graph: TaskGraph, cluster: Cluster, knowledge: Knowledge, limit: int
    ) -> None:
        self._graph = graph
        self._knowledge = knowledge
        self._limit = limit
        self._launches = graph.launches.tolist()
        self._models = cluster.model_of_device.tolist()
        self._times_s = cluster.times_s.tolist()
        self._waiting_for = graph.count_predecessors().tolist()
        self._ranks = _rank(graph, knowledge)
        self._state = DeviceState(cluster.devices)
        self._queues: list[deque[tuple[int, float]]] = [deque() for _ in range(cluster.devices)]
        self._is_idle = [True] * cluster.devices
        self._ends: list[tuple[float, int, int]] = []
        self._under_way = 0
        self._ready = [
            (-self._ranks[task], task) for task, n in enumerate(self._waiting_for) if not n
        ]
        heapq.heapify(self._ready)
        self.devices = np.zeros(len(graph), dtype=np.int64)
        self.starts_s = np.zeros(len(graph))
        self.ends_s = np.zeros(len(graph))

    def work(self) -> None:
        """Go from event to event until nothing is left."""
        self._assign()
        while self._ends:
            self._end(*heapq.heappop(self._ends))
            self._assign()

    def _assign(self) -> None:
        """Put ready tasks into queues."""
        state = self._state
        while self._ready and self._under_way < self._limit:
            _, task = heapq.heappop(self._ready)
            device, expected_s = self._knowledge.choose(self._launches[task], state)
            self._under_way += 1
            state.unfinished[device] += 1
            if self._is_idle[device]:
                self._start(task, device, expected_s)
            else:
                self._queues[device].append((task, expected_s))
                state.queued_s[device] += expected_s

    def _start(self, task: int, device: int, expected_s: float) -> None:
        now = self._state.now_s
        self._is_idle[device] = False
        self._state.running_until_s[device] = now + expected_s
        end = now + self._times_s[self._launches[task]][self._models[device]]
        self.devices[task] = device
        self.starts_s[task] = now
        self.ends_s[task] = end
        heapq.heappush(self._ends, (end, task, device))

    def _end(self, now: float, task: int, device: int) -> None:
        state = self._state
        state.now_s = now
        state.unfinished[device] -= 1
        self._under_way -= 1
        self._knowledge.learn(self._launches[task], device, now - float(self.starts_s[task]))
        queue = self._queues[device]
        if queue:
            following, expected_s = queue.popleft()
            # What is added up and taken off again leaves rounding behind; an empty queue none.
            state.queued_s[device] = state.queued_s[device] - expected_s if queue else 0.0
            self._start(following, device, expected_s)
        else:
            self._is_idle[device] = True
            state.running_until_s[device] = now
        for one in self._graph.successors_of(task).tolist():
            self._waiting_for[one] -= 1
            if not self._waiting_for[one]:
                heapq.heappush(self._ready, (-self._ranks[one], one))


def _rank(graph: TaskGraph, knowledge: Knowledge) -> list[float]:
    """Rank tasks; those of a program without dependences keep their order.

    Longest first would put all tasks of one launch in a row, which fill the devices that are good
    at it and spill over to those that are not: with perfect knowledge, 100 devices and 5,000
    tasks, 1.67 times the lower bound instead of 1.12.
    """
    if not len(graph.successors):
        return [0.0] * len(graph)
    return [float(one) for one in rank_upward(graph, knowledge.weights_s())]
