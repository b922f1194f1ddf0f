"""Makes a launch of a few work-groups look, from inside the kernel, like the whole launch.

A sampled box of work-groups is launched with a global offset, so `get_global_id` and
`get_local_id` are right without any change. The other work-item functions would tell of the small
launch. `pass_sizes` has the kernels take what these functions answer as further arguments: one
build serves all boxes, all index spaces and all kernels of a program. Every function that asks,
and every one that calls such a function, gets them handed on.

Where a source cannot be rewritten so (functions that macros make, or that are in included files),
the compiler refuses the result, and `add_prelude` builds the numbers in, for one index space.

The compiler shall know no more of these numbers than in the unchanged kernel, and no less. With
constants, or with arguments in place of a function's answer, it made other code, 1.4 times slower
for one kernel on Intel's CPU runtime, 0.8 times for another on PoCL. So arguments are what is added
to the small launch's own sizes, and constants get a zero that the compiler does not know: the size
of a missing dimension less one, or in three dimensions their number less three.

Group ids of launches that have an offset of their own come from global ids there: PoCL assumes of
launches smaller than 65,536 work-items that their offset is below 65,535. Less a true offset beyond
that, it must be negative then: group ids came out as 2^58.

Dimensions beyond 2 have OpenCL's fixed answers and reach no builtin: PoCL and rusticl crash on
`get_group_id(3)`. Kernels that use none of these names run as they are.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.source_text import DIRECTIVE, blank, blank_comments, find_end
from kernelcast.sampling import read_source

_TOLD = (
    "get_group_id", "get_num_groups", "get_global_size", "get_global_offset",
    "get_global_linear_id",
)  # fmt: skip
_CONTINUED_LINE = re.compile(r"\\\r?\n")
_NAME = re.compile(r"[A-Za-z_]\w*")
_ASKS = re.compile("|".join(_TOLD))
# What hides names from whoever only reads the text: a file's, and names pasted together.
_HIDES = re.compile(r"#\s*include|##")
# Comments count too: a needless prelude changes nothing, a missing one everything.
_MAY_ASK = re.compile(f"{_ASKS.pattern}|{_HIDES.pattern}")
_DEFINE = re.compile(r"\s*#\s*define\s+(\w+)")

HIDDEN_ARGUMENTS = 12
"""Arguments of 64 bits that a kernel takes behind its own, see `tell_launch`."""
_GROUP = "get_group_id({0}) + get_global_offset({0}) / KC_LOCAL_{0}"
_GROUP_OF_ID = "(get_global_id({0}) - get_local_id({0}) - KC_OFFSET_{0}) / KC_LOCAL_{0}"


def needs_prelude(source: str, build_options: Sequence[str], kernel_name: str) -> bool:
    """Tell whether a kernel could notice that it runs in a smaller launch."""
    options = _CONTINUED_LINE.sub("", "\n".join(build_options))
    if not _MAY_ASK.search(_CONTINUED_LINE.sub("", source) + "\n" + options):
        return False
    read = _read(source)
    if _MAY_ASK.search(options) or not read.is_plain or kernel_name not in read.functions:
        return True
    return kernel_name in read.asking


@lru_cache(maxsize=64)
def pass_sizes(source: str, *, source_name: str) -> str | None:
    """Have kernels take `HIDDEN_ARGUMENTS` more, where any function of the text asks."""
    read = _read(source)
    if not read.asking:
        return None
    edits: list[tuple[int, int, str]] = []
    for found in _NAME.finditer(read.text):
        if found.group() not in read.asking:
            continue
        begin = _skip_space(read.text, found.end())
        end = find_end(read.text, begin)
        if end is None:
            continue
        what = "KC_PARAMETERS" if found.start() in read.declared else "KC_ARGUMENTS"
        inside = read.text[begin + 1 : end].strip()
        if inside in {"", "void"}:
            edits.append((begin + 1, end, what))
        else:
            edits.append((end, end, f", {what}"))
    pieces, last = [], 0
    for first, behind, text in sorted(edits):
        pieces += [source[last:first], text]
        last = behind
    rewritten = "".join([*pieces, source[last:]])
    return f"{read_source('passed_sizes.cl')}{mark_line(source_name)}{rewritten}"


def tell_launch(ndrange: NDRange, box: GroupBox) -> list[int]:
    """Give the hidden arguments of a launch of a box: what its ids and sizes lack, modulo 2^64, and
    the whole launch's offsets."""
    padding = [0] * (3 - ndrange.dimensions)
    _, size = ndrange.work_items_of(box)
    groups = [whole - own for whole, own in zip(ndrange.group_counts, box.shape, strict=True)]
    sizes = [whole - own for whole, own in zip(ndrange.global_size, size, strict=True)]
    numbers = (*box.start, *padding, *groups, *padding, *sizes, *padding,
               *ndrange.global_offset, *padding)  # fmt: skip
    return [one % 2**64 for one in numbers]


def add_prelude(source: str, ndrange: NDRange, *, source_name: str) -> str:
    """Put the prelude for one launch in front of a source; its line numbers stay right."""
    padding = 3 - ndrange.dimensions
    offsets = ndrange.global_offset + (0,) * padding
    values: Mapping[str, Sequence[int]] = {
        "OFFSET": offsets,
        "LOCAL": ndrange.known_local_size + (1,) * padding,
        "GROUPS": ndrange.group_counts + (1,) * padding,
        "SIZE": ndrange.global_size + (1,) * padding,
    }
    zero = "get_global_size(2) - 1" if padding else "get_work_dim() - 3ul"
    lines = [f"#define KC_ZERO ({zero})"]
    for axis in range(3):
        lines += [f"#define KC_{name}_{axis} {of[axis]}ul" for name, of in values.items()]
        group = (_GROUP_OF_ID if offsets[axis] else _GROUP).format(axis)
        lines.append(f"#define KC_GROUP_{axis} ({group})")
    text = "\n".join((*lines, read_source("built_in_sizes.cl")))
    return f"{text}{mark_line(source_name)}{source}"


def mark_line(source_name: str) -> str:
    """Give the directive that makes the next line the first of `source_name`."""
    one_line = "".join(sign if sign.isprintable() else " " for sign in source_name)
    printable = one_line.replace("\\", "/").replace('"', "'")
    return f'#line 1 "{printable}"\n'


@dataclass(frozen=True, slots=True)
class _Read:
    """What the text of a source says of its functions."""

    text: str
    """The source, its comments and strings blank."""
    declared: frozenset[int]
    """Where names of functions are declared or defined."""
    functions: frozenset[str]
    asking: frozenset[str]
    """Functions that ask for what a smaller launch changes, or call one that does."""
    is_plain: bool
    """Whether all that is asked for is asked for in a function or macro that was found."""


@lru_cache(maxsize=64)
def _read(source: str) -> _Read:
    text = blank_comments(source)
    mentions: dict[str, set[str]] = {name: {name} for name in _TOLD}
    for directive in DIRECTIVE.finditer(text):
        if defined := _DEFINE.match(directive.group()):
            names = set(_NAME.findall(directive.group()[defined.end() :]))
            mentions.setdefault(defined.group(1), set()).update(names)
    macros = set(mentions)
    code = DIRECTIVE.sub(blank, text)
    found = list(_find_functions(code))
    for name, begin, end in found:
        mentions.setdefault(name, set()).update(_NAME.findall(code[begin:end]))
    asking = set(_TOLD)
    while more := {
        name for name, mentioned in mentions.items() if name not in asking and mentioned & asking
    }:
        asking |= more
    inside = "".join(code[begin:end] for _, begin, end in found)
    is_split = len(_ASKS.findall(_CONTINUED_LINE.sub("", source))) > len(_ASKS.findall(source))
    counted = [sum(name in asking for name in _NAME.findall(one)) for one in (code, inside)]
    return _Read(
        text=text,
        declared=frozenset(begin for _, begin, _ in found),
        functions=frozenset(name for name, _, _ in found),
        asking=frozenset(asking - macros),
        is_plain=counted[0] == counted[1] and not is_split and not _HIDES.search(text),
    )


def _find_functions(code: str) -> Iterator[tuple[str, int, int]]:
    """Give the functions outside all braces: name, where it stands, where its body ends."""
    place = 0
    while found := re.compile(r"[A-Za-z_]\w*|\{").search(code, place):
        if found.group() == "{":
            place = find_end(code, found.start()) or len(code)
            continue
        place = found.end()
        begin = _skip_space(code, place)
        end = find_end(code, begin) if code[begin : begin + 1] == "(" else None
        if end is None:
            continue
        place = end + 1
        behind = re.compile(r"\s*(?:__attribute__\s*\(\(.*?\)\)\s*)*([{;])").match(code, place)
        if behind is None or found.group() == "__attribute__":
            continue
        if behind.group(1) == "{":
            place = (find_end(code, behind.end() - 1) or len(code) - 1) + 1
        yield found.group(), found.start(), place


def _skip_space(text: str, place: int) -> int:
    while place < len(text) and (text[place].isspace() or text[place] == "\\"):
        place += 1
    return place
