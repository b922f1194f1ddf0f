"""A number that says where it comes from, so that a guess stays visible as a guess."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Generic, TypeVar

T = TypeVar("T", int, float, str, bool)
MaybeKnown = Annotated[float, "NaN where it is not known"]
"""A number that alone may come from a child process as NaN; all others are finite."""


class TraitSource(StrEnum):
    REPORTED = "reported"
    """The driver or the operating system said so."""
    MEASURED = "measured"
    ASSUMED = "assumed"
    """Nobody said so; it is our default."""
    COMPUTED = "computed"
    """It follows from published rules and reported numbers."""
    PUBLISHED = "published"
    """Somebody measured or documented it for this kind of device; `origin` says who."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trait(Generic[T]):
    """One value with its source."""

    value: T
    source: TraitSource
    low: T | None = None
    high: T | None = None
    """95 % interval of a measured number."""
    origin: str = ""
    """What told it: a benchmark, a document, a file."""
