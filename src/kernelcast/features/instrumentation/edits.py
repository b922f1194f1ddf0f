"""Edits that instrumented copies share: parameters, arguments, marks, functions without macros."""

import re

from kernelcast.features.rewriting import SourceEdits
from kernelcast.features.syntax import bindings as clang
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.places import Span
from kernelcast.features.syntax.tree import Node, SyntaxTree
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


# clang prints the access qualifier of an image twice, once where it may not stand.
_IMAGE_QUALIFIER = re.compile(r"(?<=\w) (?:read_only|write_only|read_write)(?=[,)])")


def expand_functions(tree: SyntaxTree, source: str) -> str:
    """Replace each function's text by what clang prints for it: the same code without macros.

    Returns
    -------
    str
        Declarations of types, constants and macros stay as they are. Lines move.

    Raises
    ------
    InputError
        If a function as a whole is made by a macro, or stands in an included file.
    """
    edits = SourceEdits(source)
    for function in tree.functions.values():
        span = function.span
        if span is None or not span.is_exact:
            msg = (
                f"function {function.spelling}: is made by a macro or stands in an included file; "
                "write it into the source to count what it executes"
            )
            raise InputError(msg)
        edits.replace(span.start, span.end, _print(function))
    return edits.apply()


def _print(function: Node) -> str:
    text = clang.take_string(clang.pretty_printed(function.cursor, None))
    head, brace, body = text.partition("{")
    return _IMAGE_QUALIFIER.sub("", head) + brace + body
