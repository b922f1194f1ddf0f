"""Which buffers a kernel only reads: those need no copy while it is sampled."""

from collections.abc import Iterator
from functools import lru_cache

from clang import cindex

from kernelcast.features.parsing import find_kernel, parse_kernel
from kernelcast.records.arguments import Access
from kernelcast.records.kernel import Kernel

_Kind = cindex.CursorKind
_TRANSPARENT = (_Kind.PAREN_EXPR, _Kind.UNEXPOSED_EXPR)
_LOADS = tuple(f"vload{suffix}" for suffix in ("2", "3", "4", "8", "16", "_half", "a_half"))


@lru_cache(maxsize=256)
def infer_accesses(kernel: Kernel, argument_count: int) -> tuple[Access | None, ...]:
    """Find the pointer parameters through which a kernel provably only loads.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    argument_count : int
        How many answers are wanted.

    Returns
    -------
    tuple of Access or None
        `Access.READ` where every use is an element that is loaded; None where that cannot be
        shown (the pointer is stored to, copied, passed on, or the source is not understood).
    """
    unknown = (None,) * argument_count
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
    """Tell whether an element (perhaps a member or lane of it) is loaded, not stored to.

    An lvalue-to-rvalue conversion shows in libclang as an unexposed expression right above the
    element; stores, increments and taken addresses have none.
    """
    cursor = element
    while path:
        parent = path.pop()
        if parent.kind == _Kind.UNEXPOSED_EXPR:
            return True
        if parent.kind not in (_Kind.PAREN_EXPR, _Kind.MEMBER_REF_EXPR,
                               _Kind.ARRAY_SUBSCRIPT_EXPR):  # fmt: skip
            return False
        if parent.kind == _Kind.ARRAY_SUBSCRIPT_EXPR and not _is_first(parent, cursor):
            return True  # the element is another one's index: it is loaded
        cursor = parent
    return False


def _is_first(parent: cindex.Cursor, child: cindex.Cursor) -> bool:
    first = next(iter(parent.get_children()), None)
    return first is not None and first == child
