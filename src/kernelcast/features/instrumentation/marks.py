"""Puts code at a kernel's start and at every one of its ends."""

from kernelcast.features.instrumentation.signatures import exact_span
from kernelcast.features.rewriting import SourceEdits
from kernelcast.features.syntax.tree import Node
from kernelcast.records.errors import InputError


def mark_body(edits: SourceEdits, kernel: Node, *, begin: str, end: str, label: str) -> None:
    """Put a text at the start of a kernel's body, and one where it ends or returns.

    Raises
    ------
    InputError
        If a macro or an included file makes the body.

    Notes
    -----
    Renaming `return` rather than rewriting each one reaches those that macros hide, and keeps
    every line where it was.
    """
    body = exact_span(kernel.children[-1], "the body")
    places = kernel.unit.places
    text = places.source[body.start : body.end]
    if not (text.startswith(b"{") and text.endswith(b"}")):
        msg = "the braces of its body are made by a macro; write them out"
        raise InputError(msg)
    edits.insert_after(
        body.start + 1,
        f"{begin}\n#define return goto {label}\n#line {places.line_of(body.start)}\n",
    )
    edits.insert_before(
        body.end - 1,
        f"\n#undef return\n#line {places.line_of(body.end)}\n"
        f"{label}: __attribute__((unused)); {end}",
    )
