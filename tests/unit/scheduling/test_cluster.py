"""The simulated cluster: schedules keep to the rules, bounds and seeds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.records.errors import InputError
from kernelcast.scheduling.cluster.engine import Schedule, simulate
from kernelcast.scheduling.cluster.errors import (
    deviation_of,
    lognormal_errors,
    mean_error_of,
    measured_errors,
)
from kernelcast.scheduling.cluster.graphs import (
    Shape,
    TaskGraph,
    make_graph,
    rank_upward,
)
from kernelcast.scheduling.cluster.knowledge import (
    Estimates,
    History,
    Knowledge,
    Nothing,
)
from kernelcast.scheduling.cluster.machines import Cluster, make_cluster
from kernelcast.scheduling.cluster.study import StudySettings, run_study

shapes = st.sampled_from(Shape)
seeds = st.integers(0, 10_000)
sizes = st.tuples(st.integers(1, 120), st.integers(1, 12), st.integers(1, 6), st.integers(1, 9))
kinds = st.sampled_from(["perfect", "estimates", "history", "nothing"])


def make(shape: Shape, size: tuple[int, int, int, int], seed: int) -> tuple[TaskGraph, Cluster]:
    """Draw a program and a cluster."""
    tasks, devices, models, launches = size
    graph = make_graph(shape, tasks, launches=launches, devices=devices, seed=seed)
    cluster = make_cluster(
        devices=devices, models=models, launches=launches, heterogeneity=0.8, seed=seed
    )
    return graph, cluster


def know(kind: str, cluster: Cluster, seed: int) -> Knowledge:
    """Make a way of knowing."""
    if kind == "history":
        return History(cluster, runs=2)
    if kind == "nothing":
        return Nothing(len(cluster.times_s))
    if kind == "perfect":
        return Estimates(cluster, cluster.times_s)
    ratios = lognormal_errors(0.4).draw(cluster.times_s.shape, seed=seed)
    return Estimates(cluster, cluster.times_s * ratios)


def assert_valid(schedule: Schedule, graph: TaskGraph, cluster: Cluster) -> None:
    """No task before what it needs, none beside another on a device, each for its true time."""
    models = cluster.model_of_device[schedule.devices]
    took = cluster.times_s[graph.launches, models]
    assert schedule.ends_s - schedule.starts_s == pytest.approx(took)
    for task in range(len(graph)):
        for following in graph.successors_of(task):
            assert schedule.starts_s[following] >= schedule.ends_s[task]
    order = np.lexsort((schedule.starts_s, schedule.devices))
    same = schedule.devices[order][1:] == schedule.devices[order][:-1]
    gaps = schedule.starts_s[order][1:] - schedule.ends_s[order][:-1]
    assert (gaps[same] >= 0).all()


@settings(max_examples=60)
@given(shapes, sizes, seeds, kinds, st.integers(1, 5))
def test_schedules_are_valid_and_above_the_bound(
    shape: Shape, size: tuple[int, int, int, int], seed: int, kind: str, lookahead: int
) -> None:
    """Whatever the scheduler knows, it can only do what the machine can."""
    graph, cluster = make(shape, size, seed)
    schedule = simulate(graph, cluster, know(kind, cluster, seed), lookahead=lookahead)
    assert_valid(schedule, graph, cluster)
    assert schedule.makespan_s >= cluster.lower_bound(graph) * (1 - 1e-12)
    again = simulate(graph, cluster, know(kind, cluster, seed), lookahead=lookahead)
    assert (schedule.devices == again.devices).all()
    assert (schedule.ends_s == again.ends_s).all()


@settings(max_examples=40)
@given(shapes, sizes, seeds)
def test_estimates_without_error_are_perfect_knowledge(
    shape: Shape, size: tuple[int, int, int, int], seed: int
) -> None:
    """To the last bit."""
    graph, cluster = make(shape, size, seed)
    ratios = lognormal_errors(0.0).draw(cluster.times_s.shape, seed=seed)
    estimated = simulate(graph, cluster, Estimates(cluster, cluster.times_s * ratios))
    perfect = simulate(graph, cluster, Estimates(cluster, cluster.times_s))
    assert (estimated.ends_s == perfect.ends_s).all()


@given(shapes, st.integers(1, 400), st.integers(1, 9), seeds)
def test_graphs_have_the_tasks_asked_for(
    shape: Shape, tasks: int, launches: int, seed: int
) -> None:
    """Exactly, but for factorisations, which come in steps; every launch is one there is."""
    graph = make_graph(shape, tasks, launches=launches, devices=3, seed=seed)
    if shape is Shape.CHOLESKY:
        counts = [n * (n + 1) * (n + 2) // 6 for n in range(1, 15)]
        assert abs(len(graph) - tasks) == min(abs(one - tasks) for one in counts)
    else:
        assert len(graph) == tasks
    assert graph.launches.min() >= 0
    assert graph.launches.max() < launches


def test_a_factorisation_of_three_tiles() -> None:
    """Ten tasks; its longest chain has seven: three POTRF, and TRSM and SYRK between them."""
    graph = make_graph(Shape.CHOLESKY, 10, launches=4, devices=1, seed=0)
    assert np.bincount(graph.launches).tolist() == [3, 3, 3, 1]
    assert rank_upward(graph, np.ones(4)).max() == 7
    assert rank_upward(graph, np.array([1.0, 10.0, 100.0, 0.0])).max() == 3 + 20 + 200


def test_fork_join_goes_through_every_join() -> None:
    """Stages follow each other: on one device per task, each adds two tasks to the chain."""
    graph = make_graph(Shape.FORK_JOIN, 27, launches=1, devices=2, seed=0)
    assert rank_upward(graph, np.ones(1)).max() == 6
    assert (graph.count_predecessors() == 8).sum() == 3


def test_one_device_runs_without_a_break() -> None:
    """The makespan is the sum of all times, whatever is known."""
    graph, cluster = make(Shape.LAYERED, (200, 1, 1, 5), 0)
    total = cluster.times_s[graph.launches, 0].sum()
    for kind in ("perfect", "estimates", "history", "nothing"):
        assert simulate(graph, cluster, know(kind, cluster, 0)).makespan_s == pytest.approx(total)


def test_tasks_go_where_they_are_fast() -> None:
    """Two kernels, two devices, each the other's opposite."""
    cluster = Cluster(
        model_of_device=np.array([0, 1]), times_s=np.array([[1.0, 100.0], [100.0, 1.0]])
    )
    graph = make_graph(Shape.INDEPENDENT, 40, launches=2, devices=2, seed=0)
    schedule = simulate(graph, cluster, Estimates(cluster, cluster.times_s))
    assert (schedule.devices == graph.launches).all()
    wrong = simulate(graph, cluster, Estimates(cluster, cluster.times_s[::-1]), lookahead=100)
    assert (wrong.devices == 1 - graph.launches).all()


def test_history_runs_every_pair_and_then_knows() -> None:
    """Each launch runs on each model as often as asked for; from then on where it is fast."""
    cluster = Cluster(model_of_device=np.array([0, 0, 1]), times_s=np.array([[1.0, 50.0]]))
    graph = make_graph(Shape.INDEPENDENT, 400, launches=1, devices=3, seed=0)
    schedule = simulate(graph, cluster, History(cluster, runs=3), lookahead=1)
    slow = int((schedule.devices == 2).sum())
    assert 3 <= slow <= 5
    blind = simulate(graph, cluster, Nothing(1), lookahead=8)
    assert blind.makespan_s > schedule.makespan_s


@given(st.floats(0, 3))
def test_the_mean_error_leads_to_its_deviation(deviation: float) -> None:
    """Both formulas are inverses."""
    assert deviation_of(mean_error_of(deviation)) == pytest.approx(deviation, abs=1e-6)


def test_drawn_errors_have_the_mean_asked_for() -> None:
    """A large sample comes near; ratios that were measured are drawn as they are."""
    ratios = lognormal_errors(0.2).draw((400, 400), seed=1)
    assert np.abs(ratios - 1).mean() == pytest.approx(0.2, rel=0.02)
    assert np.median(ratios) == pytest.approx(1, rel=0.01)
    measured = measured_errors("svr", [0.9, 1.3])
    assert measured.mean_error == pytest.approx(0.2)
    assert {*np.unique(measured.draw((50, 50), seed=1))} == {0.9, 1.3}


def test_a_study_has_every_way_of_knowing() -> None:
    """The same seed gives the same study; zero error is perfect knowledge."""
    settings = StudySettings(
        devices=8, tasks=120, models=3, launches=6, repeats=2,
        errors=(lognormal_errors(0.0), measured_errors("svr", [0.5, 2.0])),
    )  # fmt: skip
    told: list[int] = []
    found = run_study(settings, report=lambda done, _: told.append(done))
    assert told == list(range(settings.simulations))
    assert found == run_study(settings)
    for shape in Shape:
        ways = [one for one in found if one.shape is shape]
        assert [one.knowledge for one in ways] == [
            "perfect", "estimates", "estimates", "history", "history", "none",
        ]  # fmt: skip
        assert ways[0].ratios == ways[1].ratios == (1.0, 1.0)
        assert [one.is_measured for one in ways[1:3]] == [False, True]
        assert all(ratio >= 1 - 1e-9 for one in ways for ratio in one.bound_ratios)


def test_settings_out_of_range_are_refused() -> None:
    """Numbers below one, negative errors, ratios that are none."""
    with pytest.raises(InputError, match="at least one device"):
        StudySettings(devices=0)
    with pytest.raises(InputError, match="expected a share"):
        lognormal_errors(-0.1)
    with pytest.raises(InputError, match="no predictions"):
        measured_errors("svr", [])
    with pytest.raises(InputError, match="not positive"):
        measured_errors("svr", [1.0, 0.0])
    with pytest.raises(InputError, match="leads back"):
        TaskGraph(
            launches=np.array([0, 0]),
            first_successor=np.array([0, 0, 1]),
            successors=np.array([0]),
        )
    with pytest.raises(InputError, match="expected at least 1"):
        make_graph(Shape.LAYERED, 0, launches=1, devices=1, seed=0)
