"""A configuration that ends a device's process does not end the tuning."""

from collections.abc import Iterator
from typing import Any

import pytest

from kernelcast.records.errors import EstimateTimeoutError, KernelRunError
from kernelcast.tuning import device_runs
from kernelcast.tuning.device_runs import EventKind, TuningEvent, TuningTask
from kernelcast.workers import Task


@pytest.mark.parametrize("error", [KernelRunError("died"), EstimateTimeoutError("too long")])
def test_a_deadly_configuration_is_refused(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """What a process died of is not tried again; the rest is. A device that never begins is an
    error, no endless loop."""
    starts: list[list[int]] = []
    dies_at_once = False

    def stream(asked: Task[Any], task: TuningTask, **_: object) -> Iterator[TuningEvent]:
        assert asked.name == "run_tuning"
        starts.append(list(task.problems))
        assert len(starts) < 9, "an endless loop"
        if dies_at_once:
            raise error
        for number in task.problems:
            yield TuningEvent(number=number, kind=EventKind.STARTED)
            if number in {1, 3}:
                raise error
            yield TuningEvent(number=number, kind=EventKind.RAN, seconds=1.0)

    monkeypatch.setattr(device_runs, "stream_isolated", stream)
    events: list[TuningEvent] = []
    problems: dict[int, Any] = dict.fromkeys(range(4))
    task = TuningTask(device_id="d", problems=problems, runs=dict.fromkeys(problems, 1))
    device_runs.run_on_device(task, timeout_s=1.0, take=events.append)
    refused = {one.number: one.reason for one in events if one.kind is EventKind.REFUSED}
    assert refused == {1: str(error), 3: str(error)}
    assert {one.number for one in events if one.kind is EventKind.RAN} == {0, 2}
    assert starts == [[0, 1, 2, 3], [2, 3]]
    dies_at_once = True
    with pytest.raises(type(error)):
        device_runs.run_on_device(task, timeout_s=1.0, take=events.append)
    assert len(starts) == 3
