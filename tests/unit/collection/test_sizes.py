import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.collection.kernel_task import choose_sizes, find_anchor
from kernelcast.records.errors import DeviceLimitError
from kernelcast.training_data.applications import SizeRange

RANGES = st.builds(
    lambda least, factor, step, exponent: SizeRange(
        parameter="N",
        least=least * step,
        most=least * step * factor,
        multiple_of=step,
        exponent=exponent,
    ),
    st.integers(1, 20),
    st.integers(100, 100_000),
    st.sampled_from([1, 2, 64, 256]),
    st.sampled_from([0.5, 1.0, 2.0, 3.0]),
)


@given(RANGES, st.floats(1e-3, 10.0), st.integers(1, 12))
def test_sizes_are_allowed_and_each_once(size: SizeRange, seconds: float, count: int) -> None:
    """Sizes are values the kernel can take, ascending, and no more than asked for."""
    anchor = (size.fit(math.sqrt(size.least * size.most)), seconds)
    chosen = choose_sizes(size, anchor, (0.1, 0.5), count)
    assert all(size.can_be(value) for value in chosen)
    assert list(chosen) == sorted(set(chosen))
    assert 1 <= len(chosen) <= count


def test_times_spread_over_the_range() -> None:
    """Where sizes are fine enough, the first takes the shortest and the last the longest time; with
    powers of two the range is widened rather than rows lost."""
    size = SizeRange(parameter="N", least=16, most=2**24, exponent=2.0)
    chosen = choose_sizes(size, (4096, 0.2), (0.1, 0.5), 8)
    times = [0.2 * (value / 4096) ** 2 for value in chosen]
    assert len(chosen) == 8
    assert times[0] == pytest.approx(0.1, rel=0.01)
    assert times[-1] == pytest.approx(0.5, rel=0.01)
    steps = [later / earlier for earlier, later in itertools.pairwise(times)]
    assert max(steps) / min(steps) < 1.02
    powers = SizeRange(parameter="N", least=2, most=2**30, power_of_two=True)
    chosen = choose_sizes(powers, (2**20, 0.2), (0.1, 0.5), 8)
    assert (len(chosen) >= 6, 2**20 in chosen) == (True, True)


@given(RANGES, st.floats(1e-9, 1e-3), st.floats(0.7, 1.3))
def test_finds_a_size_of_about_the_goal(size: SizeRange, rate_s: float, bend: float) -> None:
    """The anchor is as near to the goal as the range allows, though growth differs a little."""

    def predict(value: int) -> float:
        return rate_s * value ** (size.exponent * bend)

    value, seconds = find_anchor(size, size.fit(size.least * 8), 0.2, predict)
    assert seconds == predict(value)
    is_at_an_end = value in {size.fit(size.least), size.fit(size.most)}
    neighbour = max(value - size.multiple_of, size.least), value + size.multiple_of
    is_coarse = predict(neighbour[1]) / predict(neighbour[0]) > 1.5
    assert is_at_an_end or is_coarse or 0.1 < seconds < 0.4


def test_what_the_device_refuses_is_a_bound() -> None:
    """Smaller sizes are tried; a device that refuses the smallest refuses the kernel."""
    size = SizeRange(parameter="N", least=16, most=2**20)

    def predict(value: int, most: int = 5000) -> float:
        if value > most:
            raise DeviceLimitError(f"{value} is too large")
        return value * 1e-6

    value, seconds = find_anchor(size, 2**20, 0.2, predict)
    assert 16 < value <= 5000
    assert seconds == value * 1e-6
    with pytest.raises(DeviceLimitError, match="too large"):
        find_anchor(size, 64, 0.2, lambda value: predict(value, 0))
