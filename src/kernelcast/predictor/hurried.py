"""Answers in the time that a caller waits: the best that is known by then."""

import threading
from collections.abc import Callable, Iterable
from contextvars import copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelcast.predictor.answering.composing import explain_unsampled
from kernelcast.predictor.answering.launch_request import LaunchRequest
from kernelcast.predictor.answering.policy import Policy
from kernelcast.predictor.answering.processes import ReportProgress
from kernelcast.predictor.answering.time_limit import TimeLimit
from kernelcast.predictor.answers import Answers
from kernelcast.predictor.known_launches import KnownLaunch
from kernelcast.predictor.launch_requests import Pair, RequestReader
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import KernelcastError, NoAnswerYetError
from kernelcast.records.estimates import Estimate
from kernelcast.records.problem import Problem

if TYPE_CHECKING:
    from kernelcast.launches.live import Launch

_ENDS_S = 10.0
_DESCRIBING = "describing the launch; the device may be busy with others"


@dataclass(slots=True, eq=False)
class HurriedLaunch:
    """One launch on one device, and what is known of it so far."""

    launch: "Problem | Launch"
    device: str | DeviceDescription | None
    request: LaunchRequest | None = None
    """The launch as it was read."""
    known: KnownLaunch | None = None
    """The launch with its samples, where there are any."""
    best: Estimate | None = None
    """What is answered if time is over."""
    is_last_word: bool = False
    """Whether nothing better is to be found."""
    error: Exception | None = None
    """Why there is no answer."""

    def conclude(self, limit: TimeLimit | None) -> Estimate:
        """Give the answer that there is, or raise what kept it."""
        if self.error is not None:
            raise self.error
        is_last_word, best = self.is_last_word, self.best  # in this order: a thread sets them
        why = "" if limit is None else limit.explain()
        if best is not None:
            return best if is_last_word else explain_unsampled(best, why)
        where = f"{self.request.device.id}: " if self.request else ""
        msg = (
            f"{where}{why}, and nothing else is known of the launch; allow more time, "
            "or ask again: what was built is kept"
        )
        raise NoAnswerYetError(msg)


class HurriedAnswers:
    """Works for callers who wait so long and no longer, in a thread for each question."""

    def __init__(self, reader: RequestReader, answers: Answers) -> None:
        self._reader, self._answers = reader, answers
        self._lock = threading.Lock()
        self._running: dict[threading.Thread, TimeLimit] = {}

    def ask(
        self,
        limit: TimeLimit,
        policy: Policy,
        list_pairs: Callable[[], Iterable[Pair]],
        *,
        is_live: bool,
        report: ReportProgress = lambda _: None,
        remembers: bool = True,
    ) -> list[HurriedLaunch]:
        """Find out of launches on devices what time allows: what is known first, samples then."""
        asked: list[HurriedLaunch] = []
        failures: list[Exception] = []
        is_done = threading.Event()

        def work() -> None:
            try:
                asked.extend([HurriedLaunch(*one) for one in list_pairs()])
                for one in asked:
                    self._foretell(one, limit, policy, remembers=remembers)
                for one in asked:
                    if not one.is_last_word:
                        self._finish(one, limit, policy, report, remembers=remembers)
            except NoAnswerYetError:
                pass
            except Exception as error:  # noqa: BLE001 - it is raised in the caller's thread
                failures.append(error)
            finally:
                is_done.set()
                with self._lock:
                    del self._running[threading.current_thread()]

        run = copy_context().run  # it works for the same caller
        thread = threading.Thread(
            target=run, args=(work,), name="kernelcast-asking", daemon=not is_live
        )
        with self._lock:
            self._running[thread] = limit
        thread.start()
        try:
            is_done.wait(limit.left_s)
        except BaseException:  # Ctrl-C
            limit.stop()
            raise
        if failures:
            raise failures[0]
        if not asked and not is_done.is_set():
            raise NoAnswerYetError(limit.explain())
        return asked

    def stop(self) -> None:
        """Have all work end at its next step."""
        with self._lock:
            for one in self._running.values():
                one.stop()

    def close(self) -> None:
        """Wait until all work has ended."""
        self.stop()
        with self._lock:
            threads = [*self._running]
        for one in threads:
            one.join(_ENDS_S)

    def _foretell(
        self, one: HurriedLaunch, limit: TimeLimit, policy: Policy, *, remembers: bool
    ) -> None:
        """Find out what is known of a launch of which nothing is run."""
        limit.note(_DESCRIBING)
        answers = self._answers
        try:
            request = self._reader.sketch(one.launch, one.device, policy=policy)
            one.request = request = request.hurry(limit, remembers=remembers)
            if remembers and isinstance(one.launch, Problem):
                one.best = answers.recall(one.launch, one.device)
                one.is_last_word = one.best is not None
            if not one.is_last_word:
                best, is_last_word = answers.foretell_launch(request)
                one.best, one.is_last_word = best or one.best, is_last_word
            if one.is_last_word and one.best is not None:
                one.best = answers.as_now(one.best)
        except NoAnswerYetError:
            raise
        except KernelcastError:  # reading it once more says what is wrong with it
            pass

    def _finish(
        self,
        one: HurriedLaunch,
        limit: TimeLimit,
        policy: Policy,
        report: ReportProgress,
        *,
        remembers: bool,
    ) -> None:
        """Answer a launch as if there were time."""
        try:
            limit.note(_DESCRIBING)
            request = one.request = self._reader.read(
                one.launch, one.device, policy=policy, report=report, remembers=remembers
            )
            one.known = known = self._answers.ask(request.hurry(limit, remembers=remembers))
            one.best = known.answer or one.best
            one.is_last_word = known.answer is not None
            one.best = self._answers.require(known, request)
            one.is_last_word = True
        except NoAnswerYetError:
            raise
        except Exception as error:  # noqa: BLE001 - it is raised in the caller's thread
            one.error = error
