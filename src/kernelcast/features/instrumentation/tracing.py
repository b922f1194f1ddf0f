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
"""

import re
from dataclasses import replace

from kernelcast.features.instrumentation.edits import add_parameter, mark_body
from kernelcast.features.parsing import MAIN_FILE, parse_kernel
from kernelcast.features.rewriting import SourceEdits
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.tree import Node, SyntaxTree
from kernelcast.records.errors import InputError
from kernelcast.records.kernel import Kernel

_LABEL = "kc_trace_end"
# What makes the work-items of a group wait for each other.
_MEETING = re.compile(
    r"\b(?:barrier|(?:work|sub)_group_\w+|async_work_group_\w+|wait_group_events)\b"
)


def make_tracing_kernel(kernel: Kernel) -> Kernel:
    """Give the copy of a kernel that begins and ends with the marks of a trace.

    Returns
    -------
    Kernel
        Same name and build options; `KC_TRACE_PARAMETER`, `KC_TRACE_BEGIN`, `KC_TRACE_END` and
        `KC_TRACE_END_APART` must be defined in front of it.

    Raises
    ------
    InputError
        If the source is not understood, or the kernel has a form that cannot be marked.
    """
    unit = parse_kernel(kernel)
    tree = SyntaxTree(unit, kernel.source, MAIN_FILE) if unit is not None else None
    function = tree.function_named(kernel.name) if tree is not None else None
    if tree is None or function is None:
        msg = f"kernel {kernel.name}: libclang does not understand {kernel.source_name}"
        raise InputError(msg)
    has_returns = _check_returns(kernel, function)
    _check_mentions(kernel, tree)
    meets = not (has_returns and _MEETING.search(kernel.source))
    edits = SourceEdits(kernel.source)
    try:
        add_parameter(edits, function, "KC_TRACE_PARAMETER")
        mark_body(
            edits,
            function,
            begin="KC_TRACE_BEGIN",
            end="KC_TRACE_END" if meets else "KC_TRACE_END_APART",
            label=_LABEL,
        )
    except InputError as error:
        msg = f"kernel {kernel.name}: {error}; write it out to trace it"
        raise InputError(msg) from error
    return replace(kernel, source=edits.apply())


def _check_returns(kernel: Kernel, function: Node) -> bool:
    """Tell whether there are returns; refuse `return x;`, which cannot become a jump."""
    has_returns = False
    for node in function.walk():
        has_returns = has_returns or node.kind == kinds.RETURN
        if node.kind == kinds.RETURN and node.children:
            msg = (
                f"kernel {kernel.name}: line {node.line} returns an expression; "
                "a traced kernel may only `return;`"
            )
            raise InputError(msg)
    return has_returns


def _check_mentions(kernel: Kernel, tree: SyntaxTree) -> None:
    """Refuse a kernel that others call or declare: its parameters are about to change."""
    callers = (
        node
        for function in tree.functions.values()
        for node in function.walk()
        if node.kind == kinds.CALL and node.spelling == kernel.name
    )
    declared = (node for node in tree.declarations if node.spelling == kernel.name)
    for nodes, how in ((declared, "declares it ahead"), (callers, "calls it as a function")):
        for node in nodes:
            msg = (
                f"kernel {kernel.name}: line {node.line} {how}; a kernel to be traced may only be "
                "defined"
            )
            raise InputError(msg)
