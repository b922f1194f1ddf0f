"""Declarations of arrays: name, type of the elements, extents."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kernelcast.expressions import Expr
from kernelcast.expressions.axes import bind_names
from kernelcast.features.written_accesses.parser import FUNCTIONS, KEYWORDS, Parser, Scope
from kernelcast.records.arguments import ElementType
from kernelcast.records.errors import InputError
from kernelcast.records.operations import MemorySpace

_NAME = re.compile(r"[A-Za-z_]\w*")
_EXTENTS = re.compile(r"\d+(?:x\d+)*")
_SPACES = (MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.LOCAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenArray:
    """An array that accesses name."""

    name: str
    """Its name."""
    element: ElementType
    """Type of one element."""
    extents: tuple[Expr, ...] = ()
    """Elements per dimension, the first dimension contiguous in memory, over scalars; empty if
    nobody knows where the array ends."""
    space: MemorySpace = MemorySpace.GLOBAL
    """Global, constant or local memory."""
    shift_bytes: int = 0
    """Offset of its first byte from a 128-byte boundary."""

    def count_bytes(self, scalars: Mapping[str, int]) -> int | None:
        """Give its size in bytes; None if its extents are not known.

        Raises
        ------
        InputError
            If an extent is not positive, or a scalar has no value.
        """
        if not self.extents:
            return None
        values = bind_names(scalars)
        size = self.element.bytes
        for axis, extent in enumerate(self.extents):
            count = int(extent.evaluate(values))
            if count < 1:
                msg = f"array {self.name!r}: extent {axis} is {count}; give at least 1"
                raise InputError(msg)
            size *= count
        return size


def read_array(text: str, scalars: Collection[str] = ()) -> WrittenArray:
    """Read a declaration ``NAME:TYPE[:EXTENTS]``.

    Parameters
    ----------
    text : str
        Extents are numbers joined by ``x``, or expressions over scalars joined by commas, the
        contiguous dimension first. The type may follow the word ``local`` or ``constant``.

    Raises
    ------
    InputError
        If it is no such declaration.

    Examples
    --------
    >>> array = read_array("src:float64:640x512x512")
    >>> array.count_bytes({})
    1342177280
    >>> [str(one) for one in read_array("a:local float32:n + 1,16", ["n"]).extents]
    ['n + 1', '16']
    """
    name, _, rest = text.partition(":")
    type_text, _, extents = rest.partition(":")
    if not type_text:
        msg = f"array {text!r}: expected NAME:TYPE:EXTENTS, such as src:float64:640x512x512"
        raise InputError(msg)
    parts = extents.split("x") if _EXTENTS.fullmatch(extents) else extents.split(",")
    return make_array(name.strip(), type_text, [one for one in parts if extents], scalars)


def make_array(
    name: str, type_text: str, extents: Collection[str], scalars: Collection[str] = ()
) -> WrittenArray:
    """Make an array of the texts of its parts.

    Raises
    ------
    InputError
        If the name is a keyword, or a part cannot be read.
    """
    if not _NAME.fullmatch(name) or name in KEYWORDS or name in FUNCTIONS:
        msg = f"array {name!r}: give it a name of letters and digits that is no keyword"
        raise InputError(msg)
    words = type_text.split()
    space = next((one for one in _SPACES if words and words[0] == one.value), None)
    try:
        element = ElementType.parse(" ".join(words[1:] if space else words))
        sizes = tuple(_read_extent(one, scalars) for one in extents)
    except InputError as error:
        msg = f"array {name!r}: {error}"
        raise InputError(msg) from error
    return WrittenArray(
        name=name, element=element, extents=sizes, space=space or MemorySpace.GLOBAL
    )


def _read_extent(text: str, scalars: Collection[str]) -> Expr:
    parser = Parser(text, Scope(scalars=scalars))
    extent = parser.expression()
    parser.end()
    if not extent.is_parameter:
        parser.fail("an extent is a number, or made of scalars", parser.tokens[0])
    if extent.constant_value is not None and extent.constant_value < 1:
        parser.fail("an extent is at least 1", parser.tokens[0])
    return extent
