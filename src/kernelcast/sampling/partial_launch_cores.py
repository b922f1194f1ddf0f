"""Puts a device onto some of the processor's cores; all before its runtime is loaded."""

import os
import re
import sys
from collections.abc import MutableMapping, Sequence

from kernelcast.records.errors import InputError

_PATTERN = re.compile(r"\d+(-\d+)?(\+\d+(-\d+)?)*")


def read_cores(text: str) -> tuple[int, ...]:
    if not _PATTERN.fullmatch(text):
        msg = f"cores {text!r}: give numbers and ranges joined by +, for example 0 or 0-3 or 0+2"
        raise InputError(msg)
    found: list[int] = []
    for part in text.split("+"):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(dict.fromkeys(found))


def thread_settings(cores: Sequence[int]) -> dict[str, str]:
    """Give the variables that keep CPU runtimes from starting a thread per core of the machine,
    which PoCL would tie to cores of its own choice."""
    count = str(len(cores))
    return {
        "POCL_AFFINITY": "0",
        "POCL_MAX_PTHREAD_COUNT": count,  # PoCL up to 4
        "POCL_CPU_MAX_CU_COUNT": count,  # PoCL from 4 on
        "LP_NUM_THREADS": count,  # llvmpipe
        "DPCPP_CPU_NUM_CUS": count,  # Intel's runtime
    }


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
    environment.update(thread_settings(cores))
