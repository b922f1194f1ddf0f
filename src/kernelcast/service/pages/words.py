"""Numbers, times and days as people read them; filters of the templates."""

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

_TIME_UNITS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "\N{MICRO SIGN}s"), (1e-9, "ns"))
_PREFIXES: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SIZES: Final = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
NOTHING: Final = "\N{EN DASH}"
"""Stands where there is no number."""


def write_seconds(seconds: float | None) -> str:
    """Write a time with three digits and the unit that suits it.

    Examples
    --------
    >>> write_seconds(0.0123456), write_seconds(153.2)
    ('12.3 ms', '153 s')
    """
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    scale, unit = next((one for one in _TIME_UNITS if seconds >= one[0]), _TIME_UNITS[-1])
    return f"{write_digits(seconds / scale)} {unit}"


def write_share(share: float | None) -> str:
    """Write a share in percent.

    Examples
    --------
    >>> write_share(0.0194)
    '1.9 %'
    """
    return NOTHING if share is None else f"{share * 100:.1f} %"


def write_signed_share(share: float | None) -> str:
    """Write a share in percent, with its sign.

    Examples
    --------
    >>> write_signed_share(0.5)
    '+50.0 %'
    """
    return NOTHING if share is None else f"{share * 100:+.1f} %".replace("-", "\N{MINUS SIGN}")


def write_bytes(count: float | None) -> str:
    """Write an amount of memory.

    Examples
    --------
    >>> write_bytes(32768), write_bytes(100), write_bytes(1.2e6)
    ('32 KiB', '100 B', '1.14 MiB')
    """
    if count is None:
        return NOTHING
    scale, unit = next((one for one in _SIZES if count >= one[0]), (1, "B"))
    return f"{count / scale:.3g} {unit}" if count / scale < 1000 else f"{count / scale:.0f} {unit}"


def write_rate(value: float | None, unit: str) -> str:
    """Write a rate with the prefix that suits it.

    Examples
    --------
    >>> write_rate(12.34e9, "B/s"), write_rate(100.0, "op/s")
    ('12.3 GB/s', '100 op/s')
    """
    if value is None:
        return NOTHING
    scale, prefix = next((one for one in _PREFIXES if value >= one[0]), _PREFIXES[-1])
    return f"{write_digits(value / scale)} {prefix}{unit}"


def write_digits(value: float | None) -> str:
    """Write a number with three digits, large ones whole.

    Examples
    --------
    >>> write_digits(1.23456), write_digits(123456.0), write_digits(0.01234), write_digits(0.0)
    ('1.23', '123,456', '0.0123', '0')
    """
    if value is None:
        return NOTHING
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 99.95:
        return f"{value:,.0f}"
    if size >= 0.9995:
        return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"
    return f"{value:.3g}"


def write_count(value: float | None) -> str:
    """Write a whole number with its thousands apart.

    Examples
    --------
    >>> write_count(16777216)
    '16,777,216'
    """
    return NOTHING if value is None else f"{value:,.0f}"


def write_moment(moment: datetime | None) -> str:
    """Write a day and a time of UTC.

    Examples
    --------
    >>> from datetime import UTC
    >>> write_moment(datetime(2026, 3, 1, 14, 5, 9, tzinfo=UTC))
    '2026-03-01 14:05:09 UTC'
    """
    return NOTHING if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S UTC")


FILTERS: Final[dict[str, Callable[..., Any]]] = {
    "seconds": write_seconds,
    "share": write_share,
    "signed_share": write_signed_share,
    "memory": write_bytes,
    "rate": write_rate,
    "digits": write_digits,
    "count": write_count,
    "moment": write_moment,
}
"""Filters of the templates by their names."""
