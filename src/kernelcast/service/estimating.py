"""Answers of estimates: kept ones at once, remembered and modelled ones soon, sampled ones last."""

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeVar

from cachetools import FIFOCache

from kernelcast.predictor.answering.composing import explain_unsampled
from kernelcast.predictor.answering.memory import Answer
from kernelcast.records.contention import HOLDS_S
from kernelcast.records.errors import EstimateTimeoutError, KernelcastError, KernelRunError
from kernelcast.records.estimates import Estimate
from kernelcast.records.explanation import Tier
from kernelcast.records.private_files import keep_among
from kernelcast.records.problem import digest_text, identify_launch
from kernelcast.service.backend import Ask, Backend, ChangeWatcher, bucket_of
from kernelcast.service.device_lock import DeviceLock, lock_name, locks_folder
from kernelcast.service.errors import ApiError, as_api_error, message_of
from kernelcast.service.observing import Answers
from kernelcast.service.settings import Limits
from kernelcast.service.telemetry import Metrics, log
from kernelcast.service_state import AnswerRecord, StoreError
from kernelcast.workers.wire import decode, encode

T = TypeVar("T")
_SHARE_OF_THE_WAIT: Final = 0.7
"""What may pass of the longest wait before the turn comes; the rest is for an answer that runs
nothing."""
_APART_S: Final = 1.0
"""Between two refinements, and after a launch was asked for, at least: moments that lie close
together share what disturbs them."""
_MOST: Final = 256
"""Of each device; the oldest are forgotten."""


Outcome = tuple[Mapping[str, Any], ApiError | None]
"""An answer as it is sent, and the error where it is one."""


class TurnMissedError(ApiError):
    """Is raised when a sampling has waited for its turn for too long."""


class SamplingQueue:
    def __init__(self, device_id: str, limits: Limits, metrics: Metrics) -> None:
        self._device_id = device_id
        self._limits = limits
        self._metrics = metrics
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=f"sampling {device_id}")
        self._lock = DeviceLock(device_id)
        self.length = 0
        """Samplings that wait or are at work."""
        self._usual_s = 2.0

    async def run(self, work: Callable[[], T], longest_s: float | None = None) -> T:
        """Do work that measures on the device, if its turn comes in the time that callers wait."""
        if self.length > self._limits.queue:  # the one at work does not wait
            self._metrics.sampling_refused.labels(self._device_id).inc()
            raise self._refusal(ApiError, f"{self.length} samplings are waiting for it already")
        wait_s = _SHARE_OF_THE_WAIT * self._limits.wait_seconds
        wait_s = wait_s if longest_s is None else min(wait_s, longest_s)
        turn, future = self._begin(work, wait_s)
        # Whoever asked may go away; the sampling goes on, and its answer is kept.
        await asyncio.wait([future], timeout=wait_s)
        try:
            if not turn.done() and turn.cancel():  # it has not begun
                why = f"{self.length} samplings are before it or under way"
                raise self._refusal(TurnMissedError, why)
            return await asyncio.shield(future)
        except TurnMissedError:
            self._metrics.sampling_refused.labels(self._device_id).inc()
            raise

    async def run_if_idle(self, work: Callable[[], T]) -> T | None:
        """Do work that measures on the device if nobody else does; None if somebody does."""
        if self.length:
            return None
        try:
            return await asyncio.shield(self._begin(work, 0.0)[1])
        except TurnMissedError:
            return None

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _begin(self, work: Callable[[], T], wait_s: float) -> tuple[Future[T], asyncio.Future[T]]:
        def count(change: int) -> None:
            self.length += change
            self._metrics.queue_length.labels(self._device_id).set(self.length)

        count(1)
        turn = self._executor.submit(self._work, work, time.monotonic(), wait_s)
        future = asyncio.wrap_future(turn)
        future.add_done_callback(lambda _: count(-1))
        return turn, future

    def _work(self, work: Callable[[], T], asked_s: float, wait_s: float) -> T:
        if not self._lock.acquire(max(0.0, asked_s + wait_s - time.monotonic())):
            raise self._refusal(TurnMissedError, "a job or another process measures on it")
        started_s = time.monotonic()
        if wait_s:  # else nobody waits for it
            self._metrics.queue_wait_s.labels(self._device_id).observe(started_s - asked_s)
        try:
            return work()
        except (KernelRunError, EstimateTimeoutError) as error:
            reason = "timeout" if isinstance(error, EstimateTimeoutError) else "crash"
            self._metrics.worker_restarts.labels(self._device_id, reason).inc()
            raise
        finally:
            self._lock.release()
            taken_s = time.monotonic() - started_s
            self._metrics.device_busy_s.labels(self._device_id).inc(taken_s)
            self._usual_s += 0.3 * (taken_s - self._usual_s)

    def _refusal(self, kind: type[ApiError], why: str) -> ApiError:
        wait_s = max(1, math.ceil(self._usual_s * max(1, self.length)))
        return kind(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "device_busy",
            f"{self._device_id}: {why}; try again in {wait_s} s",
            detail={"device_id": self._device_id},
            retry_after_s=wait_s,
        )


@dataclass(slots=True)
class _Kept:
    """An answer that stands until something changes, and how it is sent."""

    content: Mapping[str, Any]
    answer: Answer
    record: AnswerRecord
    bucket: str
    stamp: tuple[int, int, int]
    ends_s: float


@dataclass(eq=False)
class Estimating:
    _backend: Backend
    _limits: Limits
    _metrics: Metrics
    _answers: Answers
    _changes: ChangeWatcher
    _kept: FIFOCache[tuple[object, ...], _Kept] = field(default_factory=lambda: FIFOCache(10_000))
    _pending: dict[tuple[object, ...], asyncio.Task[_Kept]] = field(default_factory=dict)
    # Models answer in processes: more of them at once would only wait.
    _models: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, "models"))
    refinable: FIFOCache[tuple[object, ...], Ask] = field(default_factory=lambda: FIFOCache(256))
    """Kept answers that another sampling makes better; the oldest goes first."""
    _queues: dict[str, SamplingQueue] = field(default_factory=dict)

    def queue_of(self, device_id: str) -> SamplingQueue:
        if device_id not in self._queues:
            self._queues[device_id] = SamplingQueue(device_id, self._limits, self._metrics)
        return self._queues[device_id]

    async def answer(self, ask: Ask) -> Outcome:
        """Answer, at once if an answer still stands; an error becomes the answer's."""
        started_s = time.perf_counter()
        kept = self._find_standing(ask)
        is_kept = kept is not None
        if kept is not None:
            kept.record = self._answers.note_repeat(kept.record)
        else:
            # Equal questions at the same time are asked once.
            task = self._pending.get(ask.key)
            if task is None:
                task = self._pending[ask.key] = asyncio.create_task(self._make(ask))
                task.add_done_callback(lambda _: self._pending.pop(ask.key, None))
            try:
                # Whoever came first may go away; the others wait on.
                kept = await asyncio.shield(task)
            except Exception as error:  # noqa: BLE001 - a bug must not take other devices' answers
                return self._fail(ask, error)
        passed_s = time.perf_counter() - started_s
        labels = (kept.answer.estimate.tier, "yes" if is_kept else "no")
        self._metrics.estimate_s.labels(*labels).observe(passed_s)
        return {"is_kept": is_kept, **kept.content}, None

    def _find_standing(self, ask: Ask) -> _Kept | None:
        """Find a kept answer since which nothing has changed."""
        kept = self._kept.get(ask.key)
        if kept is None or time.monotonic() >= kept.ends_s:
            return None
        return kept if kept.stamp == self._changes.stamp(kept.bucket) else None

    async def refine_while_idle(self, share: float) -> None:
        """Sample launches again that were asked for, while nobody waits, until cancelled.

        Moments err for the most part independently of each other (ADR 0032).
        """
        pause_s = _APART_S
        while share > 0:
            await asyncio.sleep(pause_s)
            taken_s = await self._refine_next()
            pause_s = max(_APART_S, taken_s * (1.0 / share - 1.0))

    async def _refine_next(self) -> float:
        """Refine the answer that has waited longest, if no request waits; give the seconds."""
        if not self.refinable or any(one.length for one in self._queues.values()):
            return 0.0
        key, ask = self.refinable.popitem()
        device_id, started_s, is_open = ask.device.id, time.perf_counter(), False
        try:
            is_open = await self.refine(ask)
        except Exception as error:  # noqa: BLE001 - it goes on with others, whatever it is
            log("a refinement failed", level=30, device=device_id, error=repr(error))
        taken_s = time.perf_counter() - started_s
        self._metrics.refinements.labels(device_id).inc()
        self._metrics.refining_s.labels(device_id).inc(taken_s)
        if is_open:
            self.refinable.setdefault(key, ask)
        return taken_s

    async def refine(self, ask: Ask) -> bool:
        """Sample a kept answer's launch once more on an idle device; tell whether more helps."""
        kept = self._find_standing(ask)
        if kept is None or kept.answer.refine is None:
            return False
        found = await self.queue_of(ask.device.id).run_if_idle(kept.answer.refine)
        if found is None:
            return True
        self._kept[ask.key] = self._note(ask, found, kept.bucket, kept.stamp, kept.ends_s)
        return found.refine is not None

    def close(self) -> None:
        for one in self._queues.values():
            one.close()
        self._models.shutdown(wait=False, cancel_futures=True)

    async def _make(self, ask: Ask) -> _Kept:
        """Make the answer: by observations, by what stands, or by asking the device."""
        bucket = bucket_of(identify_launch(ask.problem, ask.device, seed=ask.settings.seed))
        stamp = self._changes.stamp(bucket)
        # Programs may write into the store without the service: it is asked again then.
        ends_s = time.monotonic() + 600.0
        known, beside = self._kept.get(ask.key), None
        if known is not None:
            beside = known.answer.estimate
            # One of samples alone on the machine stands although another launch was observed.
            is_sampled = beside.tier is not Tier.HISTORY and beside.now is None
            if known.stamp[0] != stamp[0] or not is_sampled:
                known = beside = None
        estimate: Estimate | None = None
        if ask.settings.uses_history:
            estimate = await asyncio.to_thread(self._backend.recall, ask, beside)
        if estimate is None and known is not None:
            # Others were observed, this launch was not.
            known.stamp, known.ends_s = stamp, ends_s
            known.record = self._answers.note_repeat(known.record)
            return known
        lasts = True
        if estimate is not None:
            found = Answer(estimate=estimate, recording=None)
        else:
            try:
                found = await self._ask_device(ask)
            except TurnMissedError as error:
                lasts, found = False, await self._do_without(ask, error)
        kept = self._note(ask, found, bucket, stamp, ends_s)
        if lasts:
            self._kept[ask.key] = kept
            if found.refine is not None:
                self.refinable[ask.key] = ask
        return kept

    def _note(
        self, ask: Ask, found: Answer, bucket: str, stamp: tuple[int, int, int], ends_s: float
    ) -> _Kept:
        """Note an answer; one of a busy machine stands as long as that may stay so."""
        problem, estimate = ask.problem, found.estimate
        if estimate.now is not None:
            ends_s = time.monotonic() + HOLDS_S
        content: dict[str, Any] = {
            "problem": problem.name, **estimate.to_dict(), "problem_digest": ask.digest,
        }  # fmt: skip
        match content.get("explanation"):
            case {"model": dict() as model}:
                model.pop("place", None)  # where models are is nobody's business
        record = self._answers.note(estimate, ask.digest, problem.name, ask.caller)
        return _Kept(content, found, record, bucket, stamp, ends_s)

    async def _ask_device(self, ask: Ask) -> Answer:
        if ask.settings.samples:
            refuse_repeat(ask, self._metrics)
            work = partial(self._sample, ask, time.monotonic())
            return await self.queue_of(ask.device.id).run(work, ask.settings.within_s)
        try:
            return await self._model(ask)
        except KernelcastError as error:
            if not ask.lacks_scope:
                raise
            raise ApiError(
                HTTPStatus.FORBIDDEN,
                "missing_scope",
                f"{ask.device.id}: nothing is known of this launch without running work-groups, "
                f"and the caller may not run kernels here; the analytic model says: {error}",
                detail={"scope": "run"},
            ) from error

    def _sample(self, ask: Ask, asked_s: float) -> Answer:
        """Sample on a device that is held; what does not end is remembered."""
        # One that was before it in the queue may have been the same.
        refuse_repeat(ask, self._metrics)
        if ask.settings.within_s is not None:
            left_s = max(ask.settings.within_s - (time.monotonic() - asked_s), 1e-3)
            ask = replace(ask, settings=replace(ask.settings, within_s=left_s))
        try:
            found = self._backend.answer(ask)
        except EstimateTimeoutError as error:
            remember_timeout(ask, str(error))
            raise
        remember_timeout(ask, None)
        return found

    async def _do_without(self, ask: Ask, cause: TurnMissedError) -> Answer:
        """Answer a launch whose turn did not come by what runs nothing."""
        estimate: Estimate | None = None
        try:
            async with asyncio.timeout((1 - _SHARE_OF_THE_WAIT) * self._limits.wait_seconds):
                if ask.settings.uses_history:  # it may have been observed meanwhile
                    estimate = await asyncio.to_thread(self._backend.recall, ask)
                if estimate is None:
                    estimate = (await self._model(ask)).estimate
        except (KernelcastError, ApiError, TimeoutError) as error:
            is_late = isinstance(error, TimeoutError)
            why = "the analytic model is not ready in time" if is_late else message_of(error)
            cause.message += f"; without running work-groups there is no answer: {why}"
            raise cause from error
        return Answer(estimate=explain_unsampled(estimate, cause.message), recording=None)

    async def _model(self, ask: Ask) -> Answer:
        ask = replace(ask, settings=replace(ask.settings, samples=False))
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._models, self._backend.answer, ask)
        return Answer(estimate=found.estimate, recording=None)

    def _fail(self, ask: Ask, error: Exception) -> Outcome:
        told, problem, device = as_api_error(error), ask.problem, ask.device
        self._metrics.estimate_errors.labels(told.code, device.id).inc()
        if isinstance(error, StoreError):
            self._metrics.database_failures.labels("estimates").inc()
        if told.message != str(error):
            log("an estimate failed", level=40, device=device.id, error=str(error))
        described = told.describe()
        if told.retry_after_s is not None:
            wait = {"retry_after_seconds": told.retry_after_s}
            described["detail"] = {**(described["detail"] or {}), **wait}
        content = {
            "device": device.name,
            "device_id": device.id,
            "problem": problem.name,
            "problem_digest": ask.digest,
            "kernel": problem.kernel.name,
            "error": described,
        }
        return content, told


TimedOut = tuple[datetime, datetime, float, int, str]
"""A sampling that was ended, so that its launch does not block the device again: when, until when
that stands, the limit in seconds, how often it has happened one time after the other, and why.

Each is a small file that all processes of a host read, and who holds the device's lock writes.
"""


def refuse_repeat(ask: Ask, metrics: Metrics) -> None:
    """Refuse a launch that has timed out, unless it may be tried again or has more time."""
    found = _find_timeout(ask)
    if found is None:
        return
    at, until, limit_s, _, reason = found
    if ask.timeout_s > limit_s or datetime.now(UTC) >= until:
        return
    metrics.sampling_refused.labels(ask.device.id).inc()
    raise ApiError(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "kernel_timeout",
        f"{ask.device.id}: this launch did not end when it was sampled at "
        f"{at:%Y-%m-%d %H:%M:%S} UTC, and is not run again before "
        f"{until:%Y-%m-%d %H:%M:%S} UTC. Change its source, build options, sizes or "
        "arguments; report what whole runs take; ask for an answer that runs nothing "
        '("sampling": "never"); or start the service with a longer --timeout if it is only '
        f"slow. It was said then: {reason}",
        detail={
            "timed_out_at": at.isoformat(),
            "not_before": until.isoformat(),
            "limit_seconds": limit_s,
        },
    )


def remember_timeout(ask: Ask, reason: str | None) -> None:
    """Note that a launch has not ended in time and what was said of it; None: it has ended."""
    before = _find_timeout(ask)
    with suppress(OSError):  # a full disk costs the memory, not the answer
        if reason is None:
            _path_of(ask).unlink(missing_ok=True)
            return
        now, times = datetime.now(UTC), 1 + (before[3] if before else 0)
        # Ten minutes, each further time four times as long, a day at most.
        stands = min(timedelta(days=1), timedelta(minutes=10) * (1 << 2 * min(times - 1, 9)))
        found: TimedOut = (now, now + stands, ask.timeout_s, times, reason)
        keep_among(_path_of(ask), encode(found), most=_MOST)


def _find_timeout(ask: Ask) -> TimedOut | None:
    try:
        found: TimedOut = decode(_path_of(ask).read_bytes(), TimedOut)
    except (OSError, ValueError):  # a damaged file costs one more try
        return None
    return found


def _path_of(ask: Ask) -> Path:
    problem = ask.problem
    parts = (problem.kernel.digest, ask.device.driver, str(problem.ndrange), str(problem.arguments))
    folder = locks_folder() / f"{lock_name(ask.device.id)}.timeouts"
    return folder / f"{digest_text(*parts)}.json"
