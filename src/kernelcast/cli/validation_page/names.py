"""Short names of kernels for pictures."""

from collections import Counter
from collections.abc import Iterable, Mapping

LONGEST = 26
"""Letters that a name in a picture may have."""


def shorten_names(labels: Iterable[str]) -> Mapping[str, str]:
    """Give each label a short name: its last part, with more parts where that is not enough.

    Parameters
    ----------
    labels : iterable of str
        Such as ``suite/application/kernel``.

    Returns
    -------
    mapping of str to str
        At most `LONGEST` letters each; the middle of a longer name is left out.

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
    return {label: _elide(name) for label, name in short.items()}


def _end(label: str, parts: int) -> str:
    return "/".join(label.split("/")[-parts:])


def _elide(name: str) -> str:
    if len(name) <= LONGEST:
        return name
    half = (LONGEST - 1) // 2
    return f"{name[: LONGEST - 1 - half]}\N{HORIZONTAL ELLIPSIS}{name[-half:]}"
