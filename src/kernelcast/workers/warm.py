"""Child processes that stay: only the first task of each waits for its start.

Starting Python, the drivers and a device takes tenths of a second, ten times as long as a sampling.
A driver's crash or hang still ends the child and not us: the next task starts another.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelcast.records.errors import InputError, KernelRunError
from kernelcast.workers.process import ChildProcess
from kernelcast.workers.protocol import Message
from kernelcast.workers.running import UnheardError, converse
from kernelcast.workers.task import Task

SPARE = ""
"""Key of a child that belongs to nobody yet: the first task of a new key takes it over."""
IDLE_S = 30.0
"""A child without a task ends after so long, and gives its device's memory back."""
MOST_TASKS = 200
"""Programs and their buffers are remembered: after so many tasks the memory is given back."""


@dataclass(slots=True)
class _Place:
    """One child, or room for one."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    child: ChildProcess | None = None
    done: int = 0

    def take(self, idle_s: float, steps: Sequence[str] = ()) -> ChildProcess:
        """Give the child, starting one where there is none."""
        if self.child is None or self.done >= MOST_TASKS:
            self.drop()
            self.child = ChildProcess.start(idle_s=idle_s, steps=steps)
        self.done += 1
        return self.child

    def drop(self) -> None:
        child, self.child, self.done = self.child, None, 0
        if child is not None:
            child.end()


@dataclass(slots=True)
class WarmChildren:
    """A child process for each key, which does one task after the other.

    Parameters
    ----------
    idle_s : float
        A child without a task ends after so long, in seconds.

    Notes
    -----
    Threads may share one; tasks of one key wait for each other. `close` ends the children; they
    also end with this process, however it ends.
    """

    idle_s: float = IDLE_S
    _places: dict[str, _Place] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start_ahead(self, steps: Sequence[str]) -> None:
        """Start a spare child that gets ready while we do something else.

        Nothing happens where there are children already.

        Parameters
        ----------
        steps : sequence of str
            As of `kernelcast.workers.process.ChildProcess.start`.
        """
        with self._lock:
            if self._places:
                return
            place = self._places[SPARE] = _Place()
        with place.lock:
            place.take(self.idle_s, steps)

    def stream(
        self, key: str, task: Task[Any], arguments: object, *, timeout_s: float, subject: str
    ) -> Iterator[Message]:
        """Have the key's child do a task and give what it tells as it comes.

        Parameters
        ----------
        key : str
            Which child; `SPARE` for one that a later key may have.
        task, arguments, timeout_s, subject
            As of `kernelcast.workers.stream_isolated`.
        """
        with self._lock:
            if key not in self._places:
                is_spare = SPARE in self._places
                self._places[key] = self._places.pop(SPARE) if is_spare else _Place()
            place = self._places[key]
        with place.lock:
            for is_last_try in (False, True):
                try:
                    yield from converse(
                        place.take(self.idle_s), task, arguments,
                        timeout_s=timeout_s, subject=subject,
                    )  # fmt: skip
                except InputError:  # refused before anything ran: the child waits for the next task
                    raise
                except UnheardError as error:  # it had just ended: it was idle for too long
                    place.drop()
                    if is_last_try:
                        raise KernelRunError(str(error)) from None
                except BaseException:
                    # Whatever else went wrong, Ctrl-C and a listener that left included, the next
                    # task finds a device that was opened anew; a child at work must not go on.
                    place.drop()
                    raise
                else:
                    return

    def close(self) -> None:
        """End the children; the next task starts others."""
        with self._lock:
            places = [*self._places.values()]
        for place in places:
            with place.lock:
                place.drop()
