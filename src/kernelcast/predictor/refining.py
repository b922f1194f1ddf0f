"""Samples launches again that were asked for, where their device idles: the next answer is better.

Moments err for the most part independently of each other (ADR 0032), so that each further one makes
an answer better. What a refinement takes, its host time included, is followed by a pause of many
times as long.
"""

import threading
import time
from collections import OrderedDict
from typing import Final

from kernelcast.predictor.answering.launch_request import LaunchRequest
from kernelcast.predictor.answers import Answers, is_open
from kernelcast.predictor.known_launches import KnownLaunch
from kernelcast.records.errors import KernelcastError

SHARE: Final = 0.02
"""Of the time, which refinements take at most."""
APART_S: Final = 1.0
"""After the launch was asked for, and between two refinements at least."""
_MOST_WAITING: Final = 256
_ENDS_S: Final = 10.0


class Refiner:
    """Samples again in a thread of its own, which begins when a launch is first noted."""

    def __init__(self, answers: Answers, *, share: float = SHARE, apart_s: float = APART_S) -> None:
        self._answers = answers
        self._share, self._apart_s = share, apart_s
        self._waiting: OrderedDict[int, tuple[LaunchRequest, KnownLaunch]] = OrderedDict()
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def note(self, request: LaunchRequest, known: KnownLaunch) -> None:
        """Take a launch that somebody has asked for and that was sampled."""
        settings = request.policy.settings
        if request.is_live or settings.measure or not settings.samples or not is_open(known):
            return
        with self._changed:
            if self._is_closed:
                return
            self._waiting[id(known)] = request, known
            if len(self._waiting) > _MOST_WAITING:
                self._waiting.popitem(last=False)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="kernelcast-refining",
                                                daemon=True)  # fmt: skip
                self._thread.start()
            self._changed.notify_all()

    def stop(self) -> None:
        """Begin nothing new."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._changed.notify_all()

    def close(self) -> None:
        """Wait for what is at work; it ends soon once its process has."""
        self.stop()
        if self._thread is not None:
            self._thread.join(timeout=_ENDS_S)

    def _run(self) -> None:
        pause_s = self._apart_s
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or bool(self._waiting))
                self._changed.wait_for(lambda: self._is_closed, timeout=pause_s)
                if self._is_closed:
                    return
                if not self._waiting:
                    continue
                _, (request, known) = self._waiting.popitem(last=False)
            started_s = time.monotonic()
            is_done = self._refine(request, known)
            passed_s = time.monotonic() - started_s
            pause_s = max(self._apart_s, passed_s * (1.0 / self._share - 1.0))
            if not is_done:
                self.note(request, known)

    def _refine(self, request: LaunchRequest, known: KnownLaunch) -> bool:
        """Sample a launch once more; tell whether it needs no more of it."""
        outcome = known.outcome
        if outcome is None or not is_open(known):  # noted again while the last was taken
            return True
        busy = self._answers.lock_of(request.device.id)
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
        return not is_open(known)
