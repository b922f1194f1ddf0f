"""Writes functions out without their macros, where blocks hide in macros."""

import re

from kernelcast.features.rewriting import SourceEdits
from kernelcast.features.syntax import bindings as clang
from kernelcast.features.syntax.tree import Node, SyntaxTree
from kernelcast.records.errors import InputError

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
