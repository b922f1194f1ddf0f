"""What a child process can be asked to do: a function of plain records, named by its module."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import NoneType
from typing import Any, Generic, TypeVar

R = TypeVar("R")
MOST_BYTES = 16 << 20
"""Of a message: the trace of 10,000 work-groups takes 2 MB."""
BESIDE = "&"
"""Begins what a child process gets ready while it does orders already."""
COUNTING = "counting"
"""Stage in which a copy of the kernel runs that counts what it does."""
BUILDING = "building the kernel"
"""Stage in which a device's compiler works, and nothing of the kernel runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(Generic[R]):
    """A function for a child process, and what it may answer."""

    entry: str
    """``module:function``; the child imports the module. The function takes the arguments and a
    `Reporter` of `kernelcast.workers.protocol`."""
    returns: type[R] = NoneType  # type: ignore[assignment]  # a task without result has R = None
    """Of its result: a record, plain value, container or union of them."""
    gives: Any = NoneType
    """Of what it hands over before the end."""
    most_items: int = 1_000_000
    """That it may hand over; more are no answer."""
    most_bytes: int = MOST_BYTES
    """Of a message."""
    is_timed_as_a_whole: bool = False
    """Whether its time limit goes on when it hands something over; else it is counted anew."""

    @property
    def name(self) -> str:
        return self.entry.partition(":")[2]


def find_function(entry: str) -> Callable[[Any, Any], Any]:
    module, _, name = entry.partition(":")
    found: Callable[[Any, Any], Any] = getattr(import_module(module), name)
    return found
