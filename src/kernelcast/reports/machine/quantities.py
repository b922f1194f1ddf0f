"""Numbers of a machine description as text; a number's key tells its unit."""

from collections.abc import Sequence
from typing import Any

from kernelcast.records.traits import Trait, TraitSource

MARKS = {
    TraitSource.MEASURED: "",
    TraitSource.REPORTED: "r",
    TraitSource.COMPUTED: "c",
    TraitSource.PUBLISHED: "p",
    TraitSource.ASSUMED: "a",
}
"""Letters behind a number that tell its source; measured ones have none."""

_DECIMAL = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"), (1e-12, "ps"))
_BINARY = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_UNITS = (("_bytes_per_s", "B/s"), ("_per_s", "op/s"), ("_hz", "Hz"))


def unit_of(key: str, largest: float) -> tuple[float, str]:
    """Give the scale and unit in which a number with that key is best read.

    Examples
    --------
    >>> unit_of("load_bytes_per_s", 2.5e10), unit_of("latency_s", 3e-9), unit_of("ways", 8)
    ((1000000000.0, 'GB/s'), (1e-09, 'ns'), (1.0, ''))
    """
    scales: Sequence[tuple[float, str]] = ((1.0, ""),)
    unit = next((unit for ending, unit in _UNITS if key.endswith(ending)), None)
    if unit is not None:
        scales = [(scale, f"{letter}{unit}") for scale, letter in _DECIMAL]
    elif key.endswith("_bytes"):
        scales = _BINARY
    elif key.endswith("_s"):
        scales = _TIMES
    # What rounds to the next unit is read in it: 1000 ns is 1 us.
    return next((one for one in scales if abs(largest) >= 0.9995 * one[0]), scales[-1])


def format_number(value: float) -> str:
    """Write a number with three digits.

    Examples
    --------
    >>> format_number(1536), format_number(12.345), format_number(0.5), format_number(48.0)
    ('1536', '12.3', '0.5', '48')
    """
    if float(value).is_integer() or abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.3g}"


def format_traits(key: str, traits: Sequence[Trait[Any] | None], *, marks: bool = True) -> str:
    """Write numbers with one unit for all; the paper's `.43/.30/.28`.

    Examples
    --------
    >>> one = Trait(value=4.3e-10, source=TraitSource.MEASURED)
    >>> two = Trait(value=3e-10, source=TraitSource.PUBLISHED)
    >>> format_traits("issue_latency_s", [one, two, None]), format_traits("peak_per_s", [None])
    ('430/300/- ps (p)', '-')
    """
    known = [one for one in traits if one is not None]
    if not known:
        return "-"
    scale, unit = unit_of(key, max(abs(one.value) for one in known))
    texts = ["-" if one is None else format_number(one.value / scale) for one in traits]
    letters = "".join(sorted({MARKS[one.source] for one in known})) if marks else ""
    return " ".join(filter(None, ["/".join(texts), unit, f"({letters})" if letters else ""]))


def format_interval(key: str, trait: Trait[Any]) -> str:
    """Write a number's interval in its unit; empty where it has none.

    Examples
    --------
    >>> one = Trait(value=1.5e9, low=1.4e9, high=1.6e9, source=TraitSource.MEASURED)
    >>> format_interval("clock_hz", one)
    '1.4 - 1.6'
    """
    if trait.low is None or trait.high is None:
        return ""
    scale, _ = unit_of(key, abs(trait.value))
    return f"{format_number(trait.low / scale)} - {format_number(trait.high / scale)}"
