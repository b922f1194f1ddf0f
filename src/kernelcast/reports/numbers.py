"""Numbers as people read them: times, shares, amounts of memory, counts."""

import math
from typing import Final

NOTHING: Final = "-"
"""Stands where there is no number."""
_TIMES: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_SIZES: Final = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_LARGE: Final = ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))
"""From which count on, what it is divided by, and the letter."""


def unit_of_time(seconds: float) -> tuple[float, str]:
    """Give the scale and the name of the unit in which a time is best read.

    Examples
    --------
    >>> unit_of_time(0.002), unit_of_time(0.9999e-6)
    ((0.001, 'ms'), (1e-06, 'us'))
    """
    # What rounds to the next unit is read in it: 1000 us is 1 ms.
    return next((one for one in _TIMES if seconds >= 0.9995 * one[0]), _TIMES[-1])


def format_seconds(seconds: float | None) -> str:
    """Write a time with three digits and the unit that suits it.

    Examples
    --------
    >>> format_seconds(0.0123456), format_seconds(153.2), format_seconds(2e-6), format_seconds(None)
    ('12.3 ms', '153 s', '2.00 us', '-')
    """
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    scale, unit = unit_of_time(abs(seconds))
    return f"{format_digits(seconds / scale)} {unit}"


def format_range(low_s: float, high_s: float) -> str:
    """Write an interval of times in one unit.

    Examples
    --------
    >>> format_range(0.98, 1.1234)
    '0.980 - 1.12 s'
    """
    scale, unit = unit_of_time(high_s)
    return f"{format_digits(low_s / scale)} - {format_digits(high_s / scale)} {unit}"


def format_duration(seconds: float) -> str:
    """Write a time that people wait.

    Examples
    --------
    >>> format_duration(42.3), format_duration(125), format_duration(3725)
    ('42 s', '2 min', '1 h 2 min')
    """
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes, hours = whole // 60 % 60, whole // 3600
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def format_share(share: float | None, *, signed: bool = False) -> str:
    """Write a share in percent.

    Examples
    --------
    >>> format_share(0.0194), format_share(0.5, signed=True)
    ('1.9 %', '+50.0 %')
    """
    return NOTHING if share is None else f"{share * 100:{'+' if signed else ''}.1f} %"


def format_error(share: float | None) -> str:
    """Write a model's error with two decimals, as the paper does.

    Examples
    --------
    >>> format_error(0.0476), format_error(None)
    ('4.76 %', '-')
    """
    return NOTHING if share is None else f"{share * 100:.2f} %"


def format_points(share: float | None) -> str:
    """Write a difference of errors in percentage points, which nobody takes for a relative change.

    Examples
    --------
    >>> format_points(0.0497)
    '+4.97'
    """
    return NOTHING if share is None else f"{share * 100:+.2f}"


def format_class(low: float, high: float | None) -> str:
    """Name an error class of the paper's Table 3.

    Examples
    --------
    >>> format_class(0.0, 0.05), format_class(0.1, None)
    ('0 - 5 %', 'over 10 %')
    """
    return f"over {low * 100:.0f} %" if high is None else f"{low * 100:.0f} - {high * 100:.0f} %"


def format_bytes(count: float | None) -> str:
    """Write an amount of memory with three digits.

    Examples
    --------
    >>> format_bytes(32768), format_bytes(100), format_bytes(8667136)
    ('32 KiB', '100 B', '8.27 MiB')
    """
    if count is None:
        return NOTHING
    scale, unit = next((one for one in _SIZES if count >= one[0]), _SIZES[-1])
    return f"{count / scale:.3g} {unit}" if count / scale < 1000 else f"{count / scale:.0f} {unit}"


def format_digits(value: float | None) -> str:
    """Write a number with three digits, large ones whole.

    Examples
    --------
    >>> format_digits(1.23456), format_digits(123456.0), format_digits(0.5), format_digits(0.0)
    ('1.23', '123,456', '0.500', '0')
    """
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


def format_count(value: float) -> str:
    """Write a count: exactly up to 9,999, else with three digits.

    Examples
    --------
    >>> [format_count(one) for one in (0, 1, 92.0, 0.98765, 1472, 23552, 1.5e6, 0.0004)]
    ['0', '1', '92', '0.988', '1,472', '23.6k', '1.50M', '0.0004']
    """
    for least, scale, unit in _LARGE:
        if abs(value) >= least:
            return f"{format_digits(value / scale)}{unit}"
    if value == int(value):
        return f"{int(value):,}"
    return format_digits(value) if abs(value) >= 0.01 else f"{value:.2g}"


def format_whole(value: float | None) -> str:
    """Write a whole number with its thousands apart.

    Examples
    --------
    >>> format_whole(16777216)
    '16,777,216'
    """
    return NOTHING if value is None else f"{value:,.0f}"


def format_value(value: float | None) -> str:
    """Write a feature: whole numbers exactly, others with six digits.

    Examples
    --------
    >>> format_value(541696.0), format_value(2.3145365), format_value(None)
    ('541,696', '2.31454', '-')
    """
    if value is None:
        return NOTHING
    return format_whole(value) if value == int(value) else f"{value:,.6g}"
