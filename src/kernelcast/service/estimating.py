"""Answers of estimates: kept ones at once, remembered and modelled ones soon, sampled ones last."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from cachetools import FIFOCache

from kernelcast.launches.data_folder import data_folder
from kernelcast.predictor.answering.composing import explain_unsampled
from kernelcast.predictor.answering.memory import Answer
from kernelcast.records.contention import HOLDS_S
from kernelcast.records.errors import EstimateTimeoutError, KernelcastError
from kernelcast.records.estimates import DeviceAnswer, Estimate
from kernelcast.records.explanation import Tier
from kernelcast.records.private_files import write_private
from kernelcast.records.problem import identify_launch
from kernelcast.service.answers import Answers
from kernelcast.service.backend import Ask, Backend
from kernelcast.service.changes import ChangeWatcher, bucket_of
from kernelcast.service.device_lock import (
    SHARE_OF_THE_WAIT,
    BoundedPool,
    SamplingQueue,
    TurnMissedError,
    lock_name,
)
from kernelcast.service.errors import ApiError, as_api_error, message_of
from kernelcast.service.settings import Limits
from kernelcast.service.telemetry import Metrics, log
from kernelcast.service_state import AnswerRecord, StoreError
from kernelcast.workers.wire import decode, encode

_APART_S: Final = 1.0
"""Between two refinements, and after a launch was asked for, at least: moments that lie close
together share what disturbs them."""
_STANDS: Final = timedelta(minutes=10)
"""After the first time; each further time four times as long."""
_LONGEST: Final = timedelta(days=1)
_MOST: Final = 256
"""Of each device; the oldest are forgotten."""


class Sampling(StrEnum):
    """Whether work-groups may be run for an answer."""

    AUTO = "auto"
    """Where nothing better is known and the caller may."""
    NEVER = "never"
    """Never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    digest: str
    ask: Ask
    sampling: Sampling
    may_run: bool

    @property
    def key(self) -> tuple[object, ...]:
        """What has the same answer."""
        device = self.ask.device
        return (self.digest, device.id, device.driver, self.ask.settings, self.samples)

    @property
    def samples(self) -> bool:
        """Whether work-groups are run if need be."""
        return self.may_run and self.sampling is Sampling.AUTO


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """An answer as it is sent."""

    content: Mapping[str, Any]
    error: ApiError | None = None


@dataclass(slots=True)
class _Kept:
    """An answer that stands until something changes, and how it is sent."""

    content: Mapping[str, Any]
    answer: Answer
    record: AnswerRecord
    bucket: str
    stamp: tuple[int, int, int]
    ends_s: float

    def stands(self, changes: ChangeWatcher) -> bool:
        """Tell whether nothing has changed since."""
        return self.stamp == changes.stamp(self.bucket) and time.monotonic() < self.ends_s


class Estimating:
    """Answers estimates."""

    def __init__(
        self,
        backend: Backend,
        limits: Limits,
        metrics: Metrics,
        answers: Answers,
        changes: ChangeWatcher,
    ) -> None:
        self._backend = backend
        self._metrics = metrics
        self._answers = answers
        self._changes = changes
        self._kept: FIFOCache[tuple[object, ...], _Kept] = FIFOCache(10_000)
        self._pending: dict[tuple[object, ...], asyncio.Task[_Kept]] = {}
        self._models = BoundedPool(32, "launches")
        self.refinable: OrderedDict[tuple[object, ...], Wanted] = OrderedDict()
        """Kept answers that another sampling makes better; the oldest goes first."""
        self._limits = limits
        self._queues: dict[str, SamplingQueue] = {}

    def queue_of(self, device_id: str) -> SamplingQueue:
        if device_id not in self._queues:
            self._queues[device_id] = SamplingQueue(device_id, self._limits, self._metrics)
        return self._queues[device_id]

    async def answer(self, wanted: Wanted) -> Outcome:
        """Answer, at once if an answer still stands; an error becomes the answer's."""
        started_s = time.perf_counter()
        kept = self._kept.get(wanted.key)
        if kept is not None and kept.stands(self._changes):
            is_kept, kept.record = True, self._answers.note_repeat(kept.record)
        else:
            is_kept = False
            try:
                kept = await self._find(wanted)
            except Exception as error:  # noqa: BLE001 - a bug must not take other devices' answers
                return self._fail(wanted, error)
        passed_s = time.perf_counter() - started_s
        labels = (kept.answer.estimate.tier, "yes" if is_kept else "no")
        self._metrics.estimate_s.labels(*labels).observe(passed_s)
        return Outcome(content={"is_kept": is_kept, **kept.content})

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
        key, wanted = self.refinable.popitem(last=False)
        device_id, started_s = wanted.ask.device.id, time.perf_counter()
        try:
            is_open = await self.refine(wanted)
        except Exception as error:  # noqa: BLE001 - it goes on with others, whatever it is
            log("a refinement failed", level=30, device=device_id, error=repr(error))
            is_open = False
        taken_s = time.perf_counter() - started_s
        self._metrics.refinements.labels(device_id).inc()
        self._metrics.refining_s.labels(device_id).inc(taken_s)
        if is_open:
            self.refinable.setdefault(key, wanted)
        return taken_s

    def close(self) -> None:
        for one in self._queues.values():
            one.close()
        self._models.close()

    async def _find(self, wanted: Wanted) -> _Kept:
        """Give the answer; equal questions at the same time are asked once."""
        key = wanted.key
        task = self._pending.get(key)
        if task is None:
            task = asyncio.create_task(self._make(wanted))
            self._pending[key] = task
            task.add_done_callback(lambda _: self._pending.pop(key, None))
        # Whoever came first may go away; the others wait on.
        return await asyncio.shield(task)

    async def _make(self, wanted: Wanted) -> _Kept:
        """Make the answer: by observations, by what stands, or by asking the device."""
        ask = wanted.ask
        bucket = bucket_of(identify_launch(ask.problem, ask.device, seed=ask.settings.seed))
        stamp = self._changes.stamp(bucket)
        # Programs may write into the store without the service: it is asked again then.
        ends_s = time.monotonic() + 600.0
        estimate: Estimate | None = None
        known, lasts = self._kept.get(wanted.key), True
        beside = None if known is None else known.answer.estimate
        # One of samples alone on the machine stands although another launch was observed.
        if (
            known is not None
            and beside is not None
            and not (
                known.stamp[0] == stamp[0]
                and beside.tier is not Tier.HISTORY
                and beside.now is None
            )
        ):
            known = beside = None
        if ask.settings.uses_history:
            estimate = await asyncio.to_thread(self._backend.recall, ask, beside)
        if estimate is None and known is not None:
            # Others were observed, this launch was not.
            known.stamp, known.ends_s = stamp, ends_s
            known.record = self._answers.note_repeat(known.record)
            return known
        if estimate is not None:
            found = Answer(estimate=estimate, recording=None)
        else:
            try:
                found = await self._ask_device(wanted)
            except TurnMissedError as error:
                lasts, estimate = False, await self._do_without(ask, error)
                found = Answer(estimate=estimate, recording=None)
        kept = self._note(wanted, found, bucket, stamp, ends_s)
        if lasts:
            self._kept[wanted.key] = kept
            if found.refine is not None:
                self.refinable[wanted.key] = wanted
                if len(self.refinable) > 256:
                    self.refinable.popitem(last=False)
        return kept

    def _note(
        self, wanted: Wanted, found: Answer, bucket: str, stamp: tuple[int, int, int], ends_s: float
    ) -> _Kept:
        """Note an answer; one of a busy machine stands as long as that may stay so."""
        ask, estimate = wanted.ask, found.estimate
        if estimate.now is not None:
            ends_s = time.monotonic() + HOLDS_S
        record = self._answers.note(estimate, wanted.digest, ask.problem.name, ask.caller)
        return _Kept(_describe(wanted, estimate), found, record, bucket, stamp, ends_s)

    async def refine(self, wanted: Wanted) -> bool:
        """Sample a kept answer's launch once more on an idle device; tell whether more helps."""
        kept = self._kept.get(wanted.key)
        if kept is None or kept.answer.refine is None or not kept.stands(self._changes):
            return False
        try:
            found = await self.queue_of(wanted.ask.device.id).run_if_idle(kept.answer.refine)
        except KernelcastError:  # who asks again is told
            return False
        if found is None:
            return True
        noted = self._note(wanted, found, kept.bucket, kept.stamp, kept.ends_s)
        self._kept[wanted.key] = noted
        return found.refine is not None

    async def _ask_device(self, wanted: Wanted) -> Answer:
        ask, device_id = wanted.ask, wanted.ask.device.id
        if wanted.samples:
            self._refuse_repeat(ask)
            work = partial(self._sample, ask, time.monotonic())
            return await self.queue_of(device_id).run(work, ask.settings.within_s)
        try:
            return Answer(estimate=await self._model(ask), recording=None)
        except KernelcastError as error:
            if wanted.may_run or wanted.sampling is Sampling.NEVER:
                raise
            raise ApiError(
                HTTPStatus.FORBIDDEN,
                "missing_scope",
                f"{device_id}: nothing is known of this launch without running work-groups, and "
                f"the caller may not run kernels here; the analytic model says: {error}",
                detail={"scope": "run"},
            ) from error

    def _refuse_repeat(self, ask: Ask) -> None:
        try:
            refuse_repeat(ask)
        except ApiError:
            self._metrics.sampling_refused.labels(ask.device.id).inc()
            raise

    def _sample(self, ask: Ask, asked_s: float) -> Answer:
        """Sample on a device that is held; what does not end is remembered."""
        self._refuse_repeat(ask)  # one that was before it in the queue may have been the same
        if ask.settings.within_s is not None:
            left_s = max(ask.settings.within_s - (time.monotonic() - asked_s), 1e-3)
            ask = replace(ask, settings=replace(ask.settings, within_s=left_s))
        try:
            found = self._backend.sample(ask)
        except EstimateTimeoutError as error:
            remember_timeout(ask, str(error))
            raise
        forget_timeout(ask)
        return found

    async def _do_without(self, ask: Ask, cause: TurnMissedError) -> Estimate:
        """Answer a launch whose turn did not come by what runs nothing."""
        estimate: Estimate | None = None
        try:
            async with asyncio.timeout((1 - SHARE_OF_THE_WAIT) * self._limits.wait_seconds):
                if ask.settings.uses_history:  # it may have been observed meanwhile
                    estimate = await asyncio.to_thread(self._backend.recall, ask)
                if estimate is None:
                    estimate = await self._model(ask)
        except (KernelcastError, ApiError, TimeoutError) as error:
            is_late = isinstance(error, TimeoutError)
            why = "the analytic model is not ready in time" if is_late else message_of(error)
            raise TurnMissedError(
                cause.status, cause.code,
                f"{cause.message}; without running work-groups there is no answer: {why}",
                detail=cause.detail, retry_after_s=cause.retry_after_s,
            ) from error  # fmt: skip
        return explain_unsampled(estimate, cause.message)

    async def _model(self, ask: Ask) -> Estimate:
        return await self._models.run(partial(self._backend.model, ask))

    def _fail(self, wanted: Wanted, error: Exception) -> Outcome:
        told = as_api_error(error)
        self._metrics.estimate_errors.labels(told.code, wanted.ask.device.id).inc()
        if isinstance(error, StoreError):
            self._metrics.database_failures.labels("estimates").inc()
        if told.message != str(error):
            log("an estimate failed", level=40, device=wanted.ask.device.id, error=str(error))
        described = told.describe()
        if told.retry_after_s is not None:
            wait = {"retry_after_seconds": told.retry_after_s}
            described["detail"] = {**(described["detail"] or {}), **wait}
        problem, device = wanted.ask.problem, wanted.ask.device
        content = {
            "device": device.name,
            "device_id": device.id,
            "problem": problem.name,
            "problem_digest": wanted.digest,
            "kernel": problem.kernel.name,
            "error": described,
        }
        return Outcome(content=content, error=told)


def _describe(wanted: Wanted, estimate: Estimate) -> Mapping[str, Any]:
    problem, device = wanted.ask.problem, wanted.ask.device
    answer = DeviceAnswer(
        device_id=device.id,
        device=device.name,
        problem=problem.name,
        kernel=problem.kernel.name,
        estimate=estimate,
    )
    content: dict[str, Any] = {**answer.to_dict(), "problem_digest": wanted.digest}
    match content.get("explanation"):
        case {"model": dict() as model}:
            model.pop("place", None)  # where models are is nobody's business
    return content


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedOut:
    """A sampling that was ended, so that its launch does not block the device again.

    All processes of a host share a small file for each device. Only who holds the device's lock
    writes it; anybody reads.
    """

    at: datetime
    limit_s: float
    """Its time limit, in seconds."""
    reason: str
    times: int
    """How often the launch did not end in time, one time after the other."""

    @property
    def until(self) -> datetime:
        return self.at + min(_LONGEST, _STANDS * (1 << 2 * min(self.times - 1, 9)))


def refuse_repeat(ask: Ask) -> None:
    """Refuse a launch that has timed out, unless it may be tried again or has more time."""
    found = _load(ask.device.id).get(_key_of(ask))
    if found is None or ask.timeout_s > found.limit_s or datetime.now(UTC) >= found.until:
        return
    raise ApiError(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "kernel_timeout",
        f"{ask.device.id}: this launch did not end when it was sampled at "
        f"{found.at:%Y-%m-%d %H:%M:%S} UTC, and is not run again before "
        f"{found.until:%Y-%m-%d %H:%M:%S} UTC. Change its source, build options, sizes or "
        "arguments; report what whole runs take; ask for an answer that runs nothing "
        '("sampling": "never"); or start the service with a longer --timeout if it is only '
        f"slow. It was said then: {found.reason}",
        detail={
            "timed_out_at": found.at.isoformat(),
            "not_before": found.until.isoformat(),
            "limit_seconds": found.limit_s,
        },
    )


def remember_timeout(ask: Ask, reason: str) -> None:
    """Note that a launch has not ended in time, and what was said of it."""
    known = _load(ask.device.id)
    before = known.pop(_key_of(ask), None)
    known[_key_of(ask)] = TimedOut(
        at=datetime.now(UTC),
        limit_s=ask.timeout_s,
        reason=reason,
        times=1 + (before.times if before else 0),
    )
    _store(ask.device.id, known)


def forget_timeout(ask: Ask) -> None:
    """Note that a launch has ended in time."""
    known = _load(ask.device.id)
    if known.pop(_key_of(ask), None) is not None:
        _store(ask.device.id, known)


def _load(device_id: str) -> dict[str, TimedOut]:
    try:
        known: dict[str, TimedOut] = decode(_path_of(device_id).read_bytes(), dict[str, TimedOut])
    except (OSError, ValueError):  # a damaged file costs one more try
        return {}
    return known


def _store(device_id: str, known: dict[str, TimedOut]) -> None:
    """Write all or nothing: a process may end at any time."""
    newest = sorted(known.items(), key=lambda one: one[1].at)[-_MOST:]
    with suppress(OSError):  # a full disk costs the memory, not the answer
        write_private(_path_of(device_id), encode(dict(newest)))


def _path_of(device_id: str) -> Path:
    return data_folder() / "locks" / f"{lock_name(device_id)}.timeouts.json"


def _key_of(ask: Ask) -> str:
    problem = ask.problem
    parts = (problem.kernel.digest, ask.device.driver, str(problem.ndrange), str(problem.arguments))
    return sha256("\0".join(parts).encode()).hexdigest()
