"""Measured runs outlive an interrupted tuning."""

from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.records.errors import InputError
from kernelcast.tuning.api import MeasurementFile, key_of
from kernelcast.tuning.device_runs import EventKind, TuningEvent
from kernelcast.tuning.space import read_space
from support.builders import make_description


def event(kind: EventKind, seconds: float = 0.0, reason: str = "") -> TuningEvent:
    """Make an event of configuration 0."""
    return TuningEvent(number=0, kind=kind, seconds=seconds, reason=reason)


def test_what_was_kept_is_read_again(tmp_path: Path) -> None:
    """Runs, builds and refusals are there for the next call."""
    path = tmp_path / "new" / "runs.jsonl"
    first = MeasurementFile(path)
    first.add("a", event(EventKind.BUILT, 0.5))
    first.add("a", event(EventKind.RAN, 0.25))
    first.add("a", event(EventKind.RAN, 0.125))
    first.add("b", event(EventKind.REFUSED, reason="too large"))
    again = MeasurementFile(path)
    assert again.events("a") == first.events("a")
    assert [(one.kind, one.seconds) for one in again.events("a")] == [
        (EventKind.BUILT, 0.5), (EventKind.RAN, 0.25), (EventKind.RAN, 0.125),
    ]  # fmt: skip
    assert [one.reason for one in again.events("b")] == ["too large"]
    assert again.events("c") == ()


def test_begun_and_sampled_are_not_kept(tmp_path: Path) -> None:
    """Only what a measurement cost or found is written."""
    path = tmp_path / "runs.jsonl"
    MeasurementFile(path).add("a", event(EventKind.STARTED))
    MeasurementFile(path).add("a", event(EventKind.SAMPLED, 1.0))
    assert not path.exists()


def test_a_cut_off_line_is_dropped(tmp_path: Path) -> None:
    """A process that was killed while it wrote costs one run, not the file."""
    path = tmp_path / "runs.jsonl"
    file = MeasurementFile(path)
    file.add("a", event(EventKind.RAN, 0.25))
    with path.open("a") as end:
        end.write('{"key": "a", "kind": "ra')
    again = MeasurementFile(path)
    assert [one.seconds for one in again.events("a")] == [0.25]
    again.add("a", event(EventKind.RAN, 0.5))
    assert [one.seconds for one in MeasurementFile(path).events("a")] == [0.25, 0.5]


@pytest.mark.parametrize("text", ["", "hello\n", '{"schema": "other"}\n', "[1]\n"])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    """A file of something else is neither read nor written."""
    path = tmp_path / "other"
    path.write_text(text)
    with pytest.raises(InputError, match="is no file of tuning measurements"):
        MeasurementFile(path)
    assert path.read_text() == text


def test_a_key_holds_for_one_launch_on_one_driver(problem_file: Path) -> None:
    """Another configuration, another driver, another seed: another measurement."""
    device = make_description()
    problems = [one.problem for one in read_space(problem_file).configurations]
    assert problems[0] is not None
    assert problems[1] is not None
    keys = {
        key_of(problems[0], device, 0),
        key_of(problems[1], device, 0),
        key_of(problems[0], device, 1),
        key_of(problems[0], replace(device, driver="2"), 0),
    }
    assert len(keys) == 4
    assert key_of(problems[0], device, 0) in keys
