"""Text that every database can keep: no NUL, and nothing that UTF-8 has no bytes for."""

import json
import re
from typing import Final
from urllib.parse import unquote_to_bytes

_NUL: Final = "\0"
# Few bodies hold one of these; only those are read twice. JSON escapes half of a surrogate pair as
# \ud800 to \udfff, and Python reads the bytes of one, which UTF-8 does not have, as one too. A body
# in UTF-16 is full of NULs.
_SUSPICIOUS: Final = re.compile(rb"\x00|\\u0000|\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")


def is_text(text: str) -> bool:
    r"""Tell whether a text can be kept.

    Examples
    --------
    >>> is_text("größe"), is_text("a\0b"), is_text("\ud800")
    (True, False, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return _NUL not in text


def is_plain_json(body: bytes) -> bool:
    r"""Tell whether all texts of a JSON document can be kept; what is no JSON is not our matter.

    Examples
    --------
    >>> is_plain_json(b'{"a": "\\u0000"}'), is_plain_json(b'{"a": "\\\\u0000"}')
    (False, True)
    >>> is_plain_json(b'["\\ud83d\\ude00"]'), is_plain_json(b'["\\ud83d"]')
    (True, False)
    """
    if _SUSPICIOUS.search(body) is None:
        return True
    try:
        return is_plain(json.loads(body))
    except (ValueError, RecursionError):
        return True


def is_plain(content: object) -> bool:
    """Tell whether all texts within lists and mappings can be kept."""
    waiting = [content]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            if not is_text(one):
                return False
        elif isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list):
            waiting += one
    return True


def is_plain_form(text: bytes) -> bool:
    """Tell whether a query or a form can be kept once its percent signs are read.

    Examples
    --------
    >>> is_plain_form(b"name=a%20b"), is_plain_form(b"name=a%00b"), is_plain_form(b"a=%2500")
    (True, False, True)
    """
    return b"\0" not in unquote_to_bytes(text)
