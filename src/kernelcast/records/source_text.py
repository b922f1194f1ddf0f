"""The text of a source as it was written: what says nothing becomes blank, brackets are matched."""

import re

_SILENT = re.compile(
    r"/\*.*?\*/|//(?:\\\r?\n|[^\n])*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\r?\n|[^\n])*", re.MULTILINE)


def blank_comments(source: str) -> str:
    """Blank comments and strings; places stay, and so do backslashes that continue lines."""
    return _SILENT.sub(lambda found: re.sub(r"[^\n\\]", " ", found[0]), source)


def blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def find_end(text: str, begin: int) -> int | None:
    """Find what closes the bracket at a place; None where there is none, or nothing does."""
    pairs = {"(": ")", "{": "}"}
    opens = text[begin : begin + 1]
    if opens not in pairs:
        return None
    depth = 0
    for found in re.compile(f"[{opens}{pairs[opens]}]").finditer(text, begin):
        depth += 1 if found.group() == opens else -1
        if not depth:
            return found.start()
    return None
