"""Numbers, times and days as the pages show them; filters of the templates."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import wraps
from typing import Any, Final, ParamSpec
from urllib.parse import urlencode

from kernelcast.reports import numbers
from kernelcast.reports.machine import unit_of

P = ParamSpec("P")
NOTHING: Final = "\N{EN DASH}"
"""Stands where there is no number."""


def _typeset(write: Callable[P, str]) -> Callable[P, str]:
    """Have numbers written with the characters that a terminal may lack."""

    @wraps(write)
    def typeset(*args: P.args, **options: P.kwargs) -> str:
        text = write(*args, **options)
        if text == numbers.NOTHING:
            return NOTHING
        return numbers.typeset(text)

    return typeset


write_seconds = _typeset(numbers.format_seconds)
write_share = _typeset(numbers.format_share)
write_digits = _typeset(numbers.format_digits)
write_bytes = _typeset(numbers.format_bytes)
write_points = _typeset(numbers.format_points)


def write_signed_share(share: float | None) -> str:
    """Write a share in percent, with its sign."""
    return write_share(share, signed=True)


def write_rate(bytes_per_s: float) -> str:
    """Write a bandwidth."""
    scale, unit = unit_of("copy_bytes_per_s", bytes_per_s)
    return f"{write_digits(bytes_per_s / scale)} {unit}"


def write_moment(moment: datetime | None) -> str:
    """Write a day and a time of UTC."""
    return NOTHING if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def write_size(size: Sequence[int] | None) -> str:
    """Write a global size."""
    return " x ".join(map(str, size)) if size else "unknown size"


FILTERS: Final[dict[str, Callable[..., Any]]] = {
    "seconds": write_seconds,
    "share": write_share,
    "signed_share": write_signed_share,
    "memory": write_bytes,
    "rate": write_rate,
    "digits": write_digits,
    "count": _typeset(numbers.format_whole),
    "moment": write_moment,
    "size": write_size,
}
"""Filters of the templates by their names."""


def link_kernel(kernel: str) -> str:
    """Give the address of a kernel's page; its name may hold anything."""
    return f"/kernels/of?{urlencode({'name': kernel})}"
