"""Counters of Linux's perf_event_open, for kernels that run on this machine's processor."""

import errno
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import TypeVar

from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import DeviceError
from kernelcast.records.hardware_counts import HardwareCount, HardwareCounts
from kernelcast.sampling.hardware_counters.perf_syscalls import (
    PerfEvent,
    Reading,
    open_counter,
    read_counter,
    start_counter,
    stop_counter,
)
from kernelcast.sampling.hardware_counters.provider import Availability

T = TypeVar("T")

_HARDWARE, _SOFTWARE, _CACHE = 0, 1, 3
_READS, _READ_MISSES = 0x00000, 0x10000
_L1D, _LAST_LEVEL, _DATA_TLB = 0, 2, 3
# include/uapi/linux/perf_event.h: perf_hw_id, perf_hw_cache_id, perf_sw_ids.
HARDWARE_EVENTS = (
    *(
        PerfEvent(name=name, kind=_HARDWARE, config=config)
        for config, name in enumerate((
            "cycles", "instructions", "cache_references", "cache_misses", "branches",
            "branch_misses",
        ))
    ),
    PerfEvent(name="l1d_reads", kind=_CACHE, config=_L1D | _READS),
    PerfEvent(name="l1d_read_misses", kind=_CACHE, config=_L1D | _READ_MISSES),
    PerfEvent(name="last_level_reads", kind=_CACHE, config=_LAST_LEVEL | _READS),
    PerfEvent(name="last_level_read_misses", kind=_CACHE, config=_LAST_LEVEL | _READ_MISSES),
    PerfEvent(name="data_tlb_read_misses", kind=_CACHE, config=_DATA_TLB | _READ_MISSES),
)  # fmt: skip
SOFTWARE_EVENTS = (
    PerfEvent(name="task_clock_ns", kind=_SOFTWARE, config=1),
    PerfEvent(name="page_faults", kind=_SOFTWARE, config=2),
    # The kernel itself switches: without its part there is nothing to count.
    PerfEvent(name="context_switches", kind=_SOFTWARE, config=3, is_user_only=False),
)
_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
_THREADS = Path("/proc/self/task")
_TRIES = 5
_ADVICE = {
    errno.ENOENT: "the processor, or the virtual machine around it, has no such counter; count on "
    "the bare machine, or have its host pass the counters through",
    errno.ENOSYS: "this system has no perf_event_open that is known here; use 64-bit Linux",
    errno.EMFILE: "each thread takes a file descriptor per event; raise `ulimit -n`",
    errno.EBUSY: "another user holds the counters; end other profilers",
}
_NOT_ALLOWED = (errno.EPERM, errno.EACCES)
_NO_COUNTER = (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV, errno.EINVAL)


class PerfEventCounters:
    """Counts what all threads of this process do; a `HardwareCounterProvider`.

    Parameters
    ----------
    events : sequence of PerfEvent
        What to count; the processor's own events when left out.

    Notes
    -----
    The runtimes' worker threads exist before the work begins, so a counter is opened on each
    thread there is, and is inherited by those that they start. The calling thread is one of
    them: its part, enqueueing and waiting, is counted too.

    Examples
    --------
    >>> counters = PerfEventCounters(SOFTWARE_EVENTS)
    >>> if counters.probe().is_available:
    ...     total, counts = counters.count(lambda: sum(range(100_000)))
    ...     assert counts.by_name["task_clock_ns"] > 0
    """

    def __init__(self, events: Sequence[PerfEvent] = HARDWARE_EVENTS) -> None:
        self._events = tuple(events)

    @property
    def name(self) -> str:
        """Short name, stored with the counts."""
        return "perf_event"

    @property
    def device_kinds(self) -> frozenset[DeviceKind]:
        """Kernels that run in this process: those of CPU devices."""
        return frozenset({DeviceKind.CPU})

    def probe(self) -> Availability:
        """Try each event on the calling thread."""
        events, refusals = self._sort_out()
        if events:
            names = tuple(event.name for event in events)
            return Availability(
                is_available=True, reason=f"counts {', '.join(names)}", counter_names=names
            )
        reason = "; ".join(dict.fromkeys(refusals))
        return Availability(is_available=False, reason=reason or "no events were asked for")

    def count(self, work: Callable[[], T]) -> tuple[T, HardwareCounts]:
        """Run some work and count what this process's threads do meanwhile."""
        events, _ = self._sort_out()
        if not events:
            msg = f"{self.name}: {self.probe().reason}"
            raise DeviceError(msg)
        with ExitStack() as stack:
            try:
                opened = _open_everywhere(events, stack)
                _for_each(start_counter, opened)
            except OSError as error:
                msg = f"{self.name}: {explain_refusal(error.errno or 0, read_paranoia())}"
                raise DeviceError(msg) from error
            result = work()
            _for_each(stop_counter, opened)
            readings = {
                event.name: [read_counter(one) for one in descriptors]
                for event, descriptors in opened.items()
            }
        return result, HardwareCounts(provider=self.name, counts=add_up(readings))

    def _sort_out(self) -> tuple[list[PerfEvent], list[str]]:
        """Give the events that can be opened, and why the others cannot."""
        events, refusals = [], []
        paranoia = read_paranoia()
        for event in self._events:
            try:
                os.close(open_counter(event))
            except OSError as error:
                code = error.errno or 0
                refusals.append(explain_refusal(code, paranoia, is_user_only=event.is_user_only))
            else:
                events.append(event)
        return events, refusals


def add_up(readings: Mapping[str, Sequence[Reading]]) -> tuple[HardwareCount, ...]:
    """Add up each counter's readings over all threads and scale them to the whole time.

    All threads are scaled together: one that was too short for the counter to get its turn is
    then taken to be like the others.

    Returns
    -------
    tuple of HardwareCount
        Counters that never ran are left out.

    Examples
    --------
    >>> half = Reading(value=50, enabled_ns=20, running_ns=10)
    >>> (count,) = add_up({"cycles": [half, half]})
    >>> count.value, count.running_share
    (200, 0.5)
    """
    counts = []
    for name, parts in readings.items():
        enabled_ns = sum(part.enabled_ns for part in parts)
        running_ns = sum(part.running_ns for part in parts)
        if running_ns > 0:
            value = sum(part.value for part in parts)
            scaled = value if running_ns >= enabled_ns else round(value * enabled_ns / running_ns)
            share = min(1.0, running_ns / enabled_ns)
            counts.append(HardwareCount(name=name, value=scaled, running_share=share))
    return tuple(counts)


def explain_refusal(code: int, paranoia: int | None, *, is_user_only: bool = True) -> str:
    """Say why the system refuses a counter, and what to do.

    Parameters
    ----------
    code : int
        ``errno`` of the refusal.
    paranoia : int or None
        Content of ``/proc/sys/kernel/perf_event_paranoid``; None where it cannot be read.
    is_user_only : bool
        Whether the counter leaves out what the kernel does.

    Examples
    --------
    >>> explain_refusal(errno.EACCES, 4)  # doctest: +ELLIPSIS
    'not allowed: perf_event_paranoid is 4; set it to 2 or less (`sysctl -w kernel.perf_event...
    """
    if code in _NOT_ALLOWED:
        return _explain_prohibition(paranoia, 2 if is_user_only else 1)
    if code in _NO_COUNTER:
        return _ADVICE[errno.ENOENT]
    return _ADVICE.get(code, f"perf_event_open failed: {os.strerror(code)}")


def read_paranoia() -> int | None:
    """Read how much the system keeps counters from its users; None where it does not say."""
    try:
        return int(_PARANOID.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _explain_prohibition(paranoia: int | None, highest: int) -> str:
    # Up to 2 a process may count what its threads do themselves, up to 1 also what the kernel
    # does for them; from 3 on (Debian's and Android's own addition) nothing. Below that, only a
    # container's filter stands in the way.
    if paranoia is not None and paranoia > highest:
        return (
            f"not allowed: perf_event_paranoid is {paranoia}; set it to {highest} or less "
            f"(`sysctl -w kernel.perf_event_paranoid={highest}`), or give the process CAP_PERFMON"
        )
    said = "cannot be read" if paranoia is None else f"is {paranoia}, which would do"
    return (
        f"not allowed, although perf_event_paranoid {said}: a container's system call filter "
        "forbids it; start the container with --cap-add=PERFMON or a filter that allows "
        "perf_event_open"
    )


def _open_everywhere(events: Iterable[PerfEvent], stack: ExitStack) -> dict[PerfEvent, list[int]]:
    """Open each event on each thread; the stack closes the counters.

    A thread that is born meanwhile would be missed, or counted twice if it inherits and is then
    opened as well: where the threads have changed, all is done again.
    """
    wanted = list(events)
    for _ in range(_TRIES):
        before = _list_threads()
        attempt = stack.enter_context(ExitStack())
        opened: dict[PerfEvent, list[int]] = {event: [] for event in wanted}
        for thread_id, event in product(before, wanted):
            try:
                descriptor = open_counter(event, thread_id)
            except ProcessLookupError:  # the thread has ended
                continue
            attempt.callback(os.close, descriptor)
            opened[event].append(descriptor)
        if _list_threads() == before:
            return opened
        attempt.close()
    msg = f"threads come and go too fast to be counted ({_TRIES} tries)"
    raise DeviceError(msg)


def _list_threads() -> list[int]:
    return sorted(int(entry.name) for entry in _THREADS.iterdir())


def _for_each(act: Callable[[int], None], opened: Mapping[PerfEvent, Sequence[int]]) -> None:
    for descriptors in opened.values():
        for descriptor in descriptors:
            act(descriptor)
