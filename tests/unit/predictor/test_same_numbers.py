import json
from pathlib import Path
from typing import Any

import pytest

from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.recordings import read_recordings
from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor.replaying import replay
from kernelcast.records.estimates import Interval

NUMBERS = Path(__file__).parents[2] / "data" / "same_numbers"
EXAMPLES = Path(__file__).parents[3] / "examples"


def as_numbers(one: Interval) -> tuple[float, float, float]:
    """Give time, low and high end, in seconds."""
    return one.seconds, one.low, one.high


@pytest.mark.parametrize("device", ["intel", "pocl"])
def test_recorded_runs_of_the_examples_give_the_same_numbers(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay answers what was answered when the file was written, to the last bit."""
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path))
    recordings = read_recordings(NUMBERS / f"examples-{device}.json")
    answers: list[dict[str, Any]] = json.loads(
        (NUMBERS / f"examples-{device}-answers.json").read_text()
    )
    for recording, answer in zip(recordings, answers, strict=True):
        name = answer["problem"]
        problem = read_problem(EXAMPLES / name / f"{name}.yaml")
        (found,) = replay([recording], problem, settings=EstimateSettings())
        estimate = found.answer.estimate
        assert estimate is not None, found.answer.error
        expected = (answer["seconds"], answer["low"], answer["high"])
        assert as_numbers(estimate.interval) == expected
        known = {method: one for method, one in answer["estimates"].items() if one is not None}
        assert estimate.estimates_s == known
