"""Times as people read them: three digits and the unit that suits them."""

import math
from typing import Final

NOTHING: Final = "-"
_TIMES: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def unit_of_time(seconds: float) -> tuple[float, str]:
    """Choose the scale and the name of the unit in which a time is best read."""
    # What rounds to the next unit is read in it: 1000 us is 1 ms.
    return next((one for one in _TIMES if seconds >= 0.9995 * one[0]), _TIMES[-1])


def format_seconds(seconds: float | None) -> str:
    """Write a time with three digits and the unit that suits it."""
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    scale, unit = unit_of_time(abs(seconds))
    return f"{format_digits(seconds / scale)} {unit}"


def format_range(low_s: float, high_s: float) -> str:
    """Write an interval of times in one unit."""
    scale, unit = unit_of_time(high_s)
    return f"{format_digits(low_s / scale)} - {format_digits(high_s / scale)} {unit}"


def format_digits(value: float | None) -> str:
    """Write a number with three digits, large ones whole."""
    if value is None:
        return NOTHING
    size = abs(value)
    if size == 0:
        return "0"
    if size >= 99.95:
        return f"{value:,.0f}"
    return (
        f"{value:.1f}" if size >= 9.995 else f"{value:.2f}" if size >= 0.9995 else f"{value:#.3g}"
    )
