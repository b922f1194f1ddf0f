"""Corrections that are learned, and how far they are believed."""

import numpy as np
import pytest

from kernelcast.models import regression
from kernelcast.models.regression import LEARNERS, FittedRegression, calibrate, fit_regression
from kernelcast.models.versioned_files import CONVERTER
from kernelcast.records.errors import InputError
from kernelcast.records.training_table import Numbers

GROUPS = np.repeat(np.arange(40), 4)


def make_columns(seed: int = 0, rows: int = len(GROUPS)) -> dict[str, Numbers]:
    """Make columns of three feature groups."""
    draw = np.random.default_rng(seed)
    return {
        "static.loops_count": draw.lognormal(size=rows),
        "counters.lane_efficiency_ratio": draw.uniform(size=rows),
        "analytic.estimate_over_linear_ratio": draw.normal(size=rows),
    }


def make_targets(columns: dict[str, Numbers]) -> Numbers:
    """Make corrections that one column decides."""
    return 0.5 * (columns["counters.lane_efficiency_ratio"] - 0.5)


@pytest.mark.parametrize("learner", ["svr", "ridge", "gradient_boosting"])
def test_what_columns_tell_is_learned(learner: str) -> None:
    """A correction that comes true on unseen groups is believed, and predicts other launches."""
    columns, others = make_columns(), make_columns(1)
    fitted, _, unseen, _ = fit_regression(columns, make_targets(columns), GROUPS, learner)
    assert fitted.share > 0.5
    assert np.corrcoef(unseen, make_targets(columns))[0, 1] > 0.8
    found, _ = fitted.predict(others)
    assert np.abs(found - make_targets(others)).mean() < 0.05


@pytest.mark.parametrize("learner", sorted(LEARNERS))
def test_noise_is_not_believed(learner: str) -> None:
    """Corrections that tell nothing of unseen groups are shrunk to nothing."""
    targets = np.random.default_rng(3).normal(scale=0.05, size=len(GROUPS))
    fitted, _, unseen, _ = fit_regression(make_columns(), targets, GROUPS, learner, least_gain=2.0)
    assert fitted.share == 0.0
    assert not fitted.predict(make_columns(1))[0].any()
    assert np.abs(unseen).mean() < 0.02


@pytest.mark.parametrize("calibrated", [False, True])
def test_what_training_lacked_makes_no_launch_strange(calibrated: bool) -> None:
    """A device that was calibrated since has columns that no row of the training had."""
    columns = make_columns()
    absent = {"analytic.estimate_over_linear_ratio": np.full(len(GROUPS), np.nan)}
    trained = columns if calibrated else columns | absent
    fitted, *_ = fit_regression(trained, make_targets(columns), GROUPS)
    with_analytic, there = fitted.predict(columns)
    without, gone = fitted.predict(columns | absent)
    assert np.median(there) < 1.0
    assert np.median(gone) < 1.0
    if not calibrated:
        np.testing.assert_array_equal(with_analytic, without)
    assert np.abs(without - make_targets(columns)).mean() < 0.1


def test_far_launches_are_corrected_less() -> None:
    """Outside the domain a correction fades, and the distance says so."""
    columns = make_columns()
    fitted, *_ = fit_regression(columns, make_targets(columns), GROUPS, "ridge")
    far = {name: np.full(1, 1e6) for name in columns}
    (correction,), (distance,) = fitted.predict(far)
    assert distance > 2.0
    assert abs(correction) < 0.3


def test_landmarks_stand_for_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a number of rows the expansion is over landmarks, and nearly the same."""
    columns = make_columns()
    exact, *_ = fit_regression(columns, make_targets(columns), GROUPS)
    monkeypatch.setattr(regression, "EXACT_ROWS", 100)
    monkeypatch.setattr(regression, "LANDMARKS", 60)
    some, *_ = fit_regression(columns, make_targets(columns), GROUPS)
    assert some.points.shape[0] == 60
    assert np.abs(some.predict(columns)[0] - exact.predict(columns)[0]).mean() < 0.05


@pytest.mark.parametrize("learner", sorted(LEARNERS))
def test_numbers_repeat_and_have_to_fit_together(learner: str) -> None:
    """The same rows give the same numbers; a file in which they disagree is refused, and so are
    rows without a column to learn from."""
    columns = make_columns()
    held, again = (
        CONVERTER.unstructure(fit_regression(columns, make_targets(columns), GROUPS, learner)[0])
        for _ in range(2)
    )
    assert held == again
    for wrong in ({"fill": [0.0]}, {"nodes": [[0, 0.0, 0, 0, 1.0]], "roots": [0.0]}):
        with pytest.raises(ValueError, match="disagree"):
            CONVERTER.structure({**held, **wrong}, FittedRegression)
    with pytest.raises(InputError, match="no columns"):
        fit_regression({"static.a_count": np.full(160, np.nan)}, np.zeros(160), GROUPS, learner)


def test_intervals_hold_what_they_promise() -> None:
    """Residuals of unseen groups lie inside; signs of difficulty make them wide where it counts."""
    draw = np.random.default_rng(0)
    hard = draw.integers(0, 2, 4000).astype(np.float64)
    residuals = draw.normal(size=4000) * np.where(hard > 0, 0.4, 0.1)
    signs, near = hard[:, None], np.zeros(4000)
    found = calibrate(residuals[:2000], signs[:2000], near[:2000], np.arange(2000) // 4)
    width = found.half_width(signs[2000:], near[2000:], 0.9)
    inside = np.abs(residuals[2000:]) <= width
    assert inside.mean() == pytest.approx(0.9, abs=0.03)
    assert inside[hard[2000:] > 0].mean() == pytest.approx(0.9, abs=0.05)
    assert width[hard[2000:] > 0].min() > 2.5 * width[hard[2000:] == 0].max()
    assert len(found.thin().scores) <= 200
    alone = found.half_width_alone((1.0,), 0.9, 3.0)
    assert alone == pytest.approx(float(found.half_width(np.ones((1, 1)), np.full(1, 3.0), 0.9)[0]))
