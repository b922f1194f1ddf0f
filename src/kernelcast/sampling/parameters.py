"""A kernel's signature, as a compiler or a parser sees it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a kernel."""

    index: int
    """Position, from 0."""
    name: str
    """As in the source, like its type."""
    type_name: str
    """Without qualifiers; ``float*`` for a pointer."""
    address_space: str
    """``global``, ``constant``, ``local`` or ``private``."""
    is_const: bool
    """Whether the pointed-to data, or the image, may not be written."""
    is_known: bool = True
    """False where neither driver nor source tell: then nothing can be checked."""
    value_bytes: int = 0
    """Of a value, a structure's too; 0 where the source does not tell, and for pointers."""

    def __str__(self) -> str:
        space = "" if self.address_space == "private" else f"{self.address_space} "
        const = "const " if self.is_const else ""
        return f"{self.index} ({space}{const}{self.type_name} {self.name})"
