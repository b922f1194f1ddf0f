import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from kernelcast.launches.machine_file import read_machine
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.recordings import read_recordings
from kernelcast.launches.settings import EstimateSettings
from kernelcast.models.linear import fit_linear, make_interval
from kernelcast.predictor.answering.forecasting import forecast_rows
from kernelcast.predictor.answering.tasks import LaunchRow
from kernelcast.predictor.answering.trained_models import TrainedModels
from kernelcast.predictor.replaying import replay
from kernelcast.records.estimates import Interval
from kernelcast.records.observation import Observation
from kernelcast.training.peaks import DevicePeaks, read_peaks
from kernelcast.training_data.parquet.reader import read_parquet

NUMBERS = Path(__file__).parents[2] / "data" / "same_numbers"
MEASURED = Path(str(files("kernelcast"))) / "training_data" / "measured"
EXAMPLES = Path(__file__).parents[3] / "examples"
ROWS: dict[str, dict[str, list[str]]] = json.loads((NUMBERS / "rows.json").read_text())
# Linear algebra libraries choose other orders of summation on other processors.
_LAST_BITS = 1e-9
_EVERY = 9
_LETTERS = 16


def read_interval(numbers: list[str]) -> tuple[float, float, float]:
    """Read time, low and high end, in seconds, written to the last bit."""
    seconds, low, high = map(float.fromhex, numbers)
    return seconds, low, high


def as_numbers(one: Interval) -> tuple[float, float, float]:
    """Give time, low and high end, in seconds."""
    return one.seconds, one.low, one.high


def correct(one: Observation, peaks: DevicePeaks, device_id: str, registry: Path) -> Interval:
    """Have the shipped model correct an observation's first samples, as an estimate does."""
    run, features = one.sample_run(), one.features
    assert features is not None
    fit = fit_linear(run)
    row = LaunchRow(
        vector=features,
        linear_s=fit.seconds,
        linear_error=fit.standard_error_s / fit.seconds,
        two_point_s=fit.two_point_s,
        sampling_s=run.sampling_s,
        work_groups=one.launch.work_group_count or 0,
        compute_units=int(peaks.compute_units),
        peaks=peaks,
    )
    found = TrainedModels(str(registry)).find(device_id, features.schema).found
    assert found is not None
    (forecast,) = forecast_rows(found.stored.model, [row], found.stored.schema, 0.9)
    assert not isinstance(forecast, str), forecast
    return forecast.interval


@pytest.mark.parametrize("device_id", ROWS)
def test_stored_samples_of_the_corpus_give_the_same_numbers(device_id: str, tmp_path: Path) -> None:
    """Linear and corrected times of shipped rows are those of version 0.1, to the last bit."""
    known = ROWS[device_id]
    peaks = read_peaks(read_machine(MEASURED / f"{device_id}.yaml"))
    rows = [
        one
        for one in read_parquet(MEASURED / f"{device_id}.parquet")
        if one.key[:_LETTERS] in known and one.samples
    ]
    assert len(rows) == len(known)
    for place, one in enumerate(rows):
        numbers = known[one.key[:_LETTERS]]
        linear = make_interval(fit_linear(one.sample_run()), coverage=0.9)
        assert as_numbers(linear) == read_interval(numbers[:3])
        if len(numbers) > 3 and place % _EVERY == 0:
            found = correct(one, peaks, device_id, tmp_path)
            assert as_numbers(found) == pytest.approx(read_interval(numbers[3:]), rel=_LAST_BITS)


@pytest.mark.parametrize("device", ["intel", "pocl"])
def test_recorded_runs_of_the_examples_give_the_same_numbers(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay answers what version 0.1 answered when the samples were taken, to the last bit."""
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
