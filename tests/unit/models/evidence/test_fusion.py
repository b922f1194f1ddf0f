"""Pieces of evidence put together."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.models.evidence.fusion import Kind, Piece, fuse
from kernelcast.records.errors import InputError

BASES = {"": 0.0, "sampler": 0.02, "sizes": 0.01}
MOMENTS = {"": 0.0, "first": 0.01, "second": 0.03}


def tell(log_seconds: float, variance: float = 0.01, kind: Kind = Kind.SAMPLES) -> Piece:
    """Make a piece that shares nothing."""
    return Piece(kind=kind, log_seconds=log_seconds, variance=variance)


def sample(
    log_seconds: float, moment: str, variance: float, basis: float, of_moment: float = 0.0
) -> Piece:
    """Make samples of a moment: their variance, and what they share with others of both."""
    return Piece(
        kind=Kind.SAMPLES, log_seconds=log_seconds, variance=variance, moment=moment,
        moment_variance=of_moment, basis="sampler", basis_variance=basis,
    )  # fmt: skip


@st.composite
def agreeing_pieces(draw: st.DrawFn) -> list[Piece]:
    """Make pieces within a standard deviation of each other, of bases and moments."""
    found = []
    for _ in range(draw(st.integers(1, 8))):
        basis, moment = draw(st.sampled_from([*BASES])), draw(st.sampled_from([*MOMENTS]))
        shared = BASES[basis] + MOMENTS[moment]
        found.append(
            Piece(
                kind=Kind.OTHER_ESTIMATES,  # of samples, the slower ones count less
                log_seconds=draw(st.floats(-0.2, 0.2)),
                variance=shared + draw(st.floats(0.2, 2.0)),
                basis=basis,
                basis_variance=BASES[basis],
                moment=moment,
                moment_variance=MOMENTS[moment],
            )
        )
    return found


@given(pieces=agreeing_pieces())
def test_weighs_as_generalised_least_squares_does(pieces: list[Piece]) -> None:
    """Gives what the whole covariance matrix gives, where pieces agree."""
    covariance = np.diag([one.variance for one in pieces])
    for i, one in enumerate(pieces):
        for j, other in enumerate(pieces):
            if i != j and one.basis and one.basis == other.basis:
                covariance[i, j] = one.basis_variance
                if one.moment and one.moment == other.moment:
                    covariance[i, j] += one.moment_variance
    weights = np.linalg.solve(covariance, np.ones(len(pieces)))
    fused = fuse(pieces)
    assert fused.variance == pytest.approx(1 / weights.sum())
    assert fused.weights == pytest.approx(weights / weights.sum(), abs=1e-9)
    told = [one.log_seconds for one in pieces]
    assert fused.log_seconds == pytest.approx(weights @ told / weights.sum(), abs=1e-9)


@pytest.mark.parametrize("factor", [1e-6, 1e-3, 0.1, 10.0, 1e3, 1e6])
def test_a_poisoned_observation_loses_its_weight(factor: float) -> None:
    """Stays with samples and sizes, however far an observation is off, and however sure it is."""
    honest = [tell(0.0), tell(0.05), tell(-0.03, 0.005, Kind.OTHER_SIZES)]
    poisoned = [*honest, tell(math.log(factor), 0.001, Kind.OBSERVED)]
    assert fuse(poisoned).log_seconds == pytest.approx(fuse(honest).log_seconds, abs=0.02)
    assert fuse(poisoned).weights[-1] < 0.01


def test_samples_that_contradict_each_other_are_closer_than_a_million() -> None:
    """Takes one of two sharp moments that differ by half rather than what is off by a million."""
    samples = [sample(0.0, "first", 1e-4, 3e-5), sample(0.5, "second", 1e-4, 3e-5)]
    poisoned = [*samples, tell(math.log(1e6), 4e-4, Kind.OBSERVED)]
    assert -0.1 < fuse(poisoned).log_seconds < 0.6


@pytest.mark.parametrize("kind", [Kind.OTHER_SIZES, Kind.OTHER_ESTIMATES])
@pytest.mark.parametrize("factor", [1e-4, 1e4])
def test_samples_of_a_launch_are_believed_before_other_sizes(kind: Kind, factor: float) -> None:
    """Stays with what ran of this launch where other sizes say something else altogether."""
    pieces = [tell(math.log(factor), 0.012, kind), tell(0.0, 0.012)]
    assert fuse(pieces).log_seconds == pytest.approx(0.0, abs=0.2)
    assert fuse(pieces[::-1]).log_seconds == pytest.approx(0.0, abs=0.2)


def test_models_do_not_outvote_what_ran() -> None:
    """Stays with samples where other sizes' samples and the analytic model agree on less."""
    guesses = [tell(-1.8, 0.003, Kind.OTHER_ESTIMATES), tell(-3.6, 0.45, Kind.ANALYTIC)]
    assert fuse([*guesses, tell(0.0, 0.002)]).log_seconds == pytest.approx(0.0, abs=0.05)


@pytest.mark.parametrize(("repeats", "log_seconds"), [(1, 0.0), (4, math.log(2.0))])
def test_what_ran_again_and_again_outvotes_samples(repeats: int, log_seconds: float) -> None:
    """Follows two moments of samples against one observation, and four that agree against them."""
    samples = [sample(0.0, moment, 0.005, 0.0015, 0.0015) for moment in ("first", "second")]
    observed = Piece(kind=Kind.OBSERVED, log_seconds=math.log(2.0), variance=0.005, repeats=repeats)
    assert fuse([*samples, observed]).log_seconds == pytest.approx(log_seconds, abs=0.12)


def test_a_disturbed_moment_loses_its_weight_as_a_whole() -> None:
    """Believes one undisturbed moment and sizes rather than three samples of a disturbed one."""
    disturbed = [sample(1.0 + 0.01 * place, "bad", 0.01, 0.0005, 0.009) for place in range(3)]
    calm = [sample(0.0, "good", 0.01, 0.0005, 0.009), tell(0.02, 0.004, Kind.OTHER_SIZES)]
    assert abs(fuse([*disturbed, *calm]).log_seconds) < 0.05


def test_the_slower_of_two_moments_counts_half() -> None:
    """Leans to the faster one: machines lengthen launches, and never shorten them."""
    fused = fuse([tell(0.0), tell(0.09)])
    assert fused.weights == pytest.approx((2 / 3, 1 / 3))
    assert fused.log_seconds == pytest.approx(0.03)
    observed = [tell(0.0, kind=Kind.OBSERVED), tell(0.09, kind=Kind.OBSERVED)]
    assert fuse(observed).log_seconds == pytest.approx(0.045)


@pytest.mark.parametrize(
    ("log_seconds", "variance", "shared"),
    [(math.nan, 0.1, 0.0), (0.0, 0.0, 0.0), (0.0, 0.1, 0.1), (0.0, math.inf, 0.0), (0.0, 0.1, -1)],
)
def test_a_piece_refuses_numbers_that_mean_nothing(
    log_seconds: float, variance: float, shared: float
) -> None:
    """Refuses what is not finite, and variances that sharing uses up."""
    with pytest.raises(InputError, match="expected finite numbers"):
        Piece(kind=Kind.SAMPLES, log_seconds=log_seconds, variance=variance, basis_variance=shared)


def test_rounding_makes_no_moment_the_slower_one() -> None:
    """Gives equal times the same variance, whatever their last digits."""
    one = sample(-8.5, "1", 0.02, 0.006)
    for more in np.random.default_rng(0).uniform(0.0, 1e-9, 200).tolist():
        other = replace(one, moment="2", variance=0.02 + more)
        assert fuse([one, other]).variance == pytest.approx(0.013, abs=1e-6)
