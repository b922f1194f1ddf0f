"""Predictions beside measured times, as pages show them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kernelcast.models.catalogue import make_model
from kernelcast.models.persistence import ModelRegistry
from kernelcast.predictor.data_store import open_data_store
from kernelcast.predictor.reviewing import model_answers
from kernelcast.predictor.reviewing.held_rows import read_held_rows
from kernelcast.predictor.reviewing.judging import find_ablation, read_report
from kernelcast.predictor.reviewing.model_answers import answer_rows, list_used_models, open_model
from kernelcast.predictor.training.settings import ALL_ROWS, ValidationSettings
from kernelcast.predictor.training.table import load_training_table
from kernelcast.predictor.training.validating import validate_models
from kernelcast.records.observation import Observation, ObservationFlag, Origin
from kernelcast.records.observed_times import RunTimes
from kernelcast.testing.observations import make_observation
from kernelcast.testing.page_examples import make_validation

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def _observe(seconds: Sequence[float]) -> list[Observation]:
    """Make observations of one launch, a minute apart."""
    first = replace(make_observation(0), samples=(), features=None, origin=Origin.OBSERVED)
    return [
        replace(
            first,
            measurement=str(place),
            runs=RunTimes(median_s=one),
            measured_at=BEGIN + timedelta(minutes=place),
        )
        for place, one in enumerate(seconds)
    ]


def _fill(path: Path, observations: Sequence[Observation]) -> str:
    with open_data_store(path) as store:
        store.add_many(observations)
    return str(path)


def test_an_observation_is_told_by_those_before_it(tmp_path: Path) -> None:
    """The first by none; a lasting shift is found where it becomes certain."""
    times = [0.1, 0.101, 0.099, 0.1, 0.1, 0.2, 0.2, 0.2, 0.2, 0.2]
    held = read_held_rows(_fill(tmp_path / "rows.sqlite", _observe(times)))
    assert [one.seconds for one in held.rows] == times
    assert held.rows[0].remembered is None
    told = held.rows[4].remembered
    assert told is not None
    assert told.seconds == pytest.approx(0.1)
    assert told.low <= 0.1 <= told.high
    shifted = [place for place, one in enumerate(held.rows) if one.has_shifted]
    assert len(shifted) == 1
    assert shifted[0] > 5
    after = held.rows[-1].remembered
    assert after is not None
    assert after.seconds == pytest.approx(0.2)


def test_first_launches_and_busy_machines_are_not_judged(tmp_path: Path) -> None:
    """They count as held all the same; imported rows do not."""
    first, busy, sound, imported = _observe([0.5, 0.4, 0.1, 0.2])
    database = _fill(
        tmp_path / "rows.sqlite",
        [
            replace(first, flags=frozenset({ObservationFlag.FIRST_LAUNCH})),
            replace(busy, flags=frozenset({ObservationFlag.CONTAMINATED})),
            sound,
            replace(imported, origin=Origin.IMPORTED),
        ],
    )
    held = read_held_rows(database)
    assert [one.seconds for one in held.rows] == [0.1]
    assert held.total == 3
    assert held.devices == ("device-0",)


def test_the_newest_rows_are_read(tmp_path: Path) -> None:
    """Oldest of them first; rows without a time count as older than all."""
    observations = _observe([0.1, 0.2, 0.3, 0.4])
    observations[3] = replace(observations[3], measured_at=None)
    held = read_held_rows(_fill(tmp_path / "rows.sqlite", observations), most=2)
    assert [one.seconds for one in held.rows] == [0.2, 0.3]
    assert held.total == 4


def _sampled(number: int) -> Observation:
    one = make_observation(number)
    return replace(one, samples=(replace(one.samples[0], multiple=0),))


def test_a_model_is_asked_about_what_it_has_not_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held-out answers of the validation for the rest; nothing of a model without one."""
    monkeypatch.setattr(model_answers, "find_shipped", lambda: str(tmp_path / "none"))
    old = [_sampled(number) for number in range(0, 30, 3)]
    database = _fill(tmp_path / "rows.sqlite", old)
    table = load_training_table([database])
    settings = ValidationSettings(models=("linear",), rows=ALL_ROWS, jobs=1)
    report = validate_models(table, settings)
    fitted = make_model("linear").fit(table)
    registry = ModelRegistry(url=str(tmp_path / "models"))
    registry.publish("linear/device-0", fitted, table.schema, report)
    registry.publish("linear/other", fitted, table.schema)
    known, unknown = (open_model(one, registry.url) for one in list_used_models(registry.url))
    assert (known.kind, known.devices) == ("linear", ("device-0",))
    new = _sampled(33)
    _fill(tmp_path / "rows.sqlite", [new])
    keys = [one.key for one in (*old, new)]
    answers = answer_rows(known, database, keys)
    assert {*answers} == {*keys}
    held_out = report.rows.models[0].seconds[report.rows.keys.index(old[0].key)]
    assert answers[old[0].key].seconds == held_out
    assert answers[new.key].low <= answers[new.key].seconds <= answers[new.key].high
    assert answer_rows(unknown, database, keys) == {}


def test_an_ablation_is_found_in_a_validation() -> None:
    """The hybrid without a group, less the hybrid."""
    report = read_report(make_validation())
    (one,) = find_ablation(report)
    assert (one.group, one.device) == ("analytic", "device-0")
    assert one.difference == pytest.approx(one.error_without - one.error)
    assert one.low is not None
    assert one.high is not None
    assert one.low <= one.difference <= one.high
