"""Ranks, samples and measures without a device: another one's answers stand in for it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kernelcast.records.device import Progress
from kernelcast.records.errors import EstimateTimeoutError, InputError, KernelRunError
from kernelcast.records.machine import MachineDescription
from kernelcast.tuning import api
from kernelcast.tuning.api import (
    EventKind,
    MeasurementFile,
    TuningEvent,
    key_of,
    tune_on_device,
)
from kernelcast.tuning.report import TuneModels, TuneReport, TuneSettings
from kernelcast.tuning.space import read_space
from kernelcast.workers import Task
from support.builders import make_description

Tune = Callable[..., TuneReport]
TIMES = {0: 5.0, 1: 4.0, 2: 3.0, 3: 1.0, 4: 2.0}


class Device:
    """Answers with the times of `TIMES`; interrupts after some runs where that is wanted."""

    def __init__(self, *, runs_until_interrupt: int = 1000, refuses: int = -1) -> None:
        self.left = runs_until_interrupt
        self.refuses = refuses
        self.asked: list[dict[int, int]] = []  # runs of each configuration

    def __call__(
        self, _: str, problems: dict[int, Any], runs: dict[int, int], *,
        take: Callable[[TuningEvent], None], **__: float,
    ) -> None:  # fmt: skip
        if not problems:
            return
        self.asked.append(runs)
        for number in problems:
            take(TuningEvent(number=number, kind=EventKind.STARTED))
            if number == self.refuses:
                take(TuningEvent(number=number, kind=EventKind.REFUSED, reason="no"))
            elif not runs:
                take(TuningEvent(number=number, kind=EventKind.SAMPLED, seconds=TIMES[number]))
            else:
                take(TuningEvent(number=number, kind=EventKind.BUILT, seconds=0.1))
                for _ in range(runs[number]):
                    if not self.left:
                        raise KeyboardInterrupt
                    self.left -= 1
                    take(TuningEvent(number=number, kind=EventKind.RAN, seconds=TIMES[number]))


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    found = Device()
    monkeypatch.setattr(api, "run_on_device", found)
    return found


@pytest.fixture
def tune(problem_file: Path, machine: MachineDescription, tmp_path: Path) -> Tune:
    space, device = read_space(problem_file), make_description()
    return partial(tune_on_device, space, device, machine=machine, save=tmp_path / "runs")


def test_models_alone_run_nothing(tune: Tune, device: Device) -> None:
    """All are ranked by predicted time, a step each, and no device is asked."""
    told: list[Progress] = []
    report = tune(report=told.append)
    assert [(one.stage, one.done, one.total) for one in told] == [
        ("ranking", done, 5) for done in range(1, 6)
    ]
    assert not device.asked
    times = [one.predicted_s for one in report.configurations]
    assert all(times)
    assert times == sorted(times, key=lambda one: one or 0)
    assert report.pick is report.configurations[0]
    assert report.models_s > 0 == report.sampling_s == report.measuring_s


def test_measured_ones_come_first_by_their_medians(tune: Tune, device: Device) -> None:
    """What was measured counts more than any prediction."""
    report = tune(settings=TuneSettings(measure=True, top=3, runs=2))
    measured = [one for one in report.configurations if one.runs_s]
    assert len(measured) == 3
    assert list(report.configurations[:3]) == measured
    assert [one.measured_s for one in measured] == sorted(TIMES[one.number] for one in measured)
    assert measured[0].build_s == 0.1
    assert report.pick is measured[0]
    assert len(device.asked) == 1


def test_hybrid_samples_and_ranks_by_samples(tune: Tune, device: Device) -> None:
    """The best by the analytic model are sampled; samples decide among them."""
    report = tune(settings=TuneSettings(models=TuneModels.HYBRID, sampled=2))
    sampled = [one for one in report.configurations if one.sampled_s is not None]
    assert len(sampled) == 2
    assert list(report.configurations[:2]) == sampled
    assert report.sampling_s > 0
    assert not device.asked[0]


def test_an_interrupted_measurement_goes_on(tune: Tune, device: Device) -> None:
    """Runs that were taken before Ctrl-C are not taken again."""
    settings = TuneSettings(measure=True, top=2, runs=3)
    device.left = 4
    with pytest.raises(KeyboardInterrupt):
        tune(settings=settings)
    device.left = 2
    report = tune(settings=settings)
    again = device.asked[-1]
    assert sum(again.values()) == 2
    assert sorted(len(one.runs_s) for one in report.configurations) == [0, 0, 0, 3, 3]
    # A third call has nothing left to run.
    tune(settings=settings)
    assert device.asked[-1] is again


def test_refused_configurations_come_last(tune: Tune, device: Device, tmp_path: Path) -> None:
    """What the device does not take is no pick, and is remembered."""
    first = tune().pick
    assert first is not None
    device.refuses = first.number
    report = tune(settings=TuneSettings(measure=True, top=2, runs=1))
    assert report.configurations[-1].obstacle == "no"
    assert report.pick is not None
    assert report.pick.number != first.number
    assert (tmp_path / "runs").read_text().count('"refused"') == 1


def test_what_a_device_or_the_analysis_does_not_take_says_why(
    problem_file: Path, machine: MachineDescription
) -> None:
    """A work-group beyond the device's limit is barred; a source that the analysis does not
    understand has no prediction, and the device may know it."""
    small = replace(make_description(), max_work_group_size=32)
    report = tune_on_device(read_space(problem_file), small, machine=machine)
    assert report.valid_count == 4
    assert "the device allows at most 32" in report.configurations[-1].obstacle
    problem_file.write_text(problem_file.read_text().replace("*= 2.0f", "*= half"))
    report = tune_on_device(read_space(problem_file), make_description(), machine=machine)
    assert any("5 configurations have no prediction" in one for one in report.warnings)
    assert {(one.predicted_s, one.obstacle) for one in report.configurations} == {(None, "")}
    assert report.configurations[0].limiter.startswith("not modelled: ")


@pytest.mark.parametrize("wrong", [{"top": 0}, {"runs": 0}, {"sampled": 0}, {"timeout_s": 0.0}])
def test_settings_are_checked(wrong: dict[str, float]) -> None:
    """Numbers out of range are refused."""
    with pytest.raises(InputError, match="give"):
        TuneSettings(**wrong)  # type: ignore[arg-type]  # each key has its own type


def test_what_was_kept_is_read_again(tmp_path: Path) -> None:
    """Runs, builds and refusals are there for the next call, but for a line that was cut off; a
    file of something else is neither read nor written."""
    path = tmp_path / "new" / "runs.jsonl"
    first = MeasurementFile(path)
    first.add("a", TuningEvent(number=3, kind=EventKind.STARTED))
    assert not path.exists()
    for kind, seconds in ((EventKind.BUILT, 0.5), (EventKind.RAN, 0.25), (EventKind.RAN, 0.125)):
        first.add("a", TuningEvent(number=3, kind=kind, seconds=seconds))
    first.add("b", TuningEvent(number=4, kind=EventKind.REFUSED, reason="too large"))
    with path.open("a") as end:
        end.write('{"key": "a", "kind": "ra')
    again = MeasurementFile(path)
    assert again.events == first.events
    assert [one.seconds for one in again.events["a"]] == [0.5, 0.25, 0.125]
    assert [(one.number, one.reason) for one in again.events["b"]] == [(0, "too large")]
    again.add("a", TuningEvent(number=3, kind=EventKind.RAN, seconds=1.0))
    assert [one.seconds for one in MeasurementFile(path).events["a"]] == [0.5, 0.25, 0.125, 1.0]
    for text in ("", "hello\n", '{"schema": "other"}\n', "[1]\n"):
        path.write_text(text)
        with pytest.raises(InputError, match="is no file of tuning measurements"):
            MeasurementFile(path)
        assert path.read_text() == text


def test_a_key_holds_for_one_launch_on_one_driver(problem_file: Path) -> None:
    """Another configuration, another driver, another seed: another measurement."""
    device = make_description()
    one, other, *_ = (one.problem for one in read_space(problem_file).configurations)
    assert one is not None
    assert other is not None
    launches = [(one, device, 0), (other, device, 0), (one, device, 1),
                (one, replace(device, driver="2"), 0)]  # fmt: skip
    assert len({key_of(*launch) for launch in launches}) == 4


@pytest.mark.parametrize("error", [KernelRunError("died"), EstimateTimeoutError("too long")])
def test_a_deadly_configuration_is_refused(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """What a process died of is not tried again; the rest is. A device that never begins is an
    error, no endless loop."""
    starts: list[list[int]] = []
    dies_at_once = False

    def stream(asked: Task[Any], order: tuple[Any, ...], **_: object) -> Iterator[TuningEvent]:
        assert asked.entry.endswith(":run_tuning")
        starts.append(list(order[1]))
        assert len(starts) < 9, "an endless loop"
        if dies_at_once:
            raise error
        for number in order[1]:
            yield TuningEvent(number=number, kind=EventKind.STARTED)
            if number in {1, 3}:
                raise error
            yield TuningEvent(number=number, kind=EventKind.RAN, seconds=1.0)

    monkeypatch.setattr(api, "stream_isolated", stream)
    events: list[TuningEvent] = []
    problems: dict[int, Any] = dict.fromkeys(range(4))
    runs = dict.fromkeys(problems, 1)
    api.run_on_device("d", problems, runs, seed=0, timeout_s=1.0, take=events.append)
    refused = {one.number: one.reason for one in events if one.kind is EventKind.REFUSED}
    assert refused == {1: str(error), 3: str(error)}
    assert {one.number for one in events if one.kind is EventKind.RAN} == {0, 2}
    assert starts == [[0, 1, 2, 3], [2, 3]]
    dies_at_once = True
    with pytest.raises(type(error)):
        api.run_on_device("d", problems, runs, seed=0, timeout_s=1.0, take=events.append)
    assert len(starts) == 3
