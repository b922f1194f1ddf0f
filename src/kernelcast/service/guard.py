"""What may be submitted: text that every database can keep, no way to files, nothing too large.

A kernel's source goes to compilers that read files when they are told to. What is refused too much
can be written in another way, what is let through cannot be taken back.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import unquote_to_bytes

from kernelcast.launches.source_check import check_reach
from kernelcast.records.errors import InputError
from kernelcast.records.problem import Problem
from kernelcast.service.settings import Limits

# No quotation marks, blanks, backslashes, @ and #: the value is one word to whoever splits options.
_DEFINITION = re.compile(r"[A-Za-z_]\w*(?:=[\w.+*/()<>,:&|^~!%=\[\]{}?-]*)?", re.ASCII)
_LANGUAGE = re.compile(r"-cl-std=CL(?:1\.[012]|[23]\.0|C\+\+(?:1\.0|2021)?)")
_FLAGS: Final = frozenset({
    "-w", "-Werror", "-cl-single-precision-constant", "-cl-denorms-are-zero",
    "-cl-fp32-correctly-rounded-divide-sqrt", "-cl-opt-disable", "-cl-strict-aliasing",
    "-cl-uniform-work-group-size", "-cl-no-subgroup-ifp", "-cl-mad-enable", "-cl-no-signed-zeros",
    "-cl-unsafe-math-optimizations", "-cl-finite-math-only", "-cl-fast-relaxed-math",
    "-cl-kernel-arg-info",
})  # fmt: skip
_KERNEL = re.compile(r"[A-Za-z_]\w{0,254}", re.ASCII)
# Few bodies hold one of these; only those are read twice. JSON escapes half of a surrogate pair as
# \ud800 to \udfff, and Python reads the bytes of one, which UTF-8 does not have, as one too. A body
# in UTF-16 is full of NULs.
_SUSPICIOUS: Final = re.compile(rb"\x00|\\u0000|\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
_MOST_OPTIONS: Final = 200


def check_problem(problem: Problem, limits: Limits) -> None:
    """Refuse a problem by what was read of it: also options whose names were filled in."""
    list(_list_definitions(problem.kernel.build_options))
    if not _KERNEL.fullmatch(problem.kernel.name):
        msg = f"kernel {problem.kernel.name[:80]!r}: give the name of a function of the source"
        raise InputError(msg)
    if problem.buffer_bytes > limits.buffer_bytes:
        raise InputError(
            f"problem {problem.name}: its buffers have {problem.buffer_bytes:,} bytes, this "
            f"service takes at most {limits.buffer_bytes:,}"
        )
    if problem.ndrange.work_item_count > limits.work_items:
        raise InputError(
            f"problem {problem.name}: global size {list(problem.ndrange.global_size)} has more "
            f"than {limits.work_items:,} work-items, the most that this service takes"
        )


def check_source(code: str, limits: Limits, options: Sequence[str] = ()) -> None:
    """Refuse a source that could read files with these options, or is too long."""
    size = len(code.encode(errors="replace"))
    if size > limits.source_bytes:
        msg = f"code: has {size:,} bytes, this service takes at most {limits.source_bytes:,}"
        raise InputError(msg)
    check_reach(code, list(_list_definitions(options)))


def _list_definitions(options: Sequence[str]) -> Iterator[str]:
    """Give what the options define; refuse whatever is no option of OpenCL's.

    Braces name parameters: what they become is checked once more, and is a number.
    """
    if len(options) > _MOST_OPTIONS:
        msg = f"{len(options)} build options; this service takes at most {_MOST_OPTIONS}"
        raise InputError(msg)
    rest = iter(options)
    for option in rest:
        text = option
        if option == "-D":
            text += next(rest, "")
        definition = text[2:].removeprefix(" ") if text.startswith("-D") else ""
        if len(text) <= 1000 and _DEFINITION.fullmatch(definition):
            yield definition
        elif text not in _FLAGS and not _LANGUAGE.fullmatch(text):
            raise InputError(
                f"build option {text[:80]!r} is refused: this service takes -D NAME=VALUE without "
                "blanks and quotes, -w, -Werror and the -cl-... options of the OpenCL standard"
            )


def is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def is_plain_json(body: bytes) -> bool:
    """Tell whether all texts of a JSON document can be kept; what is no JSON is not our matter."""
    if _SUSPICIOUS.search(body) is None:
        return True
    try:
        text = json.dumps(json.loads(body), ensure_ascii=False)
    except (ValueError, RecursionError):
        return True
    # A NUL is written as an escape; a backslash that is text has another one before it.
    return is_text(text) and "\\u0000" not in text.replace("\\\\", "")


def is_plain_form(text: bytes) -> bool:
    """Tell whether a query or a form can be kept once its percent signs are read."""
    return b"\0" not in unquote_to_bytes(text)
