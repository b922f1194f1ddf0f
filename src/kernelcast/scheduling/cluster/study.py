"""Makespans over the error of estimates, beside history and no knowledge."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from kernelcast.records.errors import InputError
from kernelcast.scheduling.cluster.engine import DEFAULT_LOOKAHEAD, simulate
from kernelcast.scheduling.cluster.errors import ErrorModel, lognormal_errors
from kernelcast.scheduling.cluster.graphs import Shape, TaskGraph, make_graph
from kernelcast.scheduling.cluster.knowledge import (
    Estimates,
    History,
    Knowledge,
    Nothing,
)
from kernelcast.scheduling.cluster.machines import Cluster, make_cluster

DEFAULT_ERRORS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
_HISTORY_RUNS = (1, 10)
# Who knows little does better not to bind tasks early.
_LATE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySettings:
    """What is simulated."""

    devices: int = 100
    tasks: int = 5000
    models: int = 10
    launches: int = 50
    """How many models of devices, and launches (kernels at a size), there are."""
    heterogeneity: float = 0.5
    """Standard deviation of the logarithm of a launch's time over models."""
    shapes: tuple[Shape, ...] = tuple(Shape)
    """How tasks depend on each other."""
    errors: tuple[ErrorModel, ...] = field(
        default_factory=lambda: tuple(map(lognormal_errors, DEFAULT_ERRORS))
    )
    """How wrong estimates are."""
    repeats: int = 5
    """Clusters that are drawn; figures are medians over them."""
    lookahead: int = DEFAULT_LOOKAHEAD
    """Tasks that may be under way, per device; two at most for history and no knowledge."""
    seed: int = 0
    """Of the first cluster; the following ones have the following seeds."""

    def __post_init__(self) -> None:
        numbers = (self.devices, self.tasks, self.models, self.launches, self.repeats,
                   self.lookahead)  # fmt: skip
        if min(numbers) < 1 or self.seed < 0 or not (self.shapes and self.errors):
            msg = (
                "simulation: expected at least one device, task, model, launch, repeat, task under "
                "way, shape and error, and a seed of at least 0"
            )
            raise InputError(msg)

    @property
    def simulations(self) -> int:
        """Number of simulations: perfect knowledge, errors, history, nothing."""
        each = 2 + len(self.errors) + len(_HISTORY_RUNS)
        return each * self.repeats * len(self.shapes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One way of knowing times, over all repeats."""

    shape: Shape
    """How tasks depend on each other."""
    knowledge: str
    """``perfect``, ``estimates``, ``history`` or ``none``."""
    label: str
    """What tables call it."""
    mean_error: float | None
    """Of estimates: mean of |ratio - 1|."""
    is_measured: bool
    """Whether the errors are those of a validation."""
    runs: int | None
    """Of history: runs of each pair before it is known."""
    ratios: tuple[float, ...]
    """Makespan over that of perfect knowledge, per repeat."""
    bound_ratios: tuple[float, ...]
    """Makespan over a bound that no schedule beats, per repeat."""

    @property
    def ratio(self) -> float:
        """Median of the ratios."""
        return median(self.ratios)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """A way of knowing times, as a maker of it."""

    knowledge: str
    label: str
    make: Callable[[Cluster, int], Knowledge]
    mean_error: float | None = None
    is_measured: bool = False
    runs: int | None = None
    binds_late: bool = False


def run_study(
    settings: StudySettings, *, report: Callable[[int, str], None] = lambda _, __: None
) -> list[Outcome]:
    """Simulate every way of knowing on every shape."""
    done = 0
    found = []
    for shape in settings.shapes:
        ways = list(_list_ways(settings.errors))
        makespans: dict[str, list[tuple[float, float, float]]] = {one.label: [] for one in ways}
        for seed in range(settings.seed, settings.seed + settings.repeats):
            graph, cluster = _draw(settings, shape, seed)
            bound = cluster.lower_bound(graph)
            perfect = 0.0
            for way in ways:
                report(done, f"{shape}, {way.label}")
                made = way.make(cluster, seed)
                ahead = min(settings.lookahead, _LATE) if way.binds_late else settings.lookahead
                took = simulate(graph, cluster, made, lookahead=ahead).makespan_s
                perfect = perfect or took  # perfect knowledge is the first way
                makespans[way.label].append((took, perfect, bound))
                done += 1
        found += [_summarise(shape, way, makespans[way.label]) for way in ways]
    return found


def _draw(settings: StudySettings, shape: Shape, seed: int) -> tuple[TaskGraph, Cluster]:
    graph = make_graph(
        shape, settings.tasks, launches=settings.launches, devices=settings.devices, seed=seed
    )
    cluster = make_cluster(
        devices=settings.devices,
        models=settings.models,
        launches=settings.launches,
        heterogeneity=settings.heterogeneity,
        seed=seed,
    )
    return graph, cluster


def _list_ways(errors: Sequence[ErrorModel]) -> Iterator[_Way]:
    yield _Way(
        knowledge="perfect",
        label="perfect knowledge",
        make=lambda cluster, _: Estimates(cluster, cluster.times_s),
    )
    for one in errors:
        yield _Way(
            knowledge="estimates",
            label=f"estimates, {one.label}",
            make=_estimates_with(one),
            mean_error=one.mean_error,
            is_measured=bool(one.ratios),
        )
    for runs in _HISTORY_RUNS:
        yield _Way(
            knowledge="history",
            label=f"history, {runs} run{'s' if runs > 1 else ''} each",
            make=_history_of(runs),
            runs=runs,
            binds_late=True,
        )
    yield _Way(
        knowledge="none",
        label="no knowledge",
        make=lambda cluster, _: Nothing(len(cluster.times_s)),
        binds_late=True,
    )


def _estimates_with(errors: ErrorModel) -> Callable[[Cluster, int], Knowledge]:
    def make(cluster: Cluster, seed: int) -> Knowledge:
        ratios = errors.draw(cluster.times_s.shape, seed=seed)
        return Estimates(cluster, np.asarray(cluster.times_s * ratios))

    return make


def _history_of(runs: int) -> Callable[[Cluster, int], Knowledge]:
    return lambda cluster, _: History(cluster, runs=runs)


def _summarise(shape: Shape, way: _Way, makespans: Sequence[tuple[float, float, float]]) -> Outcome:
    return Outcome(
        shape=shape,
        knowledge=way.knowledge,
        label=way.label,
        mean_error=way.mean_error,
        is_measured=way.is_measured,
        runs=way.runs,
        ratios=tuple(took / perfect for took, perfect, _ in makespans),
        bound_ratios=tuple(took / bound for took, _, bound in makespans),
    )
