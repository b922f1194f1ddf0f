"""Types as the analysis needs them: what class of number, how wide, how many lanes, where."""

from dataclasses import dataclass
from enum import StrEnum

from kernelcast.features.syntax import bindings as clang

# Kinds of libclang's types (CXTypeKind).
_INVALID, _VOID, _BOOL = 0, 2, 3
_UNSIGNED = frozenset((3, 4, 5, 8, 9, 10, 11, 12))
_SIGNED = frozenset((13, 14, 16, 17, 18, 19, 20))
_FLOATS = frozenset((21, 22, 23, 30, 31, 32))
_POINTER, _RECORD, _ENUM = 101, 105, 106
_FUNCTIONS = frozenset((110, 111))
_ARRAYS = frozenset((112, 114, 115, 116))
_VECTORS = frozenset((113, 176))
_ATOMIC = 177
# libclang crashes when asked for the size of others, such as an overloaded function's placeholder.
_SIZED = _UNSIGNED | _SIGNED | _FLOATS | _VECTORS | {_POINTER, _RECORD, _ENUM, 112}


class TypeClass(StrEnum):
    """What a value of a type is."""

    VOID = "void"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    POINTER = "pointer"
    ARRAY = "array"
    RECORD = "record"
    FUNCTION = "function"
    OTHER = "other"
    """Images, samplers, events, pipes."""


# clang numbers the address spaces of the language so (LangAS), whatever the target.
_SPACES = {
    0: "private", 1: "global", 2: "local", 3: "constant", 4: "private", 5: "generic",
    6: "global", 7: "global",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeInfo:
    """One type with its qualifiers."""

    name: str
    """As written in the source, address space included."""
    type_class: TypeClass
    """Class of a value, or of a vector's lane."""
    lanes: int = 1
    """Lanes of a vector; 1 else."""
    bits: int = 0
    """Width of a number, or of a vector's lane; 0 for what is no number."""
    bytes: int = 0
    """Size in memory; 0 where it is not known."""
    space: str = "private"
    """Address space of an object of this type: ``private`` for values."""
    target: "TypeInfo | None" = None
    """What a pointer points to, what an array consists of."""
    is_const: bool = False
    is_volatile: bool = False
    is_restrict: bool = False
    """Qualifiers."""

    @property
    def is_integer(self) -> bool:
        """Whether it is a whole number (or a vector of them)."""
        return self.type_class in (TypeClass.SIGNED, TypeClass.UNSIGNED)

    @property
    def is_number(self) -> bool:
        """Whether it is a number (or a vector of them)."""
        return self.is_integer or self.type_class is TypeClass.FLOAT

    @property
    def is_vector(self) -> bool:
        """Whether it has several lanes."""
        return self.lanes > 1


UNKNOWN_TYPE = TypeInfo(name="?", type_class=TypeClass.OTHER)


class TypeReader:
    """Translates types; each one of a unit once."""

    def __init__(self) -> None:
        self._known: dict[int | None, TypeInfo] = {}

    def read(self, found: clang.CXType) -> TypeInfo:
        """Give a type's description."""
        if found.kind == _INVALID:
            return UNKNOWN_TYPE
        known = self._known.get(found.first)
        if known is None:
            known = self._known[found.first] = self._translate(found)
        return known

    def _translate(self, found: clang.CXType) -> TypeInfo:
        plain = qualified = clang.canonical_type(found)
        if plain.kind == _ATOMIC:
            plain = clang.canonical_type(clang.value_type(plain))
        base, lanes, target = plain, 1, None
        if plain.kind in _VECTORS:
            lanes = max(1, clang.element_count(plain))
            base = clang.canonical_type(clang.vector_element_type(plain))
        elif plain.kind == _POINTER:
            target = self.read(clang.pointee_type(plain))
        elif plain.kind in _ARRAYS:
            target = self.read(clang.element_type(plain))
        type_class = _classify(base.kind)
        is_number = type_class in (TypeClass.SIGNED, TypeClass.UNSIGNED, TypeClass.FLOAT)
        is_array = target is not None and plain.kind in _ARRAYS
        own_space = _SPACES.get(clang.address_space(qualified), "private")
        return TypeInfo(
            name=clang.take_string(clang.type_spelling(found)),
            type_class=type_class,
            lanes=lanes,
            bits=8 * clang.type_size_bytes(base) if is_number else 0,
            bytes=max(0, clang.type_size_bytes(plain)) if plain.kind in _SIZED else 0,
            space=target.space if target and is_array and own_space == "private" else own_space,
            target=target,
            is_const=bool(clang.is_const(qualified)),
            is_volatile=bool(clang.is_volatile(qualified)),
            is_restrict=bool(clang.is_restrict(qualified)),
        )


def _classify(kind: int) -> TypeClass:
    if kind in _SIGNED or kind == _ENUM:
        return TypeClass.SIGNED
    if kind in _UNSIGNED:
        return TypeClass.UNSIGNED
    if kind in _FLOATS:
        return TypeClass.FLOAT
    if kind in _ARRAYS:
        return TypeClass.ARRAY
    if kind in _FUNCTIONS:
        return TypeClass.FUNCTION
    named = {_VOID: TypeClass.VOID, _POINTER: TypeClass.POINTER, _RECORD: TypeClass.RECORD}
    return named.get(kind, TypeClass.OTHER)
