"""A simulated cluster: programs of dependent tasks, devices of several models, schedulers.

Tasks that are ready wait in the order of their upward ranks. As long as no more than a number of
tasks is under way, the first of them is put into the queue of a device (ranks and earliest
expected end of HEFT, decided while the program runs, as StarPU's dmdas does). Devices work off
their queues in order. Moving data takes no time.
"""

import heapq
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MEDIAN_S, SPREAD_OF_LAUNCHES = 0.1, 0.5
FORK_WIDTH_PER_DEVICE = 4
LAYERS, PREDECESSORS = 50, 3


class Shape(StrEnum):
    """How tasks depend on each other."""

    INDEPENDENT = "independent"
    CHOLESKY = "cholesky"
    FORK_JOIN = "fork-join"
    LAYERED = "layered"


@dataclass(frozen=True, slots=True, eq=False)
class TaskGraph:
    """Tasks in an order in which each follows what it needs."""

    launches: IntArray
    """Shape (n_tasks,). Which launch (kernel at a size) each task is."""
    successors: Sequence[Sequence[int]]
    """The tasks that need each task."""

    def rank_upward(self, weights_s: FloatArray) -> FloatArray:
        """Find the longest way from each task's start to the end, in mean times of launches.

        H. Topcuoglu, S. Hariri, M.-Y. Wu, "Performance-effective and low-complexity task
        scheduling for heterogeneous computing", IEEE TPDS 13(3), 2002, eq. 7, without
        communication.
        """
        ranks = weights_s[self.launches].astype(float)
        for task in range(len(ranks) - 1, -1, -1):
            if self.successors[task]:
                ranks[task] += ranks[self.successors[task]].max()
        return ranks


def make_graph(shape: Shape, tasks: int, *, launches: int, devices: int, seed: int) -> TaskGraph:
    """Draw a program; a Cholesky factorisation has the number of tasks nearest, of four kernels."""
    if shape is Shape.CHOLESKY:
        return make_cholesky(tasks, launches)
    rng = np.random.default_rng([seed, 1])
    successors: list[list[int]] = [[] for _ in range(tasks)]
    if shape is Shape.FORK_JOIN:
        stage = min(FORK_WIDTH_PER_DEVICE * devices, max(tasks - 1, 1)) + 1
        for begin in range(0, tasks, stage):
            join = min(begin + stage, tasks) - 1
            if begin:
                successors[begin - 1].extend(range(begin, max(join, begin + 1)))
            for task in range(begin, join):
                successors[task].append(join)
    elif shape is Shape.LAYERED:
        bounds = np.linspace(0, tasks, min(LAYERS, tasks) + 1).astype(int)
        for before, begin, end in zip(bounds[:-2], bounds[1:-1], bounds[2:], strict=True):
            wanted = rng.integers(before, begin, size=(end - begin, PREDECESSORS))
            for task, sources in enumerate(wanted, start=begin):
                for source in {*sources.tolist()}:
                    successors[source].append(int(task))
    return TaskGraph(rng.integers(launches, size=tasks), successors)


def make_cholesky(tasks: int, launches: int) -> TaskGraph:
    """List POTRF, TRSM, SYRK and GEMM of a right-looking factorisation on n x n tiles."""
    tiles = min(range(1, tasks + 2), key=lambda n: abs(n * (n + 1) * (n + 2) // 6 - tasks))
    kinds: list[int] = []
    successors: list[list[int]] = []
    writer: dict[tuple[int, int], int] = {}

    def add(kind: int, written: tuple[int, int], *read: tuple[int, int]) -> None:
        for before in {writer[tile] for tile in (written, *read) if tile in writer}:
            successors[before].append(len(kinds))
        writer[written] = len(kinds)
        kinds.append(kind)
        successors.append([])

    for k in range(tiles):
        add(0, (k, k))
        for i in range(k + 1, tiles):
            add(1, (i, k), (k, k))
        for i in range(k + 1, tiles):
            add(2, (i, i), (i, k))
            for j in range(k + 1, i):
                add(3, (i, j), (i, k), (j, k))
    return TaskGraph(np.array(kinds) % launches, successors)


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """Devices, and how long each launch takes on them."""

    model_of_device: IntArray
    """Shape (n_devices,). Which model each device is of; not falling."""
    times_s: FloatArray
    """Shape (n_launches, n_models)."""

    def lower_bound_s(self, graph: TaskGraph) -> float:
        """Find a makespan that no schedule can beat: the longest chain, and the mean load."""
        present = np.unique(self.model_of_device)
        least = self.times_s[:, present].min(axis=1)
        load = least[graph.launches].sum() / len(self.model_of_device)
        return float(max(graph.rank_upward(least).max(), load))


def make_cluster(
    *, devices: int, models: int, launches: int, heterogeneity: float, seed: int
) -> Cluster:
    """Draw a cluster; `heterogeneity` spreads the logarithm of a launch's time over models."""
    models = min(models, devices)
    rng = np.random.default_rng([seed, 2])
    typical = MEDIAN_S * np.exp(SPREAD_OF_LAUNCHES * rng.standard_normal(launches))
    factors = np.exp(heterogeneity * rng.standard_normal((launches, models)))
    return Cluster(np.sort(np.arange(devices) % models), typical[:, np.newaxis] * factors)


@dataclass(frozen=True, slots=True)
class ErrorModel:
    """How wrong estimates are: log-normal about 1, or by ratios that a validation measured."""

    label: str
    mean_error: float
    """Mean of |ratio - 1|, ratio: estimated over true time."""
    ratios: tuple[float, ...] = ()

    def draw(self, shape: tuple[int, ...], seed: int) -> FloatArray:
        """Draw ratios; log-normals of different errors are multiples of one draw."""
        rng = np.random.default_rng([seed, 3])
        if self.ratios:
            return rng.choice(np.array(self.ratios), size=shape)
        return np.exp(find_deviation(self.mean_error) * rng.standard_normal(shape))


def find_deviation(mean_error: float) -> float:
    """Bisect E|exp(s Z) - 1| = exp(s^2 / 2) (2 Phi(s) - 1), Z standard normal, for s up to 4."""
    low, high = 0.0, 4.0
    for _ in range(200):
        middle = (low + high) / 2
        mean = math.exp(middle**2 / 2) * (2 * NormalDist().cdf(middle) - 1)
        low, high = (middle, high) if mean < mean_error else (low, middle)
    return 0.0 if mean_error == 0 else (low + high) / 2


class DeviceState:
    """What the scheduler expects of every device; what really ends when, it learns then."""

    def __init__(self, devices: int) -> None:
        self.now_s = 0.0
        self.running_until_s = np.zeros(devices)
        self.queued_s = np.zeros(devices)
        self.unfinished = np.zeros(devices, dtype=np.int64)

    def find_earliest_end(self, seconds: FloatArray) -> int:
        """Find the device that is expected to end a task first."""
        ends = np.maximum(self.running_until_s, self.now_s) + self.queued_s + seconds
        return int(ends.argmin())


class Knowledge:
    """What a scheduler knows of times, and where it therefore puts a task; here nothing."""

    def __init__(self, cluster: Cluster) -> None:
        # What each launch takes on average over devices, for ranks before the start.
        self.weights_s = np.ones(len(cluster.times_s))

    def choose(self, launch: int, state: DeviceState) -> tuple[int, float]:
        """Choose a device, here of the fewest tasks; and the seconds that a task shall take."""
        del launch
        return int(state.unfinished.argmin()), 0.0

    def learn(self, launch: int, device: int, seconds: float) -> None:
        """Take note of a task that has ended."""


class Estimates(Knowledge):
    """Times of every launch on every model, true or estimated, from the start."""

    def __init__(self, cluster: Cluster, times_s: FloatArray) -> None:
        self._by_device = np.ascontiguousarray(times_s[:, cluster.model_of_device])
        self.weights_s = self._by_device.mean(axis=1)

    def choose(self, launch: int, state: DeviceState) -> tuple[int, float]:
        """Choose the device that is expected to end the task first."""
        row = self._by_device[launch]
        device = state.find_earliest_end(row)
        return device, float(row[device])


class History(Knowledge):
    """Nothing at first; means of what has been run, per launch and model.

    A pair of launch and model counts as known after `runs` runs (StarPU wants 10). Until all pairs
    of a launch are at least on their way, its tasks go to a model that lacks runs, as StarPU's
    dmda does; then to the device among known models that is expected to end first. Kinder than
    StarPU, which sends all tasks to unknown devices until their measurements are back.
    """

    def __init__(self, cluster: Cluster, runs: int) -> None:
        super().__init__(cluster)
        launches, models = cluster.times_s.shape
        self._models = cluster.model_of_device
        self._begins = np.searchsorted(self._models, np.arange(models + 1)).tolist()
        self._runs = runs
        # Models of which there is no device need no runs.
        self._begun = np.where(np.diff(self._begins) == 0, runs, np.zeros((launches, models), int))
        self._ended = np.zeros((launches, models), dtype=np.int64)
        self._sums_s = np.zeros((launches, models))
        self._rows: dict[int, FloatArray] = {}

    def choose(self, launch: int, state: DeviceState) -> tuple[int, float]:
        """Choose a device that lacks runs, else the one expected to end the task first."""
        lacking = int(self._begun[launch].argmin())
        if self._begun[launch, lacking] < self._runs:
            self._begun[launch, lacking] += 1
            begin, end = self._begins[lacking : lacking + 2]
            return begin + int(state.unfinished[begin:end].argmin()), self._expect_s(launch)
        if launch not in self._rows:
            ended = self._ended[launch]
            means = np.full(len(ended), np.inf)
            np.divide(self._sums_s[launch], ended, out=means, where=ended >= self._runs)
            self._rows[launch] = means[self._models]
        row = self._rows[launch]
        if not np.isfinite(row).any():
            return int(state.unfinished.argmin()), self._expect_s(launch)
        device = state.find_earliest_end(row)
        return device, float(row[device])

    def learn(self, launch: int, device: int, seconds: float) -> None:
        """Add to the mean."""
        self._ended[launch, self._models[device]] += 1
        self._sums_s[launch, self._models[device]] += seconds
        self._rows.pop(launch, None)

    def _expect_s(self, launch: int) -> float:
        """Guess by what has been seen of the launch, else of all launches."""
        for ended, sums_s in ((self._ended[launch], self._sums_s[launch]),
                              (self._ended, self._sums_s)):  # fmt: skip
            if ended.any():
                return float(sums_s.sum() / ended.sum())
        return 0.0


def simulate(graph: TaskGraph, cluster: Cluster, knowledge: Knowledge, lookahead: int) -> float:
    """Run all tasks, with as many under way per device as `lookahead` says: the makespan in s."""
    devices = len(cluster.model_of_device)
    launches, models = graph.launches.tolist(), cluster.model_of_device.tolist()
    times_s = cluster.times_s.tolist()
    # Longest first would put all independent tasks of one launch in a row, which fill the devices
    # that are good at it and spill over to others: 1.67 times the lower bound instead of 1.12.
    ranks = [0.0] * len(launches)
    if any(graph.successors):
        ranks = graph.rank_upward(knowledge.weights_s).tolist()
    waiting_for = [0] * len(launches)
    for following in graph.successors:
        for task in following:
            waiting_for[task] += 1
    ready = [(-ranks[task], task) for task, needed in enumerate(waiting_for) if not needed]
    heapq.heapify(ready)
    state = DeviceState(devices)
    queues: list[deque[tuple[int, float]]] = [deque() for _ in range(devices)]
    is_idle = [True] * devices
    ends: list[tuple[float, int, int, float]] = []

    def start(task: int, device: int, expected_s: float) -> None:
        is_idle[device] = False
        state.running_until_s[device] = state.now_s + expected_s
        end_s = state.now_s + times_s[launches[task]][models[device]]
        heapq.heappush(ends, (end_s, task, device, state.now_s))

    def assign() -> None:
        while ready and state.unfinished.sum() < lookahead * devices:
            _, task = heapq.heappop(ready)
            device, expected_s = knowledge.choose(launches[task], state)
            state.unfinished[device] += 1
            if is_idle[device]:
                start(task, device, expected_s)
            else:
                queues[device].append((task, expected_s))
                state.queued_s[device] += expected_s

    assign()
    while ends:
        state.now_s, task, device, begun_s = heapq.heappop(ends)
        state.unfinished[device] -= 1
        knowledge.learn(launches[task], device, state.now_s - begun_s)
        is_idle[device] = True
        state.running_until_s[device] = state.now_s
        if queues[device]:
            waiting_task, expected_s = queues[device].popleft()
            # What is added up and taken off again leaves rounding behind; an empty queue none.
            left_s = state.queued_s[device] - expected_s
            state.queued_s[device] = left_s if queues[device] else 0.0
            start(waiting_task, device, expected_s)
        for successor in graph.successors[task]:
            waiting_for[successor] -= 1
            if not waiting_for[successor]:
                heapq.heappush(ready, (-ranks[successor], successor))
        assign()
    return state.now_s
