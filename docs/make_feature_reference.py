"""Writes docs/reference/features.md from the definitions of the features.

``python docs/make_feature_reference.py`` writes it; with ``--check`` it only says, by its exit
status, whether the file is up to date.
"""

import re
import sys
from pathlib import Path

from kernelcast.features.vector import WARP_WIDTH, list_features, make_schema
from kernelcast.records.feature_vector import REFERENCES, UNITS, FeatureGroup, group_of

REFERENCE = Path(__file__).parent / "reference" / "features.md"
_ALIKE = {
    "TYPE": re.compile(r"(?<![a-z])(?:fp|int)\d+"),
    "SPACE": re.compile(r"(?<![a-z])(?:global|constant|local|private)(?![a-z])"),
}
_GROUPS = {
    FeatureGroup.STATIC: "From the source and the problem file; always present.",
    FeatureGroup.COMPILER: "From the compiler and driver of one device; absent where unknown.",
    FeatureGroup.SAMPLED: "From timed launches of a few work-groups on one device.",
    FeatureGroup.COUNTERS: "Counted by an instrumented copy of the kernel on a device, or derived "
    "from the source (`counters.measured_flag` is 0). For comparable vectors, a warp is "
    f"{WARP_WIDTH} work-items on every device.",
    FeatureGroup.ANALYTIC: "From analytic models of a device. A *limiter* is the time that one "
    "part of the work would take alone; it is absent where the model has no such part.",
}
_HEADER = """# Features

<!-- Written by docs/make_feature_reference.py from the definitions; do not edit. -->

A feature vector maps names, `group.what_unit`, to numbers. Unknown features are absent.
`kernelcast features` prints it; in Python it is a `FeatureVector`. Its schema is a version with a
hash of all names, now `{schema}`.

Names end in {units}, or in `per_` and {references}. A flag is 0 or 1; a ratio has no unit. TYPE and
SPACE stand for each word that the row lists.

## Table 1 of the sampling paper

| feature in the paper | name |
|---|---|
"""


def make_reference() -> str:
    """Give the text of the reference."""
    units = ", ".join(f"`{one}`" for one in UNITS)
    references = ", ".join(f"`{one}`" for one in REFERENCES)
    header = _HEADER.format(schema=make_schema().id, units=units, references=references)
    return header + "\n".join([*_list_table_1(), *map(_describe_group, FeatureGroup)])


def main(arguments: list[str]) -> int:
    """Write or check the reference; give the exit status."""
    text = make_reference()
    if "--check" not in arguments:
        REFERENCE.write_text(text, encoding="utf-8")
        return 0
    if REFERENCE.is_file() and REFERENCE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{REFERENCE} is out of date; run `python docs/make_feature_reference.py`\n")
    return 1


def _list_table_1() -> list[str]:
    found: dict[str, list[str]] = {}
    for one in list_features():
        if one.table_1:
            found.setdefault(one.table_1, []).append(f"`{one.name}`")
    return [f"| {theirs} | {', '.join(names)} |" for theirs, names in found.items()]


def _describe_group(group: FeatureGroup) -> str:
    """Describe the features of a group; those that differ by one word alone are one row."""
    rows: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for one in list_features():
        if group_of(one.name) is group:
            alike, word = (one.name, one.meaning), ""
            for placeholder, pattern in _ALIKE.items():
                if (match := pattern.search(one.name)) and pattern.search(one.meaning):
                    name, meaning = (pattern.sub(placeholder, text) for text in alike)
                    alike, word = (name, f"{meaning}; {placeholder}: "), match[0]
                    break
            rows.setdefault(alike, []).append((word, f"| `{one.name}` | {one.meaning} |"))
    lines = [
        members[0][1]
        if len(members) == 1
        else f"| `{name}` | {meaning}{', '.join(word for word, _ in members)} |"
        for (name, meaning), members in rows.items()
    ]
    head = f"\n## `{group}`\n\n{_GROUPS[group]}\n\n| feature | meaning |\n|---|---|\n"
    return head + "\n".join(lines) + ("\n" if group is FeatureGroup.ANALYTIC else "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
