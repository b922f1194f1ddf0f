import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.predictor.answering.composing import widen_outside
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
