"""How long the threads of this process have waited for a processor."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

_THREADS = Path("/proc/self/task")
_NANOSECOND = 1e-9
# Threads that did less than this share of what the busiest did have only looked on: what those
# waited that wake at the end of a launch made no launch longer.
_WORKS = 0.2
_OWN_SHARE = 0.5


class Waiting(NamedTuple):
    """Seconds on a processor, and seconds ready to run without one."""

    worked_s: float
    waited_s: float


ThreadsWaiting: TypeAlias = Mapping[str, Waiting]
"""What each thread has worked and waited so far; empty where the system does not tell."""


def read_waiting() -> ThreadsWaiting:
    """Read what the threads of this process have worked and waited so far."""
    found = {}
    with suppress(OSError):
        for one in _THREADS.iterdir():
            with suppress(OSError):  # it has just ended
                found[one.name] = parse_waiting(one / "schedstat")
    return found


def parse_waiting(path: Path) -> Waiting:
    """Read what the system tells of a thread."""
    worked, waited, *_ = path.read_text(encoding="ascii").split()
    return Waiting(int(worked) * _NANOSECOND, int(waited) * _NANOSECOND)


def add_up_workers(before: ThreadsWaiting, after: ThreadsWaiting) -> Waiting:
    """Add up what the threads that worked between two readings have worked and waited.

    Examples
    --------
    >>> before = {"7": Waiting(1.0, 0.0), "8": Waiting(0.0, 0.0)}
    >>> add_up_workers(before, {"7": Waiting(2.0, 2.0), "8": Waiting(0.01, 0.5)})
    Waiting(worked_s=1.0, waited_s=2.0)
    """
    none = Waiting(0.0, 0.0)
    spent = [
        Waiting(*(b - a for a, b in zip(before.get(name, none), one, strict=True)))
        for name, one in after.items()
    ]
    most_s = max((one.worked_s for one in spent), default=0.0)
    workers = [one for one in spent if one.worked_s > _WORKS * most_s]
    return Waiting(sum(one.worked_s for one in workers), sum(one.waited_s for one in workers))


def find_waiting(before: ThreadsWaiting, after: ThreadsWaiting, seconds: float) -> Waiting | None:
    """Add up what threads have worked and waited for a launch of some length between readings.

    None where they were busy for less than half of it: it ran elsewhere.
    """
    found = add_up_workers(before, after)
    is_own = found.worked_s > 0 and found.worked_s + found.waited_s >= _OWN_SHARE * seconds
    return found if is_own else None


def leave_waiting_out(clock_s: float, before: ThreadsWaiting, after: ThreadsWaiting) -> float:
    """Give what a launch would have lasted if its threads had not waited for processors.

    Parameters
    ----------
    clock_s : float
        What it lasted, in seconds.
    before, after : mapping of str to Waiting
        Readings around it.
    """
    worked_s, waited_s = add_up_workers(before, after)
    return clock_s * worked_s / (worked_s + waited_s) if worked_s else clock_s
