import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Interval
from kernelcast.scheduling.placement import Task, place_tasks, submit_options, worker_orders

DEVICES = ("cpu", "gpu")
# Topcuoglu, Hariri, Wu 2002, figure 2: costs of ten tasks on three processors, and of edges.
COSTS = (
    (14, 16, 9), (13, 19, 18), (11, 13, 19), (13, 8, 17), (12, 13, 10), (13, 16, 9), (7, 15, 11),
    (5, 11, 14), (18, 12, 20), (21, 7, 16),
)  # fmt: skip
EDGES = {
    (1, 2): 18, (1, 3): 12, (1, 4): 9, (1, 5): 11, (1, 6): 14, (2, 8): 19, (2, 9): 16, (3, 7): 23,
    (4, 8): 27, (4, 9): 23, (5, 9): 13, (6, 8): 15, (7, 10): 17, (8, 10): 11, (9, 10): 13,
}  # fmt: skip


def test_the_papers_example_takes_what_it_takes_there() -> None:
    """The schedule of figure 3a is 80 long."""
    tasks = [
        Task(
            name=str(number),
            times={f"P{place}": float(one) for place, one in enumerate(costs, start=1)},
            after=tuple(str(first) for first, second in EDGES if second == number),
        )
        for number, costs in enumerate(COSTS, start=1)
    ]
    placed = place_tasks(
        tasks, move_s=lambda task, later, *_: float(EDGES[int(task.name), int(later.name)])
    )
    assert max(one.end_s for one in placed.values()) == 80
    assert (placed["1"].device, placed["10"].device) == ("P3", "P2")


TIMES = st.tuples(st.floats(0.01, 9), st.floats(0.01, 9))


@given(st.lists(st.tuples(TIMES, st.sets(st.integers(0, 7), max_size=3)), min_size=1, max_size=8))
def test_tasks_wait_for_what_they_need_and_for_their_device(
    drawn: list[tuple[tuple[float, float], set[int]]],
) -> None:
    """No task begins before its predecessors' ends, and no two are on a device at once."""
    tasks = [
        Task(
            name=str(number),
            times=dict(zip(DEVICES, times, strict=True)),
            after=tuple(str(one) for one in sorted(before) if one < number),
        )
        for number, (times, before) in enumerate(drawn)
    ]
    placed = place_tasks(tasks, free_s={"gpu": 1.0})
    assert placed.keys() == {task.name for task in tasks}
    for task in tasks:
        assert all(placed[task.name].start_s >= placed[one].end_s for one in task.after)
    for one, other in itertools.combinations(placed.values(), 2):
        first, second = sorted((one, other), key=lambda placement: placement.start_s)
        assert one.device != other.device or first.end_s <= second.start_s
    assert all(one.start_s >= 1 for one in placed.values() if one.device == "gpu")


def test_confidence_is_that_of_the_device() -> None:
    """Near one half where intervals overlap, near one where another device is far slower."""
    fast = Interval(seconds=1.0, low=0.8, high=1.25, coverage=0.9)
    like = Interval(seconds=1.01, low=0.8, high=1.27, coverage=0.9)
    slow = Interval(seconds=4.0, low=3.5, high=4.6, coverage=0.9)
    near, sure = (
        place_tasks([Task(name="a", times={"cpu": one, "gpu": fast})])["a"] for one in (like, slow)
    )
    assert near.confidence == pytest.approx(0.52, abs=0.02)
    assert sure.confidence > 0.99


def test_runtimes_are_told() -> None:
    """Dask is given workers and priorities, StarPU workers and their order."""
    tasks = [Task(name="a", times={"gpu": 1.0}), Task(name="b", times={"gpu": 1.0}, after=("a",))]
    placed = place_tasks(tasks)
    assert submit_options(placed, {"gpu": ["tcp://one"]})["b"] == {
        "workers": ["tcp://one"], "priority": -1.0,
    }  # fmt: skip
    assert [one["workerorder"] for one in worker_orders(placed, {"gpu": 3}).values()] == [1, 2]
    with pytest.raises(InputError, match="'a' is placed on gpu, which no worker uses"):
        submit_options(placed, {})


@pytest.mark.parametrize(
    ("tasks", "complaint"),
    [
        ([Task(name="a", times={"x": 1.0}, after=("a",))], "in a circle: a after a"),
        ([Task(name="a", times={"x": 1.0}, after=("b",))], "waits for 'b', which is no task"),
        ([Task(name="a", times={})], "'a': has no device"),
        ([Task(name="a", times={"x": 1.0})] * 2, "2 tasks have 1 names"),
    ],
)
def test_what_cannot_be_placed_is_refused(tasks: list[Task], complaint: str) -> None:
    """Says which task and why."""
    with pytest.raises(InputError, match=complaint):
        place_tasks(tasks)
