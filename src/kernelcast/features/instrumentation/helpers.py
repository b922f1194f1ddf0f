"""Hands the counters on to the helper functions that count."""

from collections.abc import Sequence

from kernelcast.features.analysis import DividedSource
from kernelcast.features.instrumentation.edits import (
    add_argument,
    add_parameter,
    exact_span,
)
from kernelcast.features.rewriting import SourceEdits
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.places import Span
from kernelcast.features.syntax.tree import Node, SyntaxTree


def hand_on(
    edits: SourceEdits,
    analysis: DividedSource,
    spans: Sequence[Span],
    *,
    parameter: str,
    argument: str,
) -> None:
    """Add a parameter to every helper function that counts, and an argument to every call of it.

    Parameters
    ----------
    spans : sequence of Span
        Where something is counted or written down.
    parameter, argument : str
        What is added.

    Raises
    ------
    InputError
        If a call or a parameter list is made by a macro.
    """
    tree, kernel = analysis.tree, analysis.function
    counting = _find_counting(tree, kernel, spans)
    names = {one.spelling for one in counting.values()}
    for function in (*counting.values(), kernel):
        for call in _calls(function):
            target = tree.definition_of(call)
            if target is not None and target.key in counting:
                add_argument(edits, call, argument)
    for function in (*counting.values(), *(d for d in tree.declarations if d.spelling in names)):
        add_parameter(edits, function, parameter)
    for function in tree.functions.values():
        is_other = function.key not in counting and function.key != kernel.key
        if is_other and any(call.spelling in names for call in _calls(function)):
            # Another kernel that calls a helper whose parameters have changed; it is not run.
            body = exact_span(function.children[-1], f"the body of {function.spelling}")
            edits.replace(body.start, body.end, "{ }")


def _find_counting(tree: SyntaxTree, kernel: Node, spans: Sequence[Span]) -> dict[int, Node]:
    """Find the helper functions that count, or call one that does."""
    helpers = {key: one for key, one in tree.functions.items() if key != kernel.key}
    found = {key: one for key, one in helpers.items() if _holds_one(one.span, spans)}
    callees = {
        key: {target.key for call in _calls(one) if (target := tree.definition_of(call))}
        for key, one in helpers.items()
    }
    while True:
        more = {
            key: one
            for key, one in helpers.items()
            if key not in found and callees[key] & found.keys()
        }
        if not more:
            return found
        found.update(more)


def _holds_one(outer: Span | None, spans: Sequence[Span]) -> bool:
    return outer is not None and any(outer.start <= span.start < outer.end for span in spans)


def _calls(function: Node) -> list[Node]:
    return [node for node in function.walk() if node.kind == kinds.CALL]
