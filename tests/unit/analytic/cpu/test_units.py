import pytest

from kernelcast.analytic.cpu.ecm import Unit, Work
from kernelcast.records.errors import InputError

WORK = Work(clock_hz=3e9, iterations_per_line=8, flops_per_iteration=12, iterations=1e6)


@pytest.mark.parametrize(
    ("unit", "value"),
    [
        (Unit.CYCLES_PER_LINE, 32.0),
        (Unit.CYCLES_PER_ITERATION, 4.0),
        (Unit.ITERATIONS_PER_S, 0.75e9),
        (Unit.FLOP_PER_S, 9e9),
        (Unit.SECONDS, 4e6 / 3e9),
    ],
)
def test_tells_cycles_in_every_unit(unit: Unit, value: float) -> None:
    """Converts 32 cycles for a line of eight iterations."""
    assert WORK.tell(32.0, unit) == pytest.approx(value)


def test_a_measured_time_is_told_in_cycles() -> None:
    """Is the inverse of seconds."""
    assert WORK.cycles(WORK.tell(32.0, Unit.SECONDS)) == pytest.approx(32.0)


def test_refuses_what_a_loop_cannot_be_told_in() -> None:
    """Names what is missing."""
    copy = Work(clock_hz=3e9, iterations_per_line=8)
    with pytest.raises(InputError, match="floating-point operations above 0"):
        copy.tell(32.0, Unit.FLOP_PER_S)
    with pytest.raises(InputError, match="number of iterations"):
        copy.tell(32.0, Unit.SECONDS)
    with pytest.raises(InputError, match="It/s needs a time above 0"):
        copy.tell(0.0, Unit.ITERATIONS_PER_S)
