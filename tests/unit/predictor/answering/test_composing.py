import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.models.evidence.piece import Kind, Piece
from kernelcast.predictor.answering.composing import list_contradictions, widen_outside
from kernelcast.records.estimates import Interval

OWN = Interval(seconds=1.0, low=0.81, high=1.21, coverage=0.9)


def interval(seconds: float, factor: float) -> Interval:
    """Give an interval around a time."""
    return Interval(seconds=seconds, low=seconds / factor, high=seconds * factor, coverage=0.9)


@given(seconds=st.floats(1e-3, 1e3), factor=st.floats(1.0, 1e3))
def test_never_narrower_and_never_out_of_bounds(seconds: float, factor: float) -> None:
    """The answer stays, ends move outward only, and by half their distance at most."""
    found = widen_outside(OWN, interval(seconds, factor))
    assert found.seconds == OWN.seconds
    assert 0.9**3 - 1e-12 <= found.low <= OWN.low
    assert OWN.high <= found.high <= 1.1**3 + 1e-12


def test_holds_a_model_that_is_near() -> None:
    """An interval that sticks out a little is held whole; one inside changes nothing."""
    near = interval(1.1, 1.15)
    assert widen_outside(OWN, near).high == pytest.approx(near.high)
    assert widen_outside(OWN, interval(1.0, 1.05)) == OWN


def test_what_contradicts_each_other_is_named() -> None:
    """Samples that are far from an observation and from other sizes say so; near ones do not."""

    def tell(kind: Kind, seconds: float, deviation: float = 0.1) -> Piece:
        return Piece(kind=kind, log_seconds=math.log(seconds), variance=deviation**2)

    near = [tell(Kind.OBSERVED, 1.0), tell(Kind.SAMPLES, 1.1), tell(Kind.SAMPLES, 1.3)]
    assert list_contradictions(near) == []
    assert list_contradictions([*near, tell(Kind.ANALYTIC, 9.0)]) == []
    assert list_contradictions([tell(Kind.OBSERVED, 1.0), tell(Kind.SAMPLES, 3.0, 1.0)]) == []
    assert list_contradictions([*near, tell(Kind.OTHER_SIZES, 3.0)]) == [
        "observations of the launch say 1.00 s, but other sizes of the kernel say 3.00 s",
        "its samples say 1.20 s, but other sizes of the kernel say 3.00 s",
    ]
