"""Who else wants to run: threads of other programs, and neither ours nor the kernel's.

The system's own count of runnable threads costs one read and is right where it says that there is
none beside the caller. Else it holds threads of a device that wait by spinning, have just ended a
launch, or build (PoCL's linker is a process of its own), and those that write to the disk what a
runtime puts into its cache: on an otherwise idle machine 20 of 33 new kernels on PoCL were taken
for busy by it. So the threads themselves are looked at.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_PROCESSES = Path("/proc")
_KERNEL = 2
"""The process whose children are threads of the kernel; a container does not see it."""
# A child process so young, in seconds, is a runtime's linker or has not kept anybody waiting yet.
_YOUNG_S = 1.0
# Columns of /proc/PID/stat behind the name: state, parent, and the start in ticks after the boot.
_STATE, _PARENT, _STARTED = 0, 1, 19


class _Process(NamedTuple):
    """What is told of a process."""

    state: str
    parent: int
    started_s: float


def count_others() -> int:
    """Count threads of other programs that run or want to; 0 where that cannot be read."""
    own = _count_own()
    try:
        running = int(_read("loadavg").split()[3].partition("/")[0])
    except (OSError, IndexError, ValueError):
        return 0
    if running <= 1:
        return 0
    if any(_list_running()):
        return max(running - max(own, _count_own()), 1)
    # What a container does not show may be others': ours are then all that is known not to be.
    is_all_seen = (_PROCESSES / str(_KERNEL)).is_dir()
    return 0 if is_all_seen else max(running - max(own, _count_own(), 1), 0)


def runs_besides(threads: Iterable[int | None]) -> bool:
    """Tell whether a thread of this process other than these runs or wants to."""
    own, left_out = os.getpid(), {f"{os.getpid()}/task/{number}/stat" for number in threads}
    return any(_is_running(told) for told in _list_threads(own) if told not in left_out)


def _count_own() -> int:
    """Count this process's threads that run or want to."""
    return sum(_is_running(one) for one in _list_threads(os.getpid()))


def _list_running() -> Iterator[bool]:
    """Tell of processes of other programs whether a thread runs; of each that can be read."""
    own = os.getpid()
    with suppress(OSError, ValueError, IndexError):
        youngest_s = float(_read("uptime").split()[0]) - _YOUNG_S
        for name in os.listdir(_PROCESSES):  # noqa: PTH208 - names
            if not name.isdigit() or int(name) in {own, _KERNEL}:
                continue
            process = _read_process(f"{name}/stat")
            if process is None or process.parent == _KERNEL:
                continue
            if process.parent == own and process.started_s > youngest_s:
                continue
            yield process.state == "R" or any(map(_is_running, _list_threads(int(name))))


def _list_threads(process: int) -> list[str]:
    """Give where the threads of a process are told of; none of one that has ended."""
    with suppress(OSError):
        tasks = os.listdir(_PROCESSES / f"{process}/task")  # noqa: PTH208 - names
        return [f"{process}/task/{one}/stat" for one in tasks]
    return []


def _is_running(told: str) -> bool:
    found = _read_process(told)
    return found is not None and found.state == "R"


def _read_process(told: str) -> _Process | None:
    """Read what is told of a process or thread; None of one that has ended."""
    with suppress(OSError, ValueError, IndexError):
        columns = _read(told).rpartition(")")[2].split()
        started_s = int(columns[_STARTED]) / os.sysconf("SC_CLK_TCK")
        return _Process(columns[_STATE], int(columns[_PARENT]), started_s)
    return None


def _read(name: str) -> str:
    return (_PROCESSES / name).read_text(encoding="utf-8", errors="replace")
