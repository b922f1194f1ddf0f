import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.models.conformal import calibrate, restore_calibration
from kernelcast.models.gate import CLOSED, OPEN, Evidence, Gate, choose

FINITE = st.floats(-5, 5)


def make_evidence(predicted: np.ndarray, targets: np.ndarray, rows: int = 5) -> Evidence:
    """Make evidence of groups of some rows each."""
    groups = np.repeat(np.arange(len(targets) // rows), rows)
    return Evidence(
        corrections=np.atleast_2d(predicted), targets=targets,
        domain_distance=np.full(len(targets), 0.5), groups=groups,
    )  # fmt: skip


@given(FINITE, st.floats(0, 10), st.floats(0, 1), st.floats(0, 0.2), st.floats(0, 3))
def test_gate_only_shrinks(
    correction: float, domain_distance: float, share: float, threshold: float, fade: float
) -> None:
    """A gated correction has the same sign and is no larger."""
    gate = Gate(share=share, threshold=threshold, fade=fade)
    (found,) = gate.apply(np.array([correction]), np.array([domain_distance]))
    assert abs(found) <= abs(correction)
    assert found * correction >= 0


def test_gate_opens_for_corrections_that_are_right() -> None:
    """Corrections that come true on unseen groups are believed."""
    rng = np.random.default_rng(0)
    targets = np.repeat(rng.normal(scale=0.3, size=40), 5)
    choice = choose(make_evidence(targets + 0.01 * rng.normal(size=200), targets), is_gated=True)
    assert choice.gate.share == 1
    assert choice.error < 0.02


def test_gate_closes_on_noise() -> None:
    """Corrections that tell nothing of unseen groups are not believed at all."""
    rng = np.random.default_rng(1)
    targets = np.repeat(rng.normal(scale=0.03, size=40), 5)
    choice = choose(make_evidence(rng.normal(scale=0.05, size=200), targets), is_gated=True)
    assert choice.gate == CLOSED


def test_gate_protects_well_predicted_groups() -> None:
    """A correction that helps on average and harms those within 5 % is shrunk until it does not."""
    rng = np.random.default_rng(2)
    targets = np.repeat(np.concatenate([np.zeros(30), rng.normal(scale=0.4, size=15)]), 5)
    noisy = targets + np.repeat(rng.normal(scale=0.015, size=45), 5)
    evidence = make_evidence(noisy, targets)
    choice = choose(evidence, is_gated=True)
    shrunk = choice.gate.apply(noisy, evidence.domain_distance)
    assert choice.gate.threshold > 0
    assert np.abs(np.expm1(shrunk[:150])).mean() <= 0.0005
    assert np.abs(np.expm1(shrunk - targets)).mean() < np.abs(np.expm1(-targets)).mean()


def test_gate_opens_where_the_reference_only_hits_by_chance() -> None:
    """Two groups that a reference happens to hit do not keep forty from being helped."""
    rng = np.random.default_rng(3)
    targets = np.repeat(np.concatenate([[0.01, -0.02], rng.normal(-0.6, 0.2, size=40)]), 5)
    predicted = np.full(len(targets), -0.2)
    predicted[10:] = -0.6
    choice = choose(make_evidence(predicted, targets), is_gated=True)
    assert choice.gate.share > 0.5
    assert choice.error < 0.3


def test_ungated_choice_takes_the_best_setting() -> None:
    """Without a gate the best setting is believed everywhere."""
    targets = np.repeat(np.linspace(-0.2, 0.2, 20), 5)
    evidence = make_evidence(np.vstack([targets * 0.2, targets * 0.9, -targets]), targets)
    choice = choose(evidence, is_gated=False)
    assert (choice.setting, choice.gate) == (1, OPEN)


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_coverage_asked_is_coverage_obtained(coverage: float) -> None:
    """Over many draws of groups, unseen groups lie inside as often as promised."""
    held = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        groups = np.repeat(np.arange(60), 4)
        hardness = np.repeat(rng.normal(scale=0.7, size=60), 4)
        signs = np.column_stack([hardness, np.full(240, np.nan)])
        residuals = 0.05 * np.exp(hardness) * rng.normal(size=240)
        known = groups < 30
        near = np.full(240, 0.5)
        found = calibrate(residuals[known], signs[known], near[known], groups[known])
        width = found.half_width(signs[~known], near[~known], coverage)
        held.append(np.mean(np.abs(residuals[~known]) <= width))
    assert np.mean(held) == pytest.approx(coverage, abs=0.035)


def test_hard_launches_get_wider_intervals() -> None:
    """The difficulty follows the sign that residuals follow, and the distance."""
    rng = np.random.default_rng(0)
    signs = rng.normal(size=(400, 1))
    groups = np.repeat(np.arange(40), 10)
    residuals = 0.05 * np.exp(signs[:, 0]) * rng.normal(size=400)
    found = calibrate(residuals, signs, np.zeros(400), groups)
    easy, hard = found.widen(np.array([[-1.0], [1.0]]), np.zeros(2))
    assert hard > 2 * easy
    inside, outside = found.widen(np.zeros((2, 1)), np.array([0.9, 3.0]))
    assert outside == pytest.approx(3 * inside)


def test_signs_that_mislead_are_left_out() -> None:
    """A sign never makes intervals narrower where it grows."""
    rng = np.random.default_rng(3)
    signs = rng.normal(size=(300, 2))
    residuals = 0.05 * np.exp(-signs[:, 0]) * rng.normal(size=300)
    found = calibrate(residuals, signs, np.zeros(300), np.repeat(np.arange(30), 10))
    assert found.slopes[0] == 0
    assert (found.slopes >= 0).all()


def test_calibration_survives_its_state() -> None:
    """A calibration comes back as it was."""
    rng = np.random.default_rng(4)
    signs = rng.normal(size=(50, 2))
    found = calibrate(rng.normal(size=50), signs, np.zeros(50), np.repeat(np.arange(10), 5))
    again = restore_calibration(found.state())
    expected = found.half_width(signs, np.zeros(50), 0.8)
    np.testing.assert_array_equal(again.half_width(signs, np.zeros(50), 0.8), expected)


def test_one_launch_gets_the_interval_of_many() -> None:
    """Asked alone, with plain numbers, a launch has the same interval; far from usual ones too."""
    rng = np.random.default_rng(5)
    signs = rng.normal(size=(60, 2)) * np.array([1.0, 30.0])
    found = calibrate(rng.normal(size=60), signs, np.zeros(60), np.repeat(np.arange(12), 5))
    for coverage in (0.5, 0.9, 0.999):
        together = found.half_width(signs, np.zeros(60), coverage)
        alone = [found.half_width_alone(one, coverage) for one in signs.tolist()]
        np.testing.assert_allclose(alone, together, rtol=1e-12)
