"""Tasks with their dependences, in the shapes that programs have."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import InputError

IntArray = npt.NDArray[np.int64]

_FORK_WIDTH_PER_DEVICE = 4
_PREDECESSORS = 3
_LAYERS_OF_RANDOM = 50


class Shape(StrEnum):
    """How tasks depend on each other."""

    INDEPENDENT = "independent"
    """Not at all."""
    CHOLESKY = "cholesky"
    """As in a tiled Cholesky factorisation."""
    FORK_JOIN = "fork-join"
    """Stages of parallel tasks, each behind the end of the one before."""
    LAYERED = "layered"
    """Random layers; each task needs up to three of the layer before."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskGraph:
    """A directed acyclic graph of tasks, in an order in which every task follows what it needs."""

    launches: IntArray
    """Shape (n_tasks,). Which launch (kernel at a size) each task is."""
    first_successor: IntArray
    """Shape (n_tasks + 1,). Where each task's successors begin in `successors`."""
    successors: IntArray
    """Shape (n_edges,). Numbers of tasks."""

    def __post_init__(self) -> None:
        if not len(self.launches):
            msg = "task graph: has no tasks; give at least one"
            raise InputError(msg)
        sources = np.repeat(np.arange(len(self.launches)), np.diff(self.first_successor))
        if len(sources) != len(self.successors) or bool((self.successors <= sources).any()):
            msg = "task graph: an edge leads back; number tasks so that each follows what it needs"
            raise InputError(msg)

    def __len__(self) -> int:
        return len(self.launches)

    def successors_of(self, task: int) -> IntArray:
        """Give the tasks that need this one."""
        return self.successors[self.first_successor[task] : self.first_successor[task + 1]]

    def count_predecessors(self) -> IntArray:
        """Count what each task needs."""
        return np.bincount(self.successors, minlength=len(self)).astype(np.int64)


def rank_upward(graph: TaskGraph, weights_s: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Give each task's upward rank: the longest way from its start to the end.

    Parameters
    ----------
    weights_s : ndarray of shape (n_launches,), in seconds
        Mean time of each launch over devices.

    Notes
    -----
    Source: H. Topcuoglu, S. Hariri, M.-Y. Wu, "Performance-effective and low-complexity task
    scheduling for heterogeneous computing", IEEE TPDS 13(3), 2002, eq. 7, without communication.
    """
    ranks = weights_s[graph.launches].astype(float)
    if len(graph.successors):
        for task in range(len(graph) - 1, -1, -1):
            following = graph.successors_of(task)
            if len(following):
                ranks[task] += ranks[following].max()
    return ranks


def make_graph(shape: Shape, tasks: int, *, launches: int, devices: int, seed: int) -> TaskGraph:
    """Make a graph of about so many tasks.

    Parameters
    ----------
    shape : Shape
        Its kind.
    tasks : int
        Exactly so many where the shape allows it; a Cholesky factorisation has the number nearest.
    launches : int
        How many different launches the tasks are; a Cholesky factorisation has four kernels.
    devices : int
        Fork-join stages are four tasks wide per device.
    seed : int
        Of everything random.
    """
    if min(tasks, launches, devices) < 1:
        msg = f"{tasks} tasks, {launches} launches, {devices} devices: expected at least 1 of each"
        raise InputError(msg)
    rng = np.random.default_rng([seed, 1])
    makers: dict[Shape, Callable[[], tuple[IntArray, list[list[int]]]]] = {
        Shape.INDEPENDENT: lambda: (_draw(rng, tasks, launches), [[] for _ in range(tasks)]),
        Shape.CHOLESKY: lambda: _make_cholesky(tasks),
        Shape.FORK_JOIN: lambda: _make_fork_join(rng, tasks, launches, devices),
        Shape.LAYERED: lambda: _make_layered(rng, tasks, launches),
    }
    names, following = makers[shape]()
    return _pack(names % launches, following)


def _pack(names: IntArray, following: Sequence[Sequence[int]]) -> TaskGraph:
    lengths = [len(one) for one in following]
    flat = [task for one in following for task in one]
    return TaskGraph(
        launches=names,
        first_successor=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        successors=np.array(flat, dtype=np.int64),
    )


def _draw(rng: np.random.Generator, tasks: int, launches: int) -> IntArray:
    return rng.integers(launches, size=tasks)


def _make_cholesky(tasks: int) -> tuple[IntArray, list[list[int]]]:
    """List POTRF, TRSM, SYRK and GEMM of a right-looking factorisation on n x n tiles."""
    tiles = _choose_tiles(tasks)
    names: list[int] = []
    following: list[list[int]] = []
    writer: dict[tuple[int, int], int] = {}

    def add(kind: int, written: tuple[int, int], *read: tuple[int, int]) -> None:
        number = len(names)
        names.append(kind)
        following.append([])
        for before in {writer[tile] for tile in (written, *read) if tile in writer}:
            following[before].append(number)
        writer[written] = number

    for k in range(tiles):
        add(0, (k, k))
        for i in range(k + 1, tiles):
            add(1, (i, k), (k, k))
        for i in range(k + 1, tiles):
            add(2, (i, i), (i, k))
            for j in range(k + 1, i):
                add(3, (i, j), (i, k), (j, k))
    return np.array(names, dtype=np.int64), following


def _choose_tiles(tasks: int) -> int:
    """Give the tiles per side that lead to the number of tasks nearest."""
    tiles = 1
    while _count_cholesky(tiles) < tasks:
        tiles += 1
    is_nearer = tasks - _count_cholesky(tiles - 1) < _count_cholesky(tiles) - tasks
    return tiles - 1 if tiles > 1 and is_nearer else tiles


def _count_cholesky(tiles: int) -> int:
    return tiles * (tiles + 1) * (tiles + 2) // 6


def _make_fork_join(
    rng: np.random.Generator, tasks: int, launches: int, devices: int
) -> tuple[IntArray, list[list[int]]]:
    """Put stages one behind the other; the last task of each is the join."""
    width = min(_FORK_WIDTH_PER_DEVICE * devices, max(tasks - 1, 1))
    following: list[list[int]] = [[] for _ in range(tasks)]
    begin = 0
    join: int | None = None
    while begin < tasks:
        end = min(begin + width, tasks - 1)
        if join is not None:
            following[join].extend(range(begin, max(end, begin + 1)))
        if end <= begin:  # a single task is left
            break
        for task in range(begin, end):
            following[task].append(end)
        join, begin = end, end + 1
    return _draw(rng, tasks, launches), following


def _make_layered(
    rng: np.random.Generator, tasks: int, launches: int
) -> tuple[IntArray, list[list[int]]]:
    layers = min(_LAYERS_OF_RANDOM, tasks)
    bounds = np.linspace(0, tasks, layers + 1).astype(int)
    following: list[list[int]] = [[] for _ in range(tasks)]
    for before, begin, end in zip(bounds[:-2], bounds[1:-1], bounds[2:], strict=True):
        wanted = rng.integers(before, begin, size=(end - begin, _PREDECESSORS))
        for task, sources in enumerate(wanted, start=begin):
            for source in {*sources.tolist()}:
                following[source].append(int(task))
    return _draw(rng, tasks, launches), following
