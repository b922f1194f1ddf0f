import math

import pytest

from kernelcast.models.evidence.fusion import Kind, fuse
from kernelcast.models.evidence.model import (
    ANY,
    BUILT_IN,
    EvidenceModel,
    find_half_width,
    know_analytic,
    load_shipped,
)
from kernelcast.records.estimates import Interval


def surround(model: EvidenceModel, coverage: float = 0.9, doubt: float = 0.0) -> Interval:
    """Put an interval around an analytic time of a second."""
    piece = model.weigh_plain(Kind.ANALYTIC, 0.0, doubt)
    assert piece is not None
    return model.surround(fuse([piece]), coverage)


@pytest.mark.parametrize("runtime", ["intel", "pocl", "rusticl", "somebody's"])
def test_what_is_shipped_surrounds_analytic_times(runtime: str) -> None:
    """Each runtime has its own intervals, and others those of all; wider coverage is wider."""
    model = know_analytic(BUILT_IN, runtime)
    shipped = load_shipped()
    errors = shipped.get(runtime, shipped[ANY])
    for coverage in (0.5, 0.9, 0.99):
        width = math.log(surround(model, coverage).high)
        assert width == pytest.approx(find_half_width(errors, coverage))
    assert surround(model, 0.5).high < surround(model, 0.9).high < surround(model, 0.99).high
    assert know_analytic(BUILT_IN, runtime) is model


def test_a_doubted_time_has_so_much_wider_an_interval() -> None:
    """What loops leave open that data end is added to the usual width."""
    model = know_analytic(BUILT_IN, "pocl")
    usual, wide = surround(model), surround(model, doubt=3.0)
    assert wide.seconds == usual.seconds
    assert math.log(wide.high / usual.high) == pytest.approx(3.0, rel=0.02)
    assert math.log(usual.low / wide.low) == pytest.approx(3.0, rel=0.02)
