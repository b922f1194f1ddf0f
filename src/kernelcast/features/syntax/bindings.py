"""The few functions of libclang that reading a whole tree needs, called without wrappers.

clang's own Python classes make an object, look up its kind and translate its type for each cursor
they pass: 14 microseconds a node on the examples. Reading structures directly takes a third, and
ten milliseconds for a file is what a scheduler can wait.
"""

import ctypes
from collections.abc import Callable
from typing import Any

from clang import cindex

_POINTER = ctypes.c_void_p


class CXString(ctypes.Structure):
    """A string of libclang's, to be disposed of."""

    _fields_ = (("data", _POINTER), ("flags", ctypes.c_uint))


class CXCursor(ctypes.Structure):
    """A place in the tree; `data` holds the declaration, the statement and the unit."""

    _fields_ = (("kind", ctypes.c_int), ("extra", ctypes.c_int), ("first", _POINTER),
                ("second", _POINTER), ("third", _POINTER))  # fmt: skip


class CXType(ctypes.Structure):
    """A type; `first` is unique to type and qualifiers within a unit."""

    _fields_ = (("kind", ctypes.c_int), ("first", _POINTER), ("second", _POINTER))


class CXSourceLocation(ctypes.Structure):
    """A place in the source."""

    _fields_ = (("first", _POINTER), ("second", _POINTER), ("raw", ctypes.c_uint))


class CXSourceRange(ctypes.Structure):
    """A range of the source; its ends are raw numbers, see `SourcePlaces`."""

    _fields_ = (("first", _POINTER), ("second", _POINTER), ("begin", ctypes.c_uint),
                ("end", ctypes.c_uint))  # fmt: skip


VISITOR = ctypes.CFUNCTYPE(ctypes.c_int, CXCursor, CXCursor, ctypes.c_void_p)
CONTINUE, RECURSE = 1, 2

_LIBRARY = ctypes.CDLL(cindex.conf.get_filename())


def _bind(name: str, result: Any, *arguments: Any) -> Any:  # noqa: ANN401 - ctypes' own types
    function = getattr(_LIBRARY, name)
    function.restype = result
    function.argtypes = arguments
    return function


_UINT_POINTER = ctypes.POINTER(ctypes.c_uint)
_PLACE = (CXSourceLocation, ctypes.POINTER(_POINTER), _UINT_POINTER, _UINT_POINTER, _UINT_POINTER)

unit_cursor = _bind("clang_getTranslationUnitCursor", CXCursor, _POINTER)
visit_children = _bind("clang_visitChildren", ctypes.c_uint, CXCursor, VISITOR, _POINTER)
cursor_type = _bind("clang_getCursorType", CXType, CXCursor)
cursor_extent = _bind("clang_getCursorExtent", CXSourceRange, CXCursor)
cursor_spelling = _bind("clang_getCursorSpelling", CXString, CXCursor)
cursor_referenced = _bind("clang_getCursorReferenced", CXCursor, CXCursor)
cursor_definition = _bind("clang_getCursorDefinition", CXCursor, CXCursor)
diagnostic_count = _bind("clang_getNumDiagnostics", ctypes.c_uint, _POINTER)
diagnostic = _bind("clang_getDiagnostic", _POINTER, _POINTER, ctypes.c_uint)
diagnostic_severity = _bind("clang_getDiagnosticSeverity", ctypes.c_int, _POINTER)
diagnostic_spelling = _bind("clang_getDiagnosticSpelling", CXString, _POINTER)
dispose_diagnostic = _bind("clang_disposeDiagnostic", None, _POINTER)
is_definition = _bind("clang_isCursorDefinition", ctypes.c_uint, CXCursor)
printing_policy = _bind("clang_getCursorPrintingPolicy", _POINTER, CXCursor)
set_printing_property = _bind(
    "clang_PrintingPolicy_setProperty", None, _POINTER, ctypes.c_int, ctypes.c_uint
)
dispose_policy = _bind("clang_PrintingPolicy_dispose", None, _POINTER)
pretty_printed = _bind("clang_getCursorPrettyPrinted", CXString, CXCursor, _POINTER)
binary_operator = _bind("clang_getCursorBinaryOperatorKind", ctypes.c_int, CXCursor)
unary_operator = _bind("clang_getCursorUnaryOperatorKind", ctypes.c_int, CXCursor)
field_offset_bits = _bind("clang_Cursor_getOffsetOfField", ctypes.c_longlong, CXCursor)
evaluate = _bind("clang_Cursor_Evaluate", _POINTER, CXCursor)
result_kind = _bind("clang_EvalResult_getKind", ctypes.c_int, _POINTER)
result_integer = _bind("clang_EvalResult_getAsLongLong", ctypes.c_longlong, _POINTER)
result_double = _bind("clang_EvalResult_getAsDouble", ctypes.c_double, _POINTER)
dispose_result = _bind("clang_EvalResult_dispose", None, _POINTER)
string_bytes = _bind("clang_getCString", ctypes.c_char_p, CXString)
dispose_string = _bind("clang_disposeString", None, CXString)
canonical_type = _bind("clang_getCanonicalType", CXType, CXType)
type_spelling = _bind("clang_getTypeSpelling", CXString, CXType)
type_declaration = _bind("clang_getTypeDeclaration", CXCursor, CXType)
pointee_type = _bind("clang_getPointeeType", CXType, CXType)
value_type = _bind("clang_Type_getValueType", CXType, CXType)
element_type = _bind("clang_getArrayElementType", CXType, CXType)
vector_element_type = _bind("clang_getElementType", CXType, CXType)
element_count = _bind("clang_getNumElements", ctypes.c_longlong, CXType)
type_size_bytes = _bind("clang_Type_getSizeOf", ctypes.c_longlong, CXType)
address_space = _bind("clang_getAddressSpace", ctypes.c_uint, CXType)
is_const = _bind("clang_isConstQualifiedType", ctypes.c_uint, CXType)
is_volatile = _bind("clang_isVolatileQualifiedType", ctypes.c_uint, CXType)
is_restrict = _bind("clang_isRestrictQualifiedType", ctypes.c_uint, CXType)
range_start = _bind("clang_getRangeStart", CXSourceLocation, CXSourceRange)
range_end = _bind("clang_getRangeEnd", CXSourceLocation, CXSourceRange)
file_location = _bind("clang_getFileLocation", None, *_PLACE)
file_name = _bind("clang_getFileName", CXString, _POINTER)


def list_top_level(unit: Any, kinds: frozenset[int]) -> list[CXCursor]:  # noqa: ANN401 - a handle
    """Give the declarations of some kinds that a unit consists of, the header's too."""
    found: list[CXCursor] = []

    def note(cursor: CXCursor, _: CXCursor, __: int) -> int:
        if cursor.kind in kinds:
            found.append(cursor)
        return CONTINUE

    visit(unit_cursor(unit), note)
    return found


def visit(cursor: CXCursor, note: Callable[[CXCursor, CXCursor, int], int]) -> None:
    """Call a function for what is below a cursor; it says whether to go on or to go deeper."""
    callback = VISITOR(note)
    visit_children(cursor, callback, None)
    del callback


def take_string(text: CXString) -> str:
    """Give a libclang string as Python's and free it."""
    content = string_bytes(text)
    dispose_string(text)
    return content.decode(errors="replace") if content else ""
