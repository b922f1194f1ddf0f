"""The copy of a kernel that notes when each of its work-groups begins and ends.

The copy has one more parameter at the end, and three marks that whoever builds it defines::

    kernel void k(global int *a, KC_TRACE_PARAMETER)
    {KC_TRACE_BEGIN
    ...
    kc_trace_end: KC_TRACE_END}

`return` jumps to the end, so all work-items meet again before the time is taken. Where a kernel
has both returns and barriers the end is `KC_TRACE_END_APART`, which makes nobody wait: a work-item
that has returned early must not wait at our barrier while the others wait at the kernel's own. The
marks keep clocks, which are the device's matter, out of here.

Only the text is read: what is timed must be the kernel as it was written.
"""

import re
from dataclasses import replace
from typing import Final

from kernelcast.records.errors import InputError
from kernelcast.records.kernel import Kernel
from kernelcast.records.source_text import DIRECTIVE, blank, blank_comments, find_end

_LABEL: Final = "kc_trace_end"
_ATTRIBUTES: Final = re.compile(r"\s*(?:__attribute__\s*\(\(.*?\)\)\s*)*", re.DOTALL)
_RETURN: Final = re.compile(r"\breturn\b\s*")
# What makes the work-items of a group wait for each other.
_MEETING: Final = re.compile(
    r"\b(?:barrier|(?:work|sub)_group_\w+|async_work_group_\w+|wait_group_events)\b"
)


def make_tracing_kernel(kernel: Kernel) -> Kernel:
    """Mark a kernel's begin and end by ``KC_TRACE_...`` macros, which a header must define."""
    source, name = kernel.source, kernel.name
    code = blank_comments(source)
    text = DIRECTIVE.sub(blank, code)
    found: tuple[int, int, int, int] | None = None
    for mention in re.finditer(rf"\b{re.escape(name)}\s*\(", text):
        opened = mention.end() - 1
        closed = find_end(text, opened) or len(text)
        body = _ATTRIBUTES.match(text, closed + 1)
        begin = body.end() if body else closed + 1
        if text[begin : begin + 1] == "{" and found is None:
            found = (opened, closed, begin, find_end(text, begin) or len(text))
        elif found is None and text[begin : begin + 1] != ";":
            raise _refuse(kernel, mention.start(), "has a body that is made by a macro; write it "
                          "out to trace it")  # fmt: skip
        else:
            how = "declares it ahead" if found is None else "calls it as a function"
            raise _refuse(kernel, mention.start(), f"{how}; a kernel to be traced may only be "
                          "defined")  # fmt: skip
    if found is None:
        raise InputError(
            f"kernel {name}: {kernel.source_name} does not hold its definition; write it there, "
            "without macros, to trace it"
        )
    opened, closed, begin, end = found
    for one in _RETURN.finditer(text, begin, end):
        if text[one.end()] != ";":
            raise _refuse(kernel, one.start(), "returns an expression; a traced kernel may only "
                          "`return;`")  # fmt: skip
    macros = "".join(DIRECTIVE.findall(code))
    has_returns = _RETURN.search(text, begin, end) or _RETURN.search(macros)
    last = "KC_TRACE_END_APART" if has_returns and _MEETING.search(source) else "KC_TRACE_END"
    parameters = text[opened + 1 : closed].rstrip()
    has_none = parameters.strip() in ("", "void")
    kept = opened + 1 + (0 if has_none else len(parameters))
    marked = "".join((
        source[:kept], "KC_TRACE_PARAMETER" if has_none else ", KC_TRACE_PARAMETER",
        source[closed if has_none else kept : begin + 1],
        f"KC_TRACE_BEGIN\n#define return goto {_LABEL}\n#line {_line_of(source, begin)}\n",
        source[begin + 1 : end], f"\n#undef return\n#line {_line_of(source, end)}\n",
        f"{_LABEL}: __attribute__((unused)); {last}", source[end:],
    ))  # fmt: skip
    return replace(kernel, source=marked)


def _line_of(source: str, place: int) -> int:
    return source.count("\n", 0, place) + 1


def _refuse(kernel: Kernel, place: int, what: str) -> InputError:
    return InputError(f"kernel {kernel.name}: line {_line_of(kernel.source, place)} {what}")
