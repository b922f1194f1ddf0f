"""A configuration that ends a device's process does not end the tuning."""

from collections.abc import Iterator
from typing import Any

import pytest

from kernelcast.records.errors import EstimateTimeoutError, KernelRunError
from kernelcast.tuning import device_runs
from kernelcast.tuning.device_runs import EventKind, TuningEvent, TuningTask
from kernelcast.workers import Task


class Child:
    """Stands for a process: runs each configuration once, and dies of some."""

    def __init__(self, deadly: dict[int, Exception], *, dies_at_once: bool = False) -> None:
        self.deadly = deadly
        self.dies_at_once = dies_at_once
        self.starts: list[list[int]] = []

    def __call__(self, asked: Task[Any], task: TuningTask, **_: Any) -> Iterator[TuningEvent]:  # noqa: ANN401
        """Tell what happens to each configuration."""
        assert asked.name == "run_tuning"
        self.starts.append(list(task.problems))
        if self.dies_at_once:
            raise KernelRunError("gone")
        for number in task.problems:
            yield TuningEvent(number=number, kind=EventKind.STARTED)
            if number in self.deadly:
                raise self.deadly[number]
            yield TuningEvent(number=number, kind=EventKind.RAN, seconds=1.0)


def run(child: Child, monkeypatch: pytest.MonkeyPatch) -> list[TuningEvent]:
    """Measure configurations 0 to 3 until all have run or were refused."""
    monkeypatch.setattr(device_runs, "stream_isolated", child)
    events: list[TuningEvent] = []

    problems: dict[int, Any] = dict.fromkeys(range(4))
    task = TuningTask(device_id="d", problems=problems, runs=dict.fromkeys(problems, 1))
    device_runs.run_on_device(task, timeout_s=1.0, take=events.append)
    return events


@pytest.mark.parametrize("error", [KernelRunError("died"), EstimateTimeoutError("too long")])
def test_a_deadly_configuration_is_refused(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """What a process died of is not tried again; the rest is."""
    child = Child({1: error, 3: error})
    events = run(child, monkeypatch)
    refused = {one.number: one.reason for one in events if one.kind is EventKind.REFUSED}
    assert refused == {1: str(error), 3: str(error)}
    assert {one.number for one in events if one.kind is EventKind.RAN} == {0, 2}
    assert child.starts == [[0, 1, 2, 3], [2, 3]]


def test_a_device_that_never_begins_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing to blame but the device: no endless loop."""
    child = Child({}, dies_at_once=True)
    with pytest.raises(KernelRunError):
        run(child, monkeypatch)
    assert len(child.starts) == 1
