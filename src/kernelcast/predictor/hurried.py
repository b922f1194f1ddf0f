"""Answers in the time that a caller waits: the best that is known by then."""

import threading
from collections.abc import Callable, Iterable
from contextvars import copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from kernelcast.predictor.answering.composing import explain_unsampled
from kernelcast.predictor.answering.launch_request import LaunchRequest
from kernelcast.predictor.answering.policy import Policy
from kernelcast.predictor.answering.processes import ReportProgress
from kernelcast.predictor.answering.time_limit import TimeLimit
from kernelcast.predictor.known_launches import KnownLaunch
from kernelcast.predictor.launch_answers import LaunchAnswers
from kernelcast.predictor.launch_requests import RequestReader
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import KernelcastError, NoAnswerYetError
from kernelcast.records.estimates import Estimate
from kernelcast.records.problem import Problem

if TYPE_CHECKING:
    from kernelcast.launches.live import Launch

_ENDS_S = 10.0
_DESCRIBING = "describing the launch; the device may be busy with others"
Pair: TypeAlias = "tuple[Problem | Launch, str | DeviceDescription | None]"


@dataclass(slots=True, eq=False)
class HurriedLaunch:
    """One launch on one device, and what is known of it so far.

    Parameters
    ----------
    launch, device
        As of `Predictor.estimate`.
    request : LaunchRequest or None
        The launch as it was read.
    known : KnownLaunch or None
        The launch with its samples, where there are any.
    best : Estimate or None
        What is answered if time is over.
    is_last_word : bool
        Whether nothing better is to be found.
    error : Exception or None
        Why there is no answer.
    """

    launch: "Problem | Launch"
    device: str | DeviceDescription | None
    request: LaunchRequest | None = None
    known: KnownLaunch | None = None
    best: Estimate | None = None
    is_last_word: bool = False
    error: Exception | None = None

    def conclude(self, limit: TimeLimit) -> Estimate:
        """Give the answer that there is.

        Raises
        ------
        NoAnswerYetError
            If there is none in time.
        KernelcastError
            If the launch cannot be answered at all.
        """
        if self.error is not None:
            raise self.error
        is_last_word, best = self.is_last_word, self.best  # in this order: a thread sets them
        if best is not None:
            return best if is_last_word else explain_unsampled(best, limit.explain())
        where = f"{self.request.device.id}: " if self.request else ""
        msg = (
            f"{where}{limit.explain()}, and nothing else is known of the launch; allow more time, "
            "or ask again: what was built is kept"
        )
        raise NoAnswerYetError(msg)


class HurriedAnswers:
    """Works for callers who wait so long and no longer, in a thread for each question."""

    def __init__(self, reader: RequestReader) -> None:
        self._reader = reader
        self._lock = threading.Lock()
        self._running: dict[threading.Thread, TimeLimit] = {}

    def ask(
        self,
        limit: TimeLimit,
        answers: LaunchAnswers,
        policy: Policy,
        list_pairs: Callable[[], Iterable[Pair]],
        *,
        is_live: bool,
        report: ReportProgress = lambda _: None,
    ) -> list[HurriedLaunch]:
        """Find out of launches on devices what time allows: what is known first, samples then.

        Parameters
        ----------
        limit : TimeLimit
            How long the caller waits.
        answers : LaunchAnswers
            Makes the answers.
        policy : Policy
            What may be used.
        list_pairs : callable
            Lists the launches and their devices.
        is_live : bool
            Whether drivers work in this process, which must not end meanwhile.
        report : callable, optional
            Is told of each stage.

        Raises
        ------
        KernelcastError
            If they cannot be listed, in time.
        """
        asked: list[HurriedLaunch] = []
        failures: list[Exception] = []
        is_done = threading.Event()

        def work() -> None:
            try:
                asked.extend([HurriedLaunch(*one) for one in list_pairs()])
                for one in asked:
                    self._foretell(one, limit, answers, policy)
                for one in asked:
                    self._finish(one, limit, answers, policy, report)
            except NoAnswerYetError:
                pass
            except Exception as error:  # noqa: BLE001 - it is raised where somebody waits
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
        self, one: HurriedLaunch, limit: TimeLimit, answers: LaunchAnswers, policy: Policy
    ) -> None:
        """Find out what is known of a launch of which nothing is run."""
        limit.note(_DESCRIBING)
        try:
            one.request = self._reader.sketch(one.launch, one.device, policy=policy)
            if isinstance(one.launch, Problem):
                one.best = answers.launches.recall_answer(one.launch, one.request.device.id)
                one.is_last_word = one.best is not None
            if not one.is_last_word:
                best, is_last_word = answers.foretell(one.request.hurry(limit))
                one.best, one.is_last_word = best or one.best, is_last_word
            if one.is_last_word and one.best is not None:
                one.best = answers.as_now(one.best)
        except NoAnswerYetError:
            raise
        except KernelcastError:  # who reads it once more says what is wrong with it
            pass

    def _finish(
        self,
        one: HurriedLaunch,
        limit: TimeLimit,
        answers: LaunchAnswers,
        policy: Policy,
        report: ReportProgress,
    ) -> None:
        """Answer a launch as if there were time."""
        if one.is_last_word:
            return
        try:
            limit.note(_DESCRIBING)
            request = one.request = self._reader.read(
                one.launch, one.device, policy=policy, report=report
            )
            one.known = known = answers.ask(request.hurry(limit))
            one.best = known.answer or one.best
            one.is_last_word = known.answer is not None
            one.best = answers.require(known, request)
            one.is_last_word = True
        except NoAnswerYetError:
            raise
        except Exception as error:  # noqa: BLE001 - it is raised where somebody waits
            one.error = error
