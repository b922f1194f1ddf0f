"""Takes observed times: each is judged at once, and written beside the program."""

import atexit
import itertools
import math
import threading
import time
import uuid
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import islice
from typing import TYPE_CHECKING, Final

from cachetools import LRUCache

from kernelcast.predictor.answering.launch_history import see
from kernelcast.predictor.answering.memory import Memory
from kernelcast.predictor.answers import Answers
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.observation import Observation, ObservationFlag, Origin
from kernelcast.records.observed_times import MachineState, RunTimes
from kernelcast.sampling.machine_state import read_load
from kernelcast.sampling.plan import SAMPLER

if TYPE_CHECKING:
    from kernelcast.training_data.store import Store

_BATCH: Final = 2000
_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 5.0


class Observer:
    """Takes observed times, which change answers and are kept in memory; threads share one."""

    def __init__(self, answers: Answers, memory: Memory) -> None:
        self._answers = answers
        self._writer = ObservationWriter(lambda: memory.open(may_create=True))
        self._run, self._number = uuid.uuid4().hex, itertools.count()
        self._lock = threading.Lock()
        self._met: LRUCache[object, None] = LRUCache(100_000)
        """Keys of observations, and kernels with their local sizes and devices."""
        self._versions = {"kernelcast": version("kernelcast"), "sampler": str(SAMPLER)}
        self.flush, self.close = self._writer.flush, self._writer.close

    def observe(
        self,
        identity: LaunchIdentity,
        measured_s: float,
        *,
        is_first: bool | None,
        key: str,
        slowdown: float | None,
    ) -> frozenset[ObservationFlag]:
        """Judge an observation and keep it; see `kernelcast.Predictor.observe`."""
        if not 0 < measured_s < math.inf:
            raise InputError(f"measured time {measured_s} s: give positive seconds")
        if slowdown is not None and not 1 <= slowdown < math.inf:
            msg = f"slowdown {slowdown}: give how many times as long as alone it took, at least 1"
            raise InputError(msg)
        if key and not self._is_new(key):
            return frozenset()
        local = identity.ndrange.local_size if identity.ndrange else None
        is_new = self._is_new((identity.kernel.digest, local or (), identity.device.id))
        alone_s = float(measured_s) / (slowdown or 1.0)
        if slowdown is None and (meter := self._answers.meter) is not None:
            beside = meter.judge_run(identity.device.id, alone_s)
            if beside is not None and beside.is_noticeable:
                alone_s = beside.find_alone(alone_s)
        slowdown = float(measured_s) / alone_s
        one = Observation(
            launch=identity,
            runs=RunTimes(median_s=alone_s, durations_s=(alone_s,)),
            origin=Origin.OBSERVED,
            measurement=key or f"{self._run}-{next(self._number)}",
            machine_state=MachineState(
                load=read_load(), slowdown=slowdown if slowdown > 1 else None
            ),
            versions=self._versions,
            measured_at=datetime.now(UTC),
        )
        seen = replace(see(one), is_first=is_new if is_first is None else is_first)
        flags = self._answers.take(identity, seen)
        self._writer.add(replace(one, flags=flags))
        return flags

    def _is_new(self, name: object) -> bool:
        with self._lock:
            is_new = name not in self._met
            self._met[name] = None
            return is_new


class ObservationLostError(KernelcastError):
    """Is raised when a store takes no observations, and says how many are waiting or lost."""


class ObservationWriter:
    """Takes observations at once; a thread writes them in batches, and ends when none waits."""

    def __init__(self, open_store: Callable[[], "Store | None"]) -> None:
        self._open_store = open_store
        self._waiting: deque[Observation] = deque()
        self._taken = 0
        self._problem: KernelcastError | None = None
        self._is_closed = self._is_urgent = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, one: Observation) -> None:
        with self._changed:
            if self._is_closed:
                msg = "the predictor is closed: it takes no observations any more"
                raise ObservationLostError(msg)
            # About 100 MB: a store that has been away for so long will not come back by waiting.
            if len(self._waiting) >= 200_000:
                raise ObservationLostError(
                    f"{len(self._waiting):,} observations wait for a store that does not take "
                    f"them; this one is not taken ({self._problem})"
                )
            if not self._taken:  # what waits is written when the interpreter ends
                close = weakref.WeakMethod(self.close)
                atexit.register(lambda: (found := close()) and found())
            self._waiting.append(one)
            self._taken += 1
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="kernelcast-observations", daemon=True
                )
                self._thread.start()
            if len(self._waiting) == _BATCH:
                self._changed.notify_all()

    def flush(self, timeout_s: float = 30.0) -> None:
        with self._changed:
            goal = self._taken

            def count_left() -> int:
                return goal - self._taken + len(self._waiting)

            self._is_urgent = bool(self._waiting)
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: count_left() <= 0, timeout_s):
                raise ObservationLostError(
                    f"{count_left():,} observations are not in the store yet "
                    f"({self._problem or 'it is slow'}); they go on waiting"
                )

    def close(self, timeout_s: float = 30.0) -> None:
        """Write what waits, and take nothing more."""
        try:
            self.flush(timeout_s)
        finally:
            with self._changed:
                self._is_closed = True
                self._changed.notify_all()
                thread = self._thread
            if thread is not None:
                thread.join(timeout=_LONGEST_PAUSE_S)

    def _run(self) -> None:
        pause_s = _PAUSE_S
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._is_closed or self._is_urgent or len(self._waiting) >= _BATCH,
                    timeout=pause_s,
                )
                if not self._waiting or (self._is_closed and self._problem is not None):
                    self._thread = None
                    return
                batch = list(islice(self._waiting, _BATCH))
            problem: Exception | None = None
            try:
                if (store := self._open_store()) is not None:
                    store.add_many(batch)
            except Exception as error:  # noqa: BLE001 - the thread must not die with what waits
                problem = error
            with self._changed:
                if problem is None:
                    self._problem, pause_s = None, _PAUSE_S
                    for _ in batch:
                        self._waiting.popleft()
                    self._is_urgent = self._is_urgent and bool(self._waiting)
                    self._changed.notify_all()
                    continue
                if not isinstance(problem, KernelcastError):
                    problem = KernelcastError(repr(problem))
                self._problem = problem
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
