import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.analytic.cpu.units import Unit, Work, convert, read_unit, to_cycles_per_line
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
    assert convert(32.0, unit, WORK) == pytest.approx(value)


@given(
    st.floats(1e-3, 1e9),
    st.sampled_from(list(Unit)),
    st.floats(1e6, 1e10),
    st.floats(0.1, 64),
    st.floats(1, 1e12),
)
def test_the_inverse_gives_the_cycles_back(
    cycles: float, unit: Unit, clock_hz: float, per_line: float, iterations: float
) -> None:
    """Returns from any unit."""
    work = Work(
        clock_hz=clock_hz, iterations_per_line=per_line, flops_per_iteration=3,
        iterations=iterations,
    )  # fmt: skip
    assert to_cycles_per_line(convert(cycles, unit, work), unit, work) == pytest.approx(cycles)


def test_refuses_what_a_loop_cannot_be_told_in() -> None:
    """Names what is missing."""
    copy = Work(clock_hz=3e9, iterations_per_line=8)
    with pytest.raises(InputError, match="floating-point operations above 0"):
        convert(32.0, Unit.FLOP_PER_S, copy)
    with pytest.raises(InputError, match="number of iterations"):
        convert(32.0, Unit.SECONDS, copy)
    with pytest.raises(InputError, match="It/s needs a time above 0"):
        convert(0.0, Unit.ITERATIONS_PER_S, copy)
    with pytest.raises(InputError, match="expected both above 0"):
        Work(clock_hz=0, iterations_per_line=8)


def test_finds_units_by_name() -> None:
    """Reads them as the command line gives them."""
    assert read_unit(" flop/S ") is Unit.FLOP_PER_S
    with pytest.raises(InputError, match="cy/CL, cy/It, It/s, FLOP/s, s"):
        read_unit("furlongs")
