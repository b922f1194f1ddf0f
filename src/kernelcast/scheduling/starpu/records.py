"""What a performance model of StarPU holds, in seconds and bytes."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from kernelcast.records.errors import InputError

_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORKER = re.compile(r"(?P<kind>cpu|cuda|opencl)(?P<device>\d*)(?:_impl(?P<implementation>\d))?")
_LARGEST_FOOTPRINT = 2**32 - 1
MOST_IMPLEMENTATIONS = 4
"""``STARPU_MAXIMPLEMENTATIONS`` of Debian's build."""


class WorkerKind(IntEnum):
    """``enum starpu_worker_archtype``."""

    CPU = 0
    CUDA = 1
    OPENCL = 2


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Worker:
    """A kind of worker, as performance models tell them apart."""

    kind: WorkerKind
    """CPU, CUDA or OpenCL."""
    device: int = 0
    """StarPU's number of the device; 0 for every CPU core, which count as equal."""
    implementation: int = 0
    """Which of the codelet's functions for this kind."""

    def __str__(self) -> str:
        return f"{self.kind.name.lower()}{self.device}_impl{self.implementation}"


def parse_worker(text: str) -> Worker:
    """Read a worker such as ``cpu``, ``opencl0`` or ``cpu0_impl1``.

    Examples
    --------
    >>> str(parse_worker("opencl1"))
    'opencl1_impl0'
    """
    match = _WORKER.fullmatch(text.strip().lower())
    if match is None:
        msg = f"worker {text!r}: expected cpu, openclN or cudaN, for example opencl0 or cpu0_impl1"
        raise InputError(msg)
    worker = Worker(
        kind=WorkerKind[match["kind"].upper()],
        device=int(match["device"] or 0),
        implementation=int(match["implementation"] or 0),
    )
    if worker.kind is WorkerKind.CPU and worker.device:
        msg = f"worker {text!r}: StarPU has one model for all CPU cores; write cpu"
        raise InputError(msg)
    if worker.implementation >= MOST_IMPLEMENTATIONS:
        msg = f"worker {text!r}: StarPU numbers implementations 0 to {MOST_IMPLEMENTATIONS - 1}"
        raise InputError(msg)
    return worker


def check_symbol(symbol: str) -> None:
    """Make sure that a name can be the symbol of a performance model."""
    if not _SYMBOL.fullmatch(symbol):
        msg = f"codelet {symbol!r}: expected letters, digits and underscores"
        raise InputError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """How long a codelet takes on a worker at one size."""

    footprint: int
    """Under which StarPU looks it up, 32 bits."""
    size_bytes: int
    """What regressions are over: bytes of the task's data, or what ``size_base`` gives."""
    seconds: float
    """Mean time."""
    deviation_s: float = 0.0
    """Standard deviation, in seconds."""
    flops: float = 0.0
    """Operations of the task as the program sets ``starpu_task.flops``; 0 where it does not."""
    samples: int = 10
    """Measurements that it counts as."""

    def __post_init__(self) -> None:
        if not 0 <= self.footprint <= _LARGEST_FOOTPRINT:
            msg = f"footprint {self.footprint}: expected 0 to {_LARGEST_FOOTPRINT} (32 bits)"
            raise InputError(msg)
        if self.size_bytes < 1 or self.samples < 1:
            msg = (
                f"entry {self.footprint:08x}: size {self.size_bytes}, {self.samples} samples; "
                "expected at least 1 of both"
            )
            raise InputError(msg)
        others = (self.deviation_s, self.flops)
        if not 0 < self.seconds < math.inf or not all(0 <= one < math.inf for one in others):
            msg = (
                f"entry {self.footprint:08x}: {self.seconds} s, deviation {self.deviation_s} s, "
                f"{self.flops} flops; expected a positive time, and no negative number"
            )
            raise InputError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeletModel:
    """The performance model of one codelet."""

    symbol: str
    """``starpu_perfmodel.symbol``."""
    entries: Mapping[Worker, tuple[Entry, ...]]
    """At least one worker, each with at least one entry; footprints of a worker differ."""

    def __post_init__(self) -> None:
        check_symbol(self.symbol)
        if not self.entries or not all(self.entries.values()):
            msg = f"codelet {self.symbol}: has no times; give at least one worker and size"
            raise InputError(msg)
        for worker, entries in self.entries.items():
            found = [one.footprint for one in entries]
            if len(found) != len({*found}):
                msg = (
                    f"codelet {self.symbol} on {worker}: two sizes have one footprint; StarPU "
                    "cannot tell them apart either, give the codelet a size_base or footprint"
                )
                raise InputError(msg)
