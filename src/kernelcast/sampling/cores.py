"""Processors of the host: which this process uses, what it works on them, whose turn it is.

Whoever builds and fills buffers shares the processors with others who do; who times work-groups has
them alone. Each waits for a while at most: a process whose kernel hangs stops no other one.
"""

import fcntl
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress

from kernelcast.records.errors import InputError
from kernelcast.sampling.contention_meter import list_threads

_PATTERN = re.compile(r"\d+(-\d+)?(\+\d+(-\d+)?)*")


class CoreTurns:
    """Turns of this process, of at most some wait; none before there is a file to lock."""

    def __init__(self, most_s: float = 1.0) -> None:
        self._most_s = most_s
        self._descriptor: int | None = None

    def use(self, descriptor: int) -> None:
        """Take turns with the processes that have opened the same file, each by itself."""
        os.set_inheritable(descriptor, False)  # compilers that drivers start must not keep it open
        self._descriptor = descriptor

    def preparing(self) -> AbstractContextManager[None]:
        return self._holding(fcntl.LOCK_SH)

    def measuring(self) -> AbstractContextManager[None]:
        """Let nobody else prepare or measure meanwhile; a turn of this process ends before."""
        return self._holding(fcntl.LOCK_EX)

    @contextmanager
    def _holding(self, kind: int) -> Iterator[None]:
        if self._descriptor is None:
            yield
            return
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        ends_s = time.monotonic() + self._most_s
        while True:
            try:
                fcntl.flock(self._descriptor, kind | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= ends_s:
                    break
                time.sleep(1e-3)
        try:
            yield
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)


TURNS = CoreTurns()


def take_turns_by(descriptor: str) -> None:
    TURNS.use(int(descriptor))


def read_work(threads: Sequence[int] = ()) -> dict[int, float]:
    """Read the processor time of threads, 0 for whichever calls, or of all of this process, in
    seconds by their numbers; of none where the system does not tell."""
    # Linux's clock of a process counts a thread on another processor up to its last tick only,
    # which may be four milliseconds ago; a thread's own clock is exact.
    found = {}
    for number in threads or [int(one.rpartition("/")[2]) for one in list_threads(os.getpid())]:
        with suppress(OSError):  # it has just ended
            # clock_gettime(2): bits of the clock that counts one thread's nanoseconds.
            clock = (~(number or threading.get_native_id()) << 3) | 0b110
            found[number] = time.clock_gettime(clock)
    return found


def read_cores(text: str) -> tuple[int, ...]:
    if not _PATTERN.fullmatch(text):
        msg = f"cores {text!r}: give numbers and ranges joined by +, for example 0 or 0-3 or 0+2"
        raise InputError(msg)
    found: list[int] = []
    for part in text.split("+"):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(dict.fromkeys(found))


def bind_to_cores(cores: Sequence[int], environment: MutableMapping[str, str] = os.environ) -> None:
    """Bind this process to cores; to be called before a runtime is loaded."""
    if not cores:
        return
    if sys.platform != "linux":
        raise InputError("processes cannot be bound to cores on this system; leave the cores out")
    try:
        os.sched_setaffinity(0, cores)
    except OSError as error:
        allowed = ", ".join(str(one) for one in sorted(os.sched_getaffinity(0)))
        msg = f"cores {list(cores)}: cannot be used ({error.strerror}); there are: {allowed}"
        raise InputError(msg) from error
    count = str(len(cores))
    # Runtimes start a thread per core of the machine, and PoCL ties each to a core of its choice.
    environment.update(
        {
            "POCL_AFFINITY": "0",
            "POCL_MAX_PTHREAD_COUNT": count,  # PoCL up to 4
            "POCL_CPU_MAX_CU_COUNT": count,  # PoCL from 4 on
            "LP_NUM_THREADS": count,  # llvmpipe
            "DPCPP_CPU_NUM_CUS": count,  # Intel's runtime
        }
    )
