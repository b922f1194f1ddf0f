"""Parts that charts of errors share."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:  # slow to load
    from matplotlib.axes import Axes

_LONGEST: Final = 26
# Bars are cut where a few would make all others unreadable: beyond so many times the 90th
# percentile.
_CUT_FROM: Final = 2.5
_CUT_AT: Final = 1.5
_LOWEST_CUT: Final = 0.1


def choose_limit(values: Sequence[float]) -> float:
    """Give the error at which bars are cut; beyond all of them unless a few stick out.

    Examples
    --------
    >>> round(choose_limit([0.1, 0.2, 0.3]), 3), round(choose_limit([0.1] * 99 + [4.0]), 3)
    (0.315, 0.15)
    >>> choose_limit([0.0])
    1.0
    """
    largest, usual = max(values), float(np.quantile(values, 0.9))
    cut = max(_CUT_AT * usual, _LOWEST_CUT)
    limit = cut if largest > _CUT_FROM * usual and largest > cut else 1.05 * largest
    return limit or 1.0


def write_percent(value: float, _: object = None) -> str:
    """Write a tick.

    Examples
    --------
    >>> write_percent(0.025), write_percent(0.1)
    ('2.5 %', '10 %')
    """
    return f"{value * 100:.3g} %"


def show_grid(axes: "Axes", axis: str = "y") -> None:
    """Draw lines behind bars."""
    axes.grid(visible=True, axis="x" if axis == "x" else "y")
    axes.set_axisbelow(True)


def shorten_names(labels: Iterable[str]) -> Mapping[str, str]:
    """Give each label a short name: its last part, with more parts where that is not enough.

    Parameters
    ----------
    labels : iterable of str
        Such as ``suite/application/kernel``.

    Returns
    -------
    mapping of str to str
        The middle of a long name is left out.

    Examples
    --------
    >>> shorten_names(["a/x/run", "a/y/run", "a/y/triad"])
    {'a/x/run': 'x/run', 'a/y/run': 'y/run', 'a/y/triad': 'triad'}
    """
    known = sorted(set(labels))
    short = {label: _end(label, 1) for label in known}
    deepest = max((label.count("/") for label in known), default=0) + 1
    for parts in range(2, deepest + 1):
        used = Counter(short.values())
        short |= {one: _end(one, parts) for one, name in short.items() if used[name] > 1}
    return {label: _elide(make_plain(name)) for label, name in short.items()}


def make_plain(text: str) -> str:
    r"""Replace what cannot be drawn: callers may call kernels and devices anything.

    Examples
    --------
    >>> make_plain("a\x01b")
    'a?b'
    """
    return "".join(one if one.isprintable() else "?" for one in text)


def _end(label: str, parts: int) -> str:
    return "/".join(label.split("/")[-parts:])


def _elide(name: str) -> str:
    if len(name) <= _LONGEST:
        return name
    half = (_LONGEST - 1) // 2
    return f"{name[: _LONGEST - 1 - half]}\N{HORIZONTAL ELLIPSIS}{name[-half:]}"
