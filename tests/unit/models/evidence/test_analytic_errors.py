import math

import numpy as np
import pytest

from kernelcast.models.evidence.fusion import Kind, fuse
from kernelcast.models.evidence.model import BUILT_IN, EvidenceModel
from kernelcast.models.evidence.stored import (
    ANY,
    calibrate_errors,
    errors_from_json,
    errors_to_json,
    find_half_width,
    know_analytic,
    load_shipped,
)
from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Interval


def surround(model: EvidenceModel, coverage: float = 0.9, doubt: float = 0.0) -> Interval:
    """Put an interval around an analytic time of a second."""
    piece = model.weigh_plain(Kind.ANALYTIC, 0.0, doubt)
    assert piece is not None
    return model.surround(fuse([piece]), coverage)


def test_an_interval_holds_what_it_promises_of_unseen_kernels() -> None:
    """Errors of other kernels lie inside as often as the coverage says."""
    errors = np.random.default_rng(0).normal(0.0, 0.7, 4000)
    known = calibrate_errors(errors[:2000], [str(one % 500) for one in range(2000)])
    for coverage in (0.5, 0.8, 0.9, 0.95):
        held = np.abs(errors[2000:]) <= find_half_width(known, coverage)
        assert held.mean() == pytest.approx(coverage, abs=0.03)


def test_kernels_weigh_alike() -> None:
    """One of which many launches are known decides no more than another one."""
    errors = np.array([*np.linspace(0.1, 0.9, 9), *[5.0] * 1000])
    known = calibrate_errors(errors, [*map(str, range(9)), *["often"] * 1000])
    assert find_half_width(known, 0.8) == pytest.approx(0.9)


def test_one_kernel_tells_nothing_of_others() -> None:
    """Refuses launches of which none could be held out."""
    with pytest.raises(InputError, match="at least two"):
        calibrate_errors(np.zeros(3), ["k"] * 3)


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


def test_errors_survive_a_file() -> None:
    """Gives the same intervals once they were written and read."""
    shipped = load_shipped()
    again = errors_from_json(errors_to_json(shipped))
    assert {*again} == {"intel", "pocl", "rusticl", ANY}
    for name, one in shipped.items():
        assert find_half_width(again[name], 0.9) == pytest.approx(find_half_width(one, 0.9))
