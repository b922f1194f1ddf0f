"""Which buffers a kernel only reads: those need no copy while it is sampled."""

import re
from collections.abc import Iterator
from functools import lru_cache

from clang import cindex

from kernelcast.features.parsing import find_kernel, parse_kernel
from kernelcast.records.arguments import Access
from kernelcast.records.kernel import Kernel

_Kind = cindex.CursorKind
_TRANSPARENT = (_Kind.PAREN_EXPR, _Kind.UNEXPOSED_EXPR)
_ARRAYS = (
    cindex.TypeKind.CONSTANTARRAY, cindex.TypeKind.INCOMPLETEARRAY,
    cindex.TypeKind.VARIABLEARRAY, cindex.TypeKind.DEPENDENTSIZEDARRAY,
)  # fmt: skip
# A macro that ends in lanes (`#define V a[i].xyzw`) has the extent of its use, as the element in
# it: stores through it would look like loads.
_MACRO_WITH_LANES = re.compile(
    r"^\s*#\s*define\b.*\.\s*(?:[xyzwrgba]{1,16}|s[0-9a-fA-F]+|hi|lo|even|odd)\b", re.MULTILINE
)
_LOADS = tuple(f"vload{suffix}" for suffix in ("2", "3", "4", "8", "16", "_half", "a_half"))


@lru_cache(maxsize=256)
def infer_accesses(kernel: Kernel, argument_count: int) -> tuple[Access | None, ...]:
    """Find the pointer parameters through which a kernel provably only loads.

    Parameters
    ----------
    argument_count : int
        How many answers are wanted.

    Returns
    -------
    tuple of Access or None
        `Access.READ` where every use is an element that is loaded; None where that cannot be
        shown (the pointer is stored to, copied, passed on, or the source is not understood).
    """
    unknown = (None,) * argument_count
    if _MACRO_WITH_LANES.search(kernel.source):
        return unknown
    unit = parse_kernel(kernel)
    function = find_kernel(unit, kernel.name) if unit is not None else None
    if function is None:
        return unknown
    parameters = list(function.get_arguments())
    if len(parameters) != argument_count:
        return unknown
    spoiled = {name for name, is_load in _uses(function) if not is_load}
    return tuple(
        Access.READ
        if parameter.type.kind == cindex.TypeKind.POINTER and parameter.spelling not in spoiled
        else None
        for parameter in parameters
    )


def _uses(function: cindex.Cursor) -> Iterator[tuple[str, bool]]:
    """Give each mention of a parameter, and whether it is a plain load."""
    stack: list[tuple[cindex.Cursor, tuple[cindex.Cursor, ...]]] = [(function, ())]
    while stack:
        cursor, ancestors = stack.pop()
        if cursor.kind == _Kind.DECL_REF_EXPR and _is_parameter(cursor):
            yield cursor.spelling, _is_load(cursor, ancestors)
        path = (*ancestors, cursor)
        stack.extend((child, path) for child in cursor.get_children())


def _is_parameter(cursor: cindex.Cursor) -> bool:
    declaration = cursor.referenced
    return declaration is not None and declaration.kind == _Kind.PARM_DECL


def _is_load(mention: cindex.Cursor, ancestors: tuple[cindex.Cursor, ...]) -> bool:
    """Tell whether a mention is the base of an element whose value is used."""
    if mention.type.get_canonical().kind != cindex.TypeKind.POINTER:
        return True  # a scalar parameter, or a by-value one
    child, path = mention, list(ancestors)
    while path and path[-1].kind in _TRANSPARENT:
        child = path.pop()
    if not path:
        return False
    parent = path.pop()
    if parent.kind == _Kind.CALL_EXPR:
        return bool(parent.spelling in _LOADS)
    if parent.kind != _Kind.ARRAY_SUBSCRIPT_EXPR or not _is_first(parent, child):
        return False
    return _is_value(parent, path)


def _is_value(element: cindex.Cursor, path: list[cindex.Cursor]) -> bool:
    """Tell whether an element, or a member or lane of it, is loaded and not stored to."""
    cursor = element
    while path:
        parent = path.pop()
        if parent.kind == _Kind.UNEXPOSED_EXPR:
            if _is_conversion_to_value(parent, cursor):
                return True
        elif parent.kind == _Kind.ARRAY_SUBSCRIPT_EXPR:
            if not _is_first(parent, cursor):
                return True  # the element is another one's index: it is loaded
        elif parent.kind not in (_Kind.PAREN_EXPR, _Kind.MEMBER_REF_EXPR):
            return False
        cursor = parent
    return False


def _is_conversion_to_value(parent: cindex.Cursor, child: cindex.Cursor) -> bool:
    """Tell whether an unexposed expression is the implicit load of its child.

    libclang shows three things as unexposed expressions above an element: the conversion to its
    value, the access to a vector's lanes, and the decay of an array to a pointer. The first has
    its child's extent and type; lanes reach further in the source, decay changes the type.
    """
    before, after = child.type.get_canonical(), parent.type.get_canonical()
    if before.kind in _ARRAYS:
        return False
    if before.kind == cindex.TypeKind.EXTVECTOR and after.kind != cindex.TypeKind.EXTVECTOR:
        return False
    return bool(
        parent.extent.start.offset == child.extent.start.offset
        and parent.extent.end.offset == child.extent.end.offset
    )


def _is_first(parent: cindex.Cursor, child: cindex.Cursor) -> bool:
    first = next(iter(parent.get_children()), None)
    return first is not None and first == child
