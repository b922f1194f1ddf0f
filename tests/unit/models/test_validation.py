import json
from dataclasses import dataclass, field

import joblib
import numpy as np
import pytest

from kernelcast.models.time_models import FittedModel, TimeModel, make_model
from kernelcast.models.validation.report import (
    ValidatedRows,
    report_from_json,
    report_to_json,
    score_rows,
    validate,
)
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.training_table import Texts, TrainingTable, make_table
from support.synthetic_rows import make_rows

TABLE = make_rows(kernels=6, sizes=3, devices=2)
EMPTY = FeatureSchema(names=(), version=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spy(TimeModel):
    """The linear model, noting what it has learned from."""

    name: str = "spy"
    seen: list[tuple[set[str], set[str], set[str]]] = field(default_factory=list)

    def fit(self, table: TrainingTable, groups: Texts | None = None) -> FittedModel:
        """Fit the linear model."""
        assert groups is not None
        self.seen.append(({*table.kernels}, {*table.devices}, {*groups}))
        return make_model("linear").fit(table, groups)


def make_measured(seconds: list[float], linear_s: list[float], kernels: str) -> TrainingTable:
    """Make launches on one device; a letter per kernel."""
    columns = {
        "seconds": seconds, "linear_s": linear_s, "kernels": list(kernels),
        "devices": ["d"] * len(seconds), "noise": [0.02] * len(seconds),
    }  # fmt: skip
    return make_table(EMPTY, np.empty((len(seconds), 0)), columns)


def test_no_fit_sees_what_it_predicts() -> None:
    """Each group of each device is held out once, from everything that is learned."""
    spy = Spy()
    validate(TABLE, [spy], TABLE.kernels)
    kernels = {*TABLE.kernels}
    assert len(spy.seen) == 12
    for seen, devices, groups in spy.seen:
        assert len(kernels - seen) == 1
        assert len(devices) == 1
        assert groups == seen


def test_devices_are_held_out_over_all_kernels() -> None:
    """A pooled model learns from other devices, and holds out devices inside where it can."""
    table = make_rows(kernels=4, sizes=2, devices=4)
    spy = Spy()
    report = validate(table, [spy], table.devices, split="device", is_per_device=False)
    assert [len(devices) for _, devices, _ in spy.seen] == [3, 3, 3, 3]
    assert all(groups == devices for _, devices, groups in spy.seen)
    assert {one.device for one in report.scores} == {*table.devices}


def test_scores_are_those_of_the_paper() -> None:
    """Mean, median and classes of a case worked out by hand."""
    table = make_measured(
        [1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [1.02, 0.98, 1.08, 0.92, 1.5, 0.7], "aabbcc"
    )
    score = validate(table, [make_model("linear")], table.kernels).score("linear", "d")
    assert score.errors is not None
    assert score.errors["rows"] == 6
    assert score.errors["mean"] == pytest.approx((0.02 + 0.02 + 0.08 + 0.08 + 0.5 + 0.3) / 6)
    assert score.errors["median"] == pytest.approx(0.08)
    assert score.errors["worst"] == pytest.approx(0.5)
    found = [(one["low"], one["high"], one["groups"], one["error"]) for one in score.classes]
    assert found == [
        (0.0, 0.05, 1, pytest.approx(0.02)), (0.05, 0.1, 1, pytest.approx(0.08)),
        (0.1, None, 1, pytest.approx(0.4)),
    ]  # fmt: skip
    assert [one["group"] for one in score.groups] == ["c", "b", "a"]
    assert score.noise == pytest.approx(0.02)


def test_ranking_of_a_case_by_hand() -> None:
    """Top-1 counts launches that differ by over 10 %, regret counts all."""
    columns = {
        "seconds": [1.0, 2.0, 1.0, 1.05, 3.0, 2.0, 9.0],
        "devices": ["x", "y", "x", "y", "x", "y", "x"],
        "problems": ["p", "p", "q", "q", "r", "r", "alone"],
    }
    table = make_table(EMPTY, np.empty((7, 0)), columns)
    predicted = [1.0, 2.0, 1.1, 1.0, 2.0, 3.0, 1.0]  # right, close, wrong
    answers = {
        "model": "m", "seconds": predicted, "low": predicted, "high": predicted,
        "in_domain": [True] * 7,
    }  # fmt: skip
    names = tuple(table.kernels)
    rows = ValidatedRows(
        keys=tuple(table.keys), groups=names, kernels=names, devices=tuple(table.devices),
        measured_s=tuple(table.seconds), models=(answers,),
    )  # fmt: skip
    _, (found,) = score_rows(table, rows)
    assert found == {
        "model": "m", "problems": 3, "differing": 2, "top_1": 0.5,
        "mean_regret": pytest.approx((1 + 1.05 + 1.5) / 3), "worst_regret": pytest.approx(1.5),
    }  # fmt: skip


def test_report_does_not_depend_on_order_or_workers() -> None:
    """Shuffled rows and two workers of the caller's choice give the same report."""
    models = [make_model("linear"), make_model("hybrid")]
    expected = validate(TABLE, models, TABLE.kernels, folds=2)
    order = np.random.default_rng(1).permutation(len(TABLE))
    with joblib.parallel_config(backend="threading", n_jobs=2):
        kernels = TABLE.kernels[order]
        found = validate(TABLE.take(order), models, kernels, folds=2, jobs=None)
    assert found == expected


def test_report_survives_json() -> None:
    """What is written is what is read; text that is no report, or of another format, is refused."""
    report = validate(TABLE, [make_model("ridge"), make_model("linear")], TABLE.applications)
    text = report_to_json(report)
    assert report_from_json(text) == report
    assert "NaN" not in text
    for change in ({"format": 99}, {"more": 1}, {"scores": [{}]}):
        with pytest.raises(InputError, match="report"):
            report_from_json(json.dumps({**json.loads(text), **change}))
    for other in ("", "{}", "[1]"):
        with pytest.raises(InputError, match="report"):
            report_from_json(other)


def test_models_that_cannot_answer_are_named() -> None:
    """A model without what it needs is reported as such, and the others are scored."""
    linear_s = np.where(np.arange(len(TABLE)) == 0, np.nan, TABLE.linear_s)
    table = TABLE.assign(linear_s=linear_s)
    bare = make_measured([1.0] * 6, [1.1] * 6, "aabbcc")
    models = [make_model(name) for name in ("linear", "analytic", "mwp_cwp")]
    report = validate(bare, models, bare.kernels)
    assert report.score("linear", "d").unanswered == 0
    assert report.score("analytic", "d").unanswered == 6
    assert report.score("analytic", "d").errors is None
    assert report.score("mwp_cwp", "d").unanswered == 6
    assert [*report.refused] == ["analytic on d", "mwp_cwp on d"]
    first = validate(table, [make_model("linear")], table.kernels).score("linear", TABLE.devices[0])
    assert first.unanswered == 1
    assert first.errors is not None
    assert first.errors["rows"] == np.count_nonzero(TABLE.devices == TABLE.devices[0]) - 1


def test_refuses_what_cannot_be_held_out() -> None:
    """Too few groups, and models of one name, are refused."""
    two = TABLE.take(np.isin(TABLE.kernels.astype(str), sorted({*TABLE.kernels})[:2]))
    models: list[TimeModel] = [make_model("linear")]
    with pytest.raises(InputError, match="three groups"):
        validate(two, models, two.kernels)
    with pytest.raises(InputError, match="each model once"):
        validate(TABLE, models * 2, TABLE.kernels)
    with pytest.raises(InputError, match="no score"):
        validate(TABLE, [make_model("linear")], TABLE.kernels).score("oracle", "d")
