"""Answers of estimates: kept ones at once, remembered and modelled ones soon, sampled ones last."""

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from http import HTTPStatus
from typing import Final

from cachetools import FIFOCache

from kernelcast.predictor.answering.composing import explain_unsampled
from kernelcast.predictor.answering.launch_request import identify_launch
from kernelcast.predictor.answering.memory import Answer
from kernelcast.records.contention import HOLDS_S
from kernelcast.records.errors import EstimateTimeoutError, KernelcastError
from kernelcast.records.estimates import DeviceAnswer, Estimate
from kernelcast.records.explanation import Tier
from kernelcast.service.answers import Answers
from kernelcast.service.backend import Ask, Backend
from kernelcast.service.changes import Versions, bucket_of
from kernelcast.service.errors import ApiError, as_api_error, message_of
from kernelcast.service.queues import (
    SHARE_OF_THE_WAIT,
    BoundedPool,
    SamplingQueue,
    TurnMissedError,
)
from kernelcast.service.settings import Limits
from kernelcast.service.telemetry import Metrics, log
from kernelcast.service.timeouts import forget_timeout, refuse_repeat, remember_timeout
from kernelcast.service_state import AnswerRecord, StoreError

_APART_S: Final = 1.0
"""Between two refinements, and after a launch was asked for, at least: moments that lie close
together share what disturbs them."""


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

    content: bytes
    error: ApiError | None = None


@dataclass(slots=True)
class _Kept:
    """An answer that stands until something changes; `rest` is its JSON after the first key."""

    rest: bytes
    estimate: Estimate
    bucket: str
    observed: tuple[int, int]
    models: int
    ends_s: float
    record: AnswerRecord
    refine: Callable[[], Answer] | None = None

    def stands(self, versions: Versions) -> bool:
        """Tell whether nothing has changed since."""
        return (
            self.models == versions.models
            and self.observed == versions.of(self.bucket)
            and time.monotonic() < self.ends_s
        )

    def may_stand(self, models: int) -> bool:
        """Tell whether it stands although another launch was observed."""
        is_lasting = self.estimate.tier is not Tier.HISTORY and self.estimate.now is None
        return self.models == models and is_lasting

    def write(self, *, is_kept: bool) -> bytes:
        return (b'{"is_kept": true, ' if is_kept else b'{"is_kept": false, ') + self.rest


class Estimating:
    """Answers estimates."""

    def __init__(
        self,
        backend: Backend,
        limits: Limits,
        metrics: Metrics,
        answers: Answers,
        versions: Versions,
    ) -> None:
        self._backend = backend
        self._metrics = metrics
        self._answers = answers
        self._versions = versions
        self._kept: FIFOCache[tuple[object, ...], _Kept] = FIFOCache(10_000)
        self._pending: dict[tuple[object, ...], asyncio.Task[_Kept]] = {}
        self._recalls = ThreadPoolExecutor(4, thread_name_prefix="recall")
        self._models = BoundedPool(32, "launches")
        # What requests ask, by their bytes and by whether kernels may be run.
        self._requests: FIFOCache[tuple[bytes, bool], Sequence[Wanted]] = FIFOCache(4096)
        self.refinable: OrderedDict[tuple[object, ...], Wanted] = OrderedDict()
        """Kept answers that another sampling makes better; the oldest goes first."""
        self._limits = limits
        self._queues: dict[str, SamplingQueue] = {}

    def queue_of(self, device_id: str) -> SamplingQueue:
        if device_id not in self._queues:
            self._queues[device_id] = SamplingQueue(device_id, self._limits, self._metrics)
        return self._queues[device_id]

    def find_kept(self, wanted: Wanted) -> Outcome | None:
        """Give an answer that was given before and still stands; takes no time."""
        started_s = time.perf_counter()
        kept = self._kept.get(wanted.key)
        if kept is None or not kept.stands(self._versions):
            return None
        kept.record = self._answers.note_repeat(kept.record)
        passed_s = time.perf_counter() - started_s
        self._metrics.estimate_s.labels(kept.estimate.tier, "yes").observe(passed_s)
        return Outcome(content=kept.write(is_kept=True))

    async def answer(self, wanted: Wanted) -> Outcome:
        """Answer; an error becomes the answer's."""
        kept = self.find_kept(wanted)
        if kept is not None:
            return kept
        started_s = time.perf_counter()
        try:
            found = await self._find(wanted)
        except (KernelcastError, ApiError) as error:
            return self._fail(wanted, error)
        except Exception as error:  # noqa: BLE001 - a bug must not take the other devices' answers
            return self._fail(wanted, KernelcastError(repr(error)))
        passed_s = time.perf_counter() - started_s
        self._metrics.estimate_s.labels(found.estimate.tier, "no").observe(passed_s)
        return Outcome(content=found.write(is_kept=False))

    def remember_request(self, body: bytes, wanted: Sequence[Wanted], *, may_run: bool) -> None:
        if len(body) <= 16 * 1024:
            self._requests[body, may_run] = wanted

    def forget_requests(self) -> None:
        """Read all requests anew: the devices may be others now."""
        self._requests.clear()

    def repeat(self, body: bytes, *, may_run: bool) -> bytes | None:
        """Give the whole answer to a request, if every part of it was kept and still stands."""
        contents = []
        for one in self._requests.get((body, may_run), ()):
            kept = self.find_kept(one)
            if kept is None:
                return None
            contents.append(kept.content)
        return write_answers(contents) if contents else None

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
        self._recalls.shutdown(wait=False, cancel_futures=True)

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
        observed, models = self._versions.of(bucket), self._versions.models
        # Programs may write into the store without the service: it is asked again then.
        ends_s = time.monotonic() + 600.0
        estimate: Estimate | None = None
        refine: Callable[[], Answer] | None = None
        known, lasts = self._kept.get(wanted.key), True
        if known is not None and not known.may_stand(models):
            known = None
        if wanted.ask.settings.uses_history:
            beside = None if known is None else known.estimate
            estimate = await self._recall(wanted.ask, beside)
        if estimate is None and known is not None:
            # Others were observed, this launch was not.
            known.observed, known.ends_s = observed, ends_s
            known.record = self._answers.note_repeat(known.record)
            return known
        if estimate is None:
            try:
                found = await self._ask_device(wanted)
                estimate, refine = found.estimate, found.refine
            except TurnMissedError as error:
                estimate, lasts = await self._do_without(wanted.ask, error), False
        rest, record, ends_s = self._note(wanted, estimate, ends_s)
        kept = _Kept(rest, estimate, bucket, observed, models, ends_s, record, refine)
        if lasts:
            self._kept[wanted.key] = kept
            if refine is not None:
                self.refinable[wanted.key] = wanted
                if len(self.refinable) > 256:
                    self.refinable.popitem(last=False)
        return kept

    def _note(
        self, wanted: Wanted, estimate: Estimate, ends_s: float
    ) -> tuple[bytes, AnswerRecord, float]:
        """Note an answer; give how it is sent, its record, and how long it stands."""
        ask = wanted.ask
        record = self._answers.note(estimate, wanted.digest, ask.problem.name, ask.caller)
        ends_s = ends_s if estimate.now is None else time.monotonic() + HOLDS_S
        return _write(wanted, estimate), record, ends_s

    async def refine(self, wanted: Wanted) -> bool:
        """Sample a kept answer's launch once more on an idle device; tell whether more helps."""
        kept = self._kept.get(wanted.key)
        if kept is None or kept.refine is None or not kept.stands(self._versions):
            return False
        try:
            found = await self.queue_of(wanted.ask.device.id).run_if_idle(kept.refine)
        except KernelcastError:  # who asks again is told
            return False
        if found is None:
            return True
        kept.estimate, kept.refine = found.estimate, found.refine
        kept.rest, kept.record, kept.ends_s = self._note(wanted, found.estimate, kept.ends_s)
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
                    estimate = await self._recall(ask)
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

    async def _recall(self, ask: Ask, beside: Estimate | None = None) -> Estimate | None:
        return await asyncio.get_running_loop().run_in_executor(
            self._recalls, self._backend.recall, ask, beside
        )

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
        return Outcome(content=json.dumps(content).encode(), error=told)


def _write(wanted: Wanted, estimate: Estimate) -> bytes:
    """Write an answer, without its first brace."""
    problem, device = wanted.ask.problem, wanted.ask.device
    answer = DeviceAnswer(
        device_id=device.id,
        device=device.name,
        problem=problem.name,
        kernel=problem.kernel.name,
        estimate=estimate,
    )
    content = {**answer.to_dict(), "problem_digest": wanted.digest}
    match content.get("explanation"):
        case {"model": dict() as model}:
            model.pop("place", None)  # where models are is nobody's business
    return json.dumps(content, allow_nan=False).encode()[1:]


def write_answers(contents: Sequence[bytes]) -> bytes:
    return b'{"estimates": [' + b", ".join(contents) + b"]}"
