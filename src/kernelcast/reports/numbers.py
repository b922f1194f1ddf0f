"""Numbers as people read them: times, shares, amounts of memory, counts."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kernelcast.records.estimates import NOTHING as NOTHING
from kernelcast.records.estimates import format_digits as format_digits
from kernelcast.records.estimates import format_range as format_range
from kernelcast.records.estimates import format_seconds as format_seconds

_SIZES: Final = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_LARGE: Final = ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))
"""From which count on, what it is divided by, and the letter."""


def typeset(text: str) -> str:
    """Write a number with the characters that a terminal may lack."""
    return text.replace(" us", " \N{MICRO SIGN}s").replace("-", "\N{MINUS SIGN}")


def format_duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes, hours = whole // 60 % 60, whole // 3600
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def format_share(share: float | None, *, signed: bool = False) -> str:
    return NOTHING if share is None else f"{share * 100:{'+' if signed else ''}.1f} %"


def format_error(share: float | None) -> str:
    """Write a model's error with two decimals, as the paper does."""
    return NOTHING if share is None else f"{share * 100:.2f} %"


def format_points(share: float | None) -> str:
    """Write a difference of errors in percentage points, never taken for a relative change."""
    return NOTHING if share is None else f"{share * 100:+.2f}"


def format_class(low: float, high: float | None) -> str:
    """Name an error class of the paper's Table 3."""
    return f"over {low * 100:.0f} %" if high is None else f"{low * 100:.0f} - {high * 100:.0f} %"


def format_bytes(count: float | None) -> str:
    if count is None:
        return NOTHING
    scale, unit = next((one for one in _SIZES if count >= one[0]), _SIZES[-1])
    return f"{count / scale:.3g} {unit}" if count / scale < 1000 else f"{count / scale:.0f} {unit}"


def format_count(value: float) -> str:
    """Write a count: exactly up to 9,999, else with three digits."""
    for least, scale, unit in _LARGE:
        if abs(value) >= least:
            return f"{format_digits(value / scale)}{unit}"
    if value == int(value):
        return f"{int(value):,}"
    return format_digits(value) if abs(value) >= 0.01 else f"{value:.2g}"


def format_whole(value: float | None) -> str:
    return NOTHING if value is None else f"{value:,.0f}"


def format_value(value: float | None) -> str:
    """Write a feature: whole numbers exactly, others with six digits."""
    if value is None:
        return NOTHING
    return format_whole(value) if value == int(value) else f"{value:,.6g}"


WRITERS: Final[Mapping[str, Callable[[Any], str]]] = {
    "text": str, "code": str, "number": "{}".format,
    "s": lambda seconds: format_seconds(seconds) if seconds else "0",
    "share": format_share, "signed share": lambda share: format_share(share, signed=True),
    "error": format_error, "points": format_points, "B": format_bytes, "whole": format_whole,
    "value": format_value, **dict.fromkeys(("count", "B/s", "op/s"), format_count),
}  # fmt: skip
"""How values are written by the unit of their column or axis: seconds, shares as fractions, ...

A column's unit that is not among these is a format of Python such as ``.2f``. `number` is a column
of texts that stand at the right, as numbers do; `code` is OpenCL C, with remarks on it in lines
below.
"""
