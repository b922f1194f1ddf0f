"""What a predictor does in threads: answers in the time that a caller waits, writes, samples again.

Moments err for the most part independently of each other (ADR 0032), so that each further one makes
an answer better. What a refinement takes, its host time included, is followed by a pause of many
times as long.
"""

import atexit
import threading
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from kernelcast.predictor.answering.composing import explain_unsampled
from kernelcast.predictor.answering.launch_request import LaunchRequest, Pair, RequestReader
from kernelcast.predictor.answering.memory import KnownLaunch
from kernelcast.predictor.answering.policy import Policy, TimeLimit
from kernelcast.predictor.answering.processes import ReportProgress
from kernelcast.predictor.answers import Answers
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import KernelcastError, NoAnswerYetError
from kernelcast.records.estimates import Estimate
from kernelcast.records.observation import Observation
from kernelcast.records.problem import Problem

if TYPE_CHECKING:
    from kernelcast.launches.live import Launch
    from kernelcast.training_data.store import Store

_ENDS_S: Final = 10.0
_SHARE, _APART_S = 0.02, 1.0
"""Of the time that refinements take at most, and what lies between them at least."""
_DESCRIBING: Final = "describing the launch; the device may be busy with others"
_BATCH: Final = 2000
_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 5.0


class Refiner:
    """Samples again in a thread, now and then."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._waiting: OrderedDict[int, tuple[LaunchRequest, KnownLaunch]] = OrderedDict()
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def note(self, request: LaunchRequest, known: KnownLaunch) -> None:
        settings = request.policy.settings
        if request.is_live or settings.measure or not settings.samples or not known.is_open:
            return
        with self._changed:
            if self._is_closed:
                return
            self._waiting[id(known)] = request, known
            if len(self._waiting) > 256:
                self._waiting.popitem(last=False)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="kernelcast-refining",
                                                daemon=True)  # fmt: skip
                self._thread.start()
            self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._changed.notify_all()

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join(timeout=_ENDS_S)

    def _run(self) -> None:
        pause_s = _APART_S
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or bool(self._waiting))
                self._changed.wait_for(lambda: self._is_closed, timeout=pause_s)
                if self._is_closed:
                    return
                _, (request, known) = self._waiting.popitem(last=False)
            started_s = time.monotonic()
            is_done = self._refine(request, known)
            passed_s = time.monotonic() - started_s
            pause_s = max(_APART_S, passed_s * (1.0 / _SHARE - 1.0))
            if not is_done:
                self.note(request, known)

    def _refine(self, request: LaunchRequest, known: KnownLaunch) -> bool:
        """Sample a launch once more; tell whether it needs no more of it."""
        outcome = known.outcome
        if outcome is None or not known.is_open:  # noted again while the last was taken
            return True
        busy = self._answers.busy[request.device.id]
        if not busy.acquire(blocking=False):
            return False
        try:
            more = self._answers.sample_once(request, outcome)
        except KernelcastError:  # who asks again is told
            return True
        finally:
            busy.release()
        with known.lock:
            if known.outcome is outcome:  # it was not sampled anew meanwhile
                known.take_samples(more)
        return not known.is_open


@dataclass(slots=True, eq=False)
class AskedLaunch:
    """One launch on one device, and what is known of it so far."""

    launch: "Problem | Launch"
    device: str | DeviceDescription | None
    request: LaunchRequest | None = None
    known: KnownLaunch | None = None
    best: Estimate | None = None
    """What is answered if time is over."""
    is_last_word: bool = False
    """Whether nothing better is to be found."""
    error: Exception | None = None

    def conclude(self, limit: TimeLimit | None) -> Estimate:
        if self.error is not None:
            raise self.error
        is_last_word, best = self.is_last_word, self.best  # in this order: a thread sets them
        why = "" if limit is None else limit.explain()
        if best is not None:
            return best if is_last_word else explain_unsampled(best, why)
        where = f"{self.request.device.id}: " if self.request else ""
        raise NoAnswerYetError(
            f"{where}{why}, and nothing else is known of the launch; allow more time, "
            "or ask again: what was built is kept"
        )


class Asker:
    """Answers at once, or in a thread for callers who wait so long and no longer."""

    def __init__(
        self, reader: RequestReader, answers: Answers, end_children: Callable[[], None]
    ) -> None:
        self._reader, self._answers = reader, answers
        self._end_children = end_children
        self._lock = threading.Lock()
        self._running: dict[threading.Thread, TimeLimit] = {}

    def ask(
        self,
        limit: TimeLimit | None,
        policy: Policy,
        list_pairs: Callable[[], Iterable[Pair]],
        *,
        is_live: bool,
        report: ReportProgress = lambda _: None,
        remembers: bool = True,
    ) -> list[AskedLaunch]:
        """Answer launches; within a limit what is known first, then samples."""
        asked: list[AskedLaunch] = []
        read = partial(self._reader.read, policy=policy, limit=limit, remembers=remembers)
        note = (lambda _: None) if limit is None else limit.note

        def work() -> None:
            asked.extend([AskedLaunch(*one) for one in list_pairs()])
            for one in [] if limit is None else asked:
                note(_DESCRIBING)
                with suppress(KernelcastError):  # reading it once more says what is wrong with it
                    one.request = read(one.launch, one.device, asks_device=False)
                    best, is_last_word = self._answers.foretell_launch(one.request)
                    if best is not None and is_last_word:
                        best = self._answers.as_now(best)
                    one.best, one.is_last_word = best, is_last_word
            for one in asked:
                if one.is_last_word:
                    continue
                note(_DESCRIBING)
                try:
                    request = one.request = read(one.launch, one.device, report=report)
                    known, one.best = self._answers.ask(request)
                    one.is_last_word = True
                    one.best = self._answers.as_now(one.best)
                    one.known = known
                except NoAnswerYetError:
                    raise
                except Exception as error:  # noqa: BLE001 - it is raised in the caller's thread
                    one.error = error

        if limit is None:
            work()
        elif not self._finish(work, limit, is_live=is_live) and not asked:
            raise NoAnswerYetError(limit.explain())
        return asked

    def _finish(self, work: Callable[[], None], limit: TimeLimit, *, is_live: bool) -> bool:
        """Work in a thread; tell whether it has ended within the time."""
        done: Future[None] = Future()

        def run() -> None:
            try:
                with suppress(NoAnswerYetError):
                    work()
                done.set_result(None)
            except Exception as error:  # noqa: BLE001 - it is raised in the caller's thread
                done.set_exception(error)
            finally:
                with self._lock:
                    del self._running[threading.current_thread()]

        thread = threading.Thread(
            target=copy_context().run,  # it works for the same caller
            args=(run,),
            name="kernelcast-asking",
            daemon=not is_live,  # a driver that works in this process must not lose it
        )
        with self._lock:
            self._running[thread] = limit
        thread.start()
        try:
            is_done = bool(wait([done], limit.left_s).done)
        except BaseException:  # Ctrl-C
            limit.stop()
            self._end_children()  # one at work must not go on
            raise
        if is_done:
            done.result()
        return is_done

    def stop(self) -> None:
        with self._lock:
            for one in self._running.values():
                one.stop()

    def join(self) -> None:
        with self._lock:
            threads = [*self._running]
        for one in threads:
            one.join(_ENDS_S)


class ObservationLostError(KernelcastError):
    """Is raised when a store takes no observations, and says how many are waiting or lost."""


class ObservationWriter:
    """Takes observations at once; a thread writes them in batches, and ends when none waits."""

    def __init__(self, open_store: Callable[[], "Store | None"]) -> None:
        self._open_store = open_store
        self._waiting: deque[Observation] = deque()
        self._taken = 0
        self._problem: Exception | None = None
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
            try:
                if (store := self._open_store()) is not None:
                    store.add_many(batch)
            except Exception as error:  # noqa: BLE001 - the thread must not die with what waits
                is_ours = isinstance(error, KernelcastError)
                self._problem = error if is_ours else KernelcastError(repr(error))
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
                continue
            with self._changed:
                self._problem, pause_s = None, _PAUSE_S
                for _ in batch:
                    self._waiting.popleft()
                self._is_urgent = self._is_urgent and bool(self._waiting)
                self._changed.notify_all()
