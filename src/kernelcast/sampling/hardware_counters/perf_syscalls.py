"""Linux's counters at the level of the kernel's interface: open, start, stop, read."""

import ctypes
import errno
import os
import platform
import struct
import sys
from dataclasses import dataclass

if sys.platform == "linux":
    import fcntl

# arch/*/entry/syscalls of Linux; only machines whose ioctl numbers are those below.
_SYSCALL_NUMBERS = {
    "x86_64": 298,
    "aarch64": 241,
    "riscv64": 241,
    "loongarch64": 241,
    "s390x": 331,
}
# include/uapi/linux/perf_event.h: the first version of perf_event_attr is all that is needed.
_ATTRIBUTES = struct.Struct("=IIQQQQQIIQ")
_READ_FORMAT_TIMES = 0b11  # total time enabled, total time running
_READING = struct.Struct("=QQQ")
_DISABLED, _INHERIT, _EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR = 0, 1, 5, 6
_FLAG_CLOSE_ON_EXEC = 8
_IOCTL_ENABLE, _IOCTL_DISABLE = 0x2400, 0x2401


@dataclass(frozen=True, slots=True, kw_only=True)
class PerfEvent:
    """One event that Linux can count."""

    name: str
    kind: int
    """``perf_type_id``: 0 hardware, 1 software, 3 hardware cache."""
    config: int
    is_user_only: bool = True
    """Whether what the kernel does for the process is left out, which needs no privileges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a counter holds."""

    value: int
    enabled_ns: int
    """Time in which the thread ran while the counter was on."""
    running_ns: int
    """Of that, time in which the counter ran too."""


def is_supported() -> bool:
    """Tell whether system and processor are ones whose interface is known here."""
    return (
        sys.platform == "linux"
        and platform.machine() in _SYSCALL_NUMBERS
        and sys.maxsize > 2**32  # a 32-bit process has other numbers
    )


def open_counter(event: PerfEvent, thread_id: int = 0) -> int:
    """Open a stopped counter on one thread and those that it will start.

    Parameters
    ----------
    thread_id : int
        The thread; 0 for the calling one.

    Returns
    -------
    int
        A file descriptor.

    Raises
    ------
    OSError
        If the system refuses; ``ENOSYS`` where `is_supported` says no.
    """
    if not is_supported():
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    attributes = _pack_attributes(event)
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    descriptor = library.syscall(
        ctypes.c_long(_SYSCALL_NUMBERS[platform.machine()]),
        ctypes.create_string_buffer(attributes, len(attributes)),
        ctypes.c_long(thread_id),
        ctypes.c_long(-1),  # on any processor
        ctypes.c_long(-1),  # in no group
        ctypes.c_long(_FLAG_CLOSE_ON_EXEC),
    )
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(descriptor)


def start_counter(descriptor: int) -> None:
    """Start a counter and those that the thread's children inherited."""
    if sys.platform == "linux":
        fcntl.ioctl(descriptor, _IOCTL_ENABLE, 0)


def stop_counter(descriptor: int) -> None:
    """Stop a counter and those that the thread's children inherited."""
    if sys.platform == "linux":
        fcntl.ioctl(descriptor, _IOCTL_DISABLE, 0)


def read_counter(descriptor: int) -> Reading:
    """Read a counter, those of the thread's children added."""
    value, enabled_ns, running_ns = _READING.unpack(os.read(descriptor, _READING.size))
    return Reading(value=value, enabled_ns=enabled_ns, running_ns=running_ns)


def _pack_attributes(event: PerfEvent) -> bytes:
    bits = [_DISABLED, _INHERIT, _EXCLUDE_HYPERVISOR]
    if event.is_user_only:
        bits.append(_EXCLUDE_KERNEL)
    # The flags are bit fields: the first is the lowest bit on little-endian machines, else the
    # highest.
    places = bits if sys.byteorder == "little" else [63 - bit for bit in bits]
    return _ATTRIBUTES.pack(
        event.kind,
        _ATTRIBUTES.size,
        event.config,
        0,  # no sampling
        0,
        _READ_FORMAT_TIMES,
        sum(1 << place for place in places),
        0,
        0,
        0,
    )
