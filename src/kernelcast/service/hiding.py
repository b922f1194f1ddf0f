"""Takes the places where this installation keeps its files out of what callers are told."""

import re
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from kernelcast.predictor.data_folder import data_folder
from kernelcast.records.errors import InputError

# A name of one part, such as /usr or /root, stands in texts of strangers too, and tells nothing.
_LEAST_PARTS: Final = 3
_BEFORE: Final = r"(?<![\w.-])"
_AFTER: Final = r"(?![\w-])"


def hide_paths(text: str) -> str:
    """Replace the beginnings of our own paths by names.

    What a caller has sent is left alone: it does not begin as our paths do.

    Examples
    --------
    >>> hide_paths(f"{Path(__file__)}: no") == "<installation>/service/hiding.py: no"
    True
    >>> hide_paths("/etc/hosts: no such source")
    '/etc/hosts: no such source'
    """
    if "/" not in text and "\\" not in text:
        return text
    pattern, names = _known_places(_data_place())
    return pattern.sub(lambda match: names[match[0]], text)


@cache
def _known_places(data: Path | None) -> tuple[re.Pattern[str], dict[str, str]]:
    """Give a pattern of all places, the longest first, and the name of each."""
    places = [
        (data, "<data>"),
        (Path(__file__).parents[1], "<installation>"),
        (Path(__file__).parents[2], "<python>"),
        (Path(sys.prefix), "<python>"),
        (Path(sys.base_prefix), "<python>"),
        (Path(tempfile.gettempdir()), "<temporary>"),
        (_home(), "~"),
    ]
    names: dict[str, str] = {}
    for path, name in places:
        if path is None:
            continue
        for one in (path, path.resolve()):
            if len(one.parts) >= _LEAST_PARTS or name == "<data>":
                names.setdefault(str(one), name)
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile(f"{_BEFORE}(?:{'|'.join(map(re.escape, longest_first))}){_AFTER}"), names


def _data_place() -> Path | None:
    try:
        return data_folder().absolute()
    except InputError:
        return None


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:
        return None
