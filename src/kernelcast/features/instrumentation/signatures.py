"""Adds parameters to functions and arguments to their calls."""

import re

from kernelcast.features.rewriting import SourceEdits
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.places import Span
from kernelcast.features.syntax.tree import Node
from kernelcast.records.errors import InputError


def exact_span(node: Node, what: str) -> Span:
    """Give a node's range in the source.

    Raises
    ------
    InputError
        If it is made by a macro or stands in an included file.
    """
    span = node.span
    if span is None or not span.is_exact:
        msg = f"line {node.line}: {what} is made by a macro or stands in an included file"
        raise InputError(msg)
    return span


def add_parameter(edits: SourceEdits, function: Node, text: str) -> None:
    """Put a parameter behind a function's last one.

    Raises
    ------
    InputError
        If the parameter list is made by a macro.
    """
    parameters = [child for child in function.children if child.kind == kinds.PARAMETER]
    if parameters:
        edits.insert_after(exact_span(parameters[-1], "a parameter").end, f", {text}")
        return
    span = exact_span(function, "a function")
    found = re.search(
        rb"\b" + re.escape(function.spelling.encode()) + rb"\s*\(\s*(void)?\s*(?=\))",
        function.unit.places.source[span.start : span.end],
    )
    if found is None:
        msg = f"line {function.line}: the parameter list of {function.spelling} is not understood"
        raise InputError(msg)
    if found[1] is not None:
        edits.replace(span.start + found.start(1), span.start + found.end(1), text)
    else:
        edits.insert_after(span.start + found.end(), text)


def add_argument(edits: SourceEdits, call: Node, text: str) -> None:
    """Put an argument behind a call's last one.

    Raises
    ------
    InputError
        If the call is made by a macro.
    """
    span = exact_span(call, f"a call of {call.spelling}")
    has_arguments = len(call.children) > 1
    edits.insert_before(span.end - 1, f", {text}" if has_arguments else text)
