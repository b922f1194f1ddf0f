"""A number that says where it comes from, so that a guess stays visible as a guess."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

T = TypeVar("T", int, float, str, bool)


class TraitSource(StrEnum):
    """Where a number was obtained."""

    REPORTED = "reported"
    """The driver said so."""
    MEASURED = "measured"
    """It was measured here."""
    ASSUMED = "assumed"
    """Nobody said so; it is our default."""
    COMPUTED = "computed"
    """It follows from published rules and reported numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trait(Generic[T]):
    """One value with its source.

    Examples
    --------
    >>> Trait(value=8, source=TraitSource.REPORTED)
    Trait(value=8, source=<TraitSource.REPORTED: 'reported'>)
    """

    value: T
    source: TraitSource
