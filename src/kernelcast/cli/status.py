"""Exit statuses of the program."""

from collections.abc import Iterable
from enum import IntEnum

from kernelcast.records.errors import InputError, KernelcastError


class ExitStatus(IntEnum):
    """What the program's exit status says."""

    ANSWERED = 0
    """Every device answered."""
    FAILED = 1
    """A device failed, or there is none."""
    BAD_INPUT = 2
    """What was given cannot be used on any device."""
    INTERRUPTED = 130
    """Ctrl-C, as shells count it."""


def status_of(error: KernelcastError) -> ExitStatus:
    """Give the status of a program that ends with this error."""
    return ExitStatus.BAD_INPUT if isinstance(error, InputError) else ExitStatus.FAILED


def worst(statuses: Iterable[ExitStatus]) -> ExitStatus:
    """Give the status of several outcomes together.

    Examples
    --------
    >>> worst([ExitStatus.ANSWERED, ExitStatus.FAILED])
    <ExitStatus.FAILED: 1>
    """
    return max(statuses, default=ExitStatus.ANSWERED)
