"""Processes that are ready before they are asked, each for one kernel of one caller.

In a process that has run a stranger's kernel another stranger's could be waited for. So each
begins with nobody: it has opened its device and waits. The first launch takes it over for its
kernel, and it serves no other one, nor the same one of anybody else. A new size of a kernel finds
its process warm. A stranger's source is not read in this process either, but in those; where
nothing is to be run, in one of the same kind that opens no device.
"""

import hashlib
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from cachetools import LRUCache

from kernelcast.predictor.answering.executors import (
    MODEL,
    SAMPLE,
    ReportProgress,
    take_outcome,
)
from kernelcast.predictor.answering.tasks import (
    EstimateOutcome,
    EstimateTask,
    ModelOutcome,
    ModelTask,
)
from kernelcast.records.arguments import ScalarArgument
from kernelcast.records.errors import KernelcastError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.workers import Confinement, SharedFile, Task, WarmChild, take_result

_READY: Final = "kernelcast.predictor.answering.child_tasks:make_ready_fully:{}"
_COUNT: Final = Task(
    entry="kernelcast.launches.source_work:count_problem", returns=tuple[float, ...]
)
_TAKE_TURNS: Final = "kernelcast.sampling.core_turns:take_turns_by"
_NO_DEVICE: Final = ""
"""Processes that only read sources count as a device's that is none."""
_IDLE_S: Final = 30.0
"""A process that has run a kernel, and is not asked for so long, gives its memory back."""
_APART_S: Final = 1.0
"""To start a process takes both cores of a small machine half a second, and other sizes of a kernel
are often asked for at once."""
_KERNELS_KEPT: Final = 2
"""Of each device."""
_MOST_COUNTED: Final = 4096
_COUNTING_TIMEOUT_S: Final = 5.0
_MOST_INSTRUCTIONS: Final = 1e12
"""Of a work-item: nobody would wait for its end. What counts is a stranger's word."""
_Counted = tuple[str, NDRange, tuple[tuple[int | float, ...], ...]]
_caller: ContextVar[str] = ContextVar("caller", default="")


@contextmanager
def asked_by(caller: str) -> Iterator[None]:
    """Have samplings within the block be a caller's."""
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


@dataclass(slots=True)
class SingleKernelProcesses:
    """Asks devices in processes that serve one kernel of one caller each; an `Executor`.

    Parameters
    ----------
    confinement : Confinement or None
        What they may see; None: what we see.
    turns : Path or None
        File by which they take turns on processors that their devices share; None: they take none.
    apart_s : float
        Time after a sampling until further processes are started to wait, in seconds.

    Notes
    -----
    Threads may share one; one sampling at a time runs on a device. `close` ends the processes.
    """

    samples_here: ClassVar = True
    confinement: Confinement | None = None
    turns: Path | None = None
    apart_s: float = _APART_S
    _spares: dict[str, WarmChild] = field(default_factory=dict)
    _kernels: "OrderedDict[tuple[str, str, str], WarmChild]" = field(default_factory=OrderedDict)
    _counted: LRUCache[_Counted, float | None] = field(
        default_factory=lambda: LRUCache(_MOST_COUNTED)
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ready_for: tuple[str, ...] = ()
    _at_work: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    _is_closed: bool = False
    _timer: threading.Timer | None = None

    def make_ready(self, device_ids: Sequence[str]) -> None:
        """Start a process for each device that has none, and wait for none; keep it so."""
        with self._lock:
            self._ready_for = tuple(device_ids)
            self._start_spares()

    def sample(
        self, task: EstimateTask, *, timeout_s: float, report: ReportProgress
    ) -> EstimateOutcome:
        """Sample a launch; what crashes while features are made does not cost the samples.

        Raises
        ------
        KernelcastError
            What the task raised; that the process died or did not answer in time.
        """
        device_id = task.device_id
        with self._hold(device_id, task.problem.kernel) as child:
            messages = child.stream(SAMPLE, task, timeout_s=timeout_s, subject=device_id)
            return take_outcome(messages, device_id, report)

    def model(self, task: ModelTask, *, timeout_s: float, report: ReportProgress) -> ModelOutcome:
        """Ask the analytic model alone, which needs no device.

        Raises
        ------
        KernelcastError
            If the model has no answer; that the process died or did not answer in time.
        """
        with self._hold(_NO_DEVICE, task.problem.kernel) as child:
            messages = child.stream(MODEL, task, timeout_s=timeout_s, subject=task.device_id)
            return take_result(MODEL, messages, task.device_id, report)

    def count_work(self, problem: Problem, device_id: str, *, asks: bool) -> float | None:
        """Count the instructions of a launch by its source; None where that does not tell."""
        scalars = (one.values for one in problem.arguments if isinstance(one, ScalarArgument))
        key = (problem.kernel.digest, problem.ndrange, tuple(scalars))
        with self._lock:
            if key in self._counted or not asks:
                return self._counted.get(key)
        with suppress(KernelcastError):  # whoever asks for the launch is told what is wrong with it
            with self._hold(device_id, problem.kernel) as child:
                subject = device_id or problem.kernel.name
                messages = child.stream(
                    _COUNT, problem, timeout_s=_COUNTING_TIMEOUT_S, subject=subject
                )
                told = take_result(_COUNT, messages, subject)
            found = _check_count(told, problem.ndrange.work_item_count)
            with self._lock:
                self._counted[key] = found
            return found
        return None

    def close(self) -> None:
        """End all processes, and start no further one."""
        with self._lock:
            self._is_closed = True
            if self._timer is not None:
                self._timer.cancel()
            children = [*self._spares.values(), *self._kernels.values()]
            self._spares.clear()
            self._kernels.clear()
        for one in children:
            one.close()

    @contextmanager
    def _hold(self, device_id: str, kernel: Kernel) -> Iterator[WarmChild]:
        """Give the process of a caller's kernel, and start further ones after its work."""
        key = (device_id, _digest_source(kernel), _caller.get())
        child = self._begin(key)
        try:
            yield child
        finally:
            with self._lock:
                self._at_work[key] -= 1
                self._at_work += Counter()  # without those that are done
                self._start_spares_soon()

    def _begin(self, key: tuple[str, str, str]) -> WarmChild:
        """Give the process of a caller's kernel: its own, or the one that waits for anybody."""
        device_id = key[0]
        with self._lock:
            self._at_work[key] += 1
            child = self._kernels.pop(key, None)
            if child is None:
                child = self._spares.pop(device_id, None) or self._make()
            self._kernels[key] = child
            of_device = [
                one
                for one in self._kernels
                if one[0] == device_id and (one == key or one not in self._at_work)
            ]
            dropped = [self._kernels.pop(one) for one in of_device[:-_KERNELS_KEPT]]
        for one in dropped:
            one.close()
        return child

    def _make(self) -> WarmChild:
        shared = None if self.turns is None else SharedFile(self.turns, _TAKE_TURNS)
        return WarmChild(_IDLE_S, self.confinement, shared)

    def _start_spares_soon(self) -> None:
        """Start what is missing once nobody has asked for a while: who asks again comes first."""
        if self._timer is not None:
            self._timer.cancel()
        if all(one in self._spares for one in self._ready_for):
            return
        if not self.apart_s:
            self._start_spares()
            return
        self._timer = threading.Timer(self.apart_s, self._start_spares_now)
        self._timer.daemon = True
        self._timer.start()

    def _start_spares_now(self) -> None:
        with self._lock:
            self._start_spares()

    def _start_spares(self) -> None:
        """Start what is missing, unless a sampling is at work, which that would disturb."""
        if self._is_closed or self._at_work:
            return
        for device_id in self._ready_for:
            if device_id not in self._spares:
                spare = self._make()
                spare.start([_READY.format(device_id)])
                self._spares[device_id] = spare


def _check_count(told: tuple[float, ...], work_items: int) -> float | None:
    """Give the count that a process has told, if it can be one."""
    if len(told) != 1 or not work_items <= told[0] <= _MOST_INSTRUCTIONS * work_items:
        return None
    return told[0]


def _digest_source(kernel: Kernel) -> str:
    """Name a kernel by what is compiled: other names and arguments find the same process."""
    return hashlib.sha256(repr((kernel.source, kernel.build_options)).encode()).hexdigest()
