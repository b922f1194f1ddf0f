"""Measured runs outlive an interrupted tuning."""

from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.records.errors import InputError
from kernelcast.tuning.api import MeasurementFile, key_of
from kernelcast.tuning.device_runs import EventKind, TuningEvent
from kernelcast.tuning.space import read_space
from support.builders import make_description


def test_what_was_kept_is_read_again(tmp_path: Path) -> None:
    """Runs, builds and refusals are there for the next call, but for a line that was cut off."""
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
    one, other, *_ = (one.problem for one in read_space(problem_file).configurations)
    assert one is not None
    assert other is not None
    launches = [(one, device, 0), (other, device, 0), (one, device, 1),
                (one, replace(device, driver="2"), 0)]  # fmt: skip
    assert len({key_of(*launch) for launch in launches}) == 4
    assert key_of(one, device, 0) == key_of(one, device, 0)
