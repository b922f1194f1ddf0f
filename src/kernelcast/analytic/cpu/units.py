"""Units of loop performance, all converted here and nowhere else.

The models count core cycles per cache line of work (cy/CL): the iterations of the innermost loop
that produce one cache line of results.
"""

from dataclasses import dataclass
from enum import StrEnum

from kernelcast.records.errors import InputError


class Unit(StrEnum):
    """A unit in which the performance of a loop is told."""

    CYCLES_PER_LINE = "cy/CL"
    CYCLES_PER_ITERATION = "cy/It"
    ITERATIONS_PER_S = "It/s"
    FLOP_PER_S = "FLOP/s"
    SECONDS = "s"
    """Of all iterations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What conversions need to know of a loop and a machine.

    Raises
    ------
    InputError
        If the clock or the iterations per line are not above 0.
    """

    clock_hz: float
    """Core cycles per second."""
    iterations_per_line: float
    """Iterations of the innermost loop per cache line of work."""
    flops_per_iteration: float = 0.0
    """Floating-point operations; a fused multiply-add is two."""
    iterations: float = 0.0
    """Of the whole nest; 0 if it does not matter."""

    def __post_init__(self) -> None:
        if self.clock_hz <= 0 or self.iterations_per_line <= 0:
            msg = (
                f"clock {self.clock_hz} Hz, {self.iterations_per_line} iterations per cache "
                "line; expected both above 0"
            )
            raise InputError(msg)


def read_unit(text: str) -> Unit:
    """Find a unit by its name, however it is capitalised.

    Raises
    ------
    InputError
        If there is none of that name.

    Examples
    --------
    >>> read_unit("cy/cl")
    <Unit.CYCLES_PER_LINE: 'cy/CL'>
    """
    for unit in Unit:
        if unit.lower() == text.strip().lower():
            return unit
    msg = f"unit {text!r} is not known; those that are: {', '.join(Unit)}"
    raise InputError(msg)


def convert(cycles_per_line: float, unit: Unit, work: Work) -> float:
    """Tell cycles per cache line of work in another unit; `to_cycles_per_line` is the inverse.

    Raises
    ------
    InputError
        If the loop lacks what the unit needs: floating-point operations, a number of iterations,
        or any time at all for a rate.

    Examples
    --------
    >>> work = Work(clock_hz=3e9, iterations_per_line=8, flops_per_iteration=12)
    >>> convert(32.0, Unit.FLOP_PER_S, work)
    9000000000.0
    """
    cycles = cycles_per_line / work.iterations_per_line
    if unit is Unit.CYCLES_PER_LINE:
        return cycles_per_line
    if unit is Unit.CYCLES_PER_ITERATION:
        return cycles
    if unit is Unit.SECONDS:
        return cycles / work.clock_hz * _amount(work.iterations, "number of iterations", unit)
    rate = work.clock_hz / _amount(cycles, "time", unit)
    if unit is Unit.ITERATIONS_PER_S:
        return rate
    return rate * _amount(work.flops_per_iteration, "floating-point operations", unit)


def to_cycles_per_line(value: float, unit: Unit, work: Work) -> float:
    """Turn a value in any unit into cycles per cache line of work.

    Raises
    ------
    InputError
        As `convert`.

    Examples
    --------
    >>> work = Work(clock_hz=3e9, iterations_per_line=8, flops_per_iteration=12)
    >>> to_cycles_per_line(9e9, Unit.FLOP_PER_S, work)
    32.0
    """
    if unit is Unit.CYCLES_PER_LINE:
        return value
    if unit is Unit.CYCLES_PER_ITERATION:
        return value * work.iterations_per_line
    if unit is Unit.SECONDS:
        iterations = _amount(work.iterations, "number of iterations", unit)
        return value * work.clock_hz / iterations * work.iterations_per_line
    rate = _amount(value, "rate", unit)
    if unit is Unit.FLOP_PER_S:
        rate /= _amount(work.flops_per_iteration, "floating-point operations", unit)
    return work.clock_hz / rate * work.iterations_per_line


def _amount(value: float, name: str, unit: Unit) -> float:
    if value <= 0:
        msg = f"{unit} needs a {name} above 0, and this loop has {value:g}; choose another unit"
        raise InputError(msg)
    return value
