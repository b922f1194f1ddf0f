"""What was answered, stored and compared with what is observed, while nobody waits for that."""

import asyncio
import math
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from statistics import NormalDist
from typing import Final

from cachetools import FIFOCache

from kernelcast.records.estimates import Estimate
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.service.settings import Limits
from kernelcast.service.telemetry import Metrics, log
from kernelcast.service_state import AnswerRecord, Comparison, ServiceState, StoreError, make_id

PERIOD_S: Final = 1.0
_MOST_WAITING: Final = 20_000
_MOST_KNOWN: Final = 10_000
_PRUNE_EVERY: Final = timedelta(hours=1)
_REPEATS_COUNT_FOR: Final = timedelta(hours=1)


@dataclass(slots=True)
class Drift:
    """Evidence that times move away from what was answered: a two-sided CUSUM on logarithms.

    E. S. Page, "Continuous inspection schemes", Biometrika 41, 1954. By Siegmund's approximation it
    raises a false alarm once in about 9,500 observations of normal noise.
    """

    up: float = 0.0
    down: float = 0.0

    def add(self, measured_s: float, predicted_s: float, deviation: float) -> bool:
        """Take an observation; tell whether times have shifted, and begin anew then."""
        # In deviations: one observation counts for 4 at most, so that none alone raises an alarm;
        # 0.5 is half the smallest shift that matters, 8 is evidence that suffices.
        x = min(max(math.log(measured_s / predicted_s) / deviation, -4.0), 4.0)
        self.up = max(0.0, self.up + x - 0.5)
        self.down = max(0.0, self.down - x - 0.5)
        if max(self.up, self.down) <= 8.0:
            return False
        self.up = self.down = 0.0
        return True


class Answers:
    """Stores answers once a second; what waits for that is lost where the process is killed.

    Of one event loop: no other thread calls it.
    """

    def __init__(self, state: ServiceState, metrics: Metrics, limits: Limits) -> None:
        self._table = state.answers
        self._metrics = metrics
        self._limits = limits
        self._new: list[AnswerRecord] = []
        self._repeats: Counter[int] = Counter()
        self._observed: list[tuple[str, float, datetime]] = []
        self._drifts: FIFOCache[str, Drift] = FIFOCache(_MOST_KNOWN)
        self._pruned_at = datetime.min.replace(tzinfo=UTC)
        self._writing = asyncio.Lock()
        self.recent: deque[Estimate] = deque(maxlen=200)
        """The last answers of this process with all that they rest on, oldest first."""
        self.shifts: FIFOCache[str, Comparison] = FIFOCache(_MOST_KNOWN)
        """Launches, by their keys, that take another time than was answered, for good; what this
        process has seen."""

    def note(self, estimate: Estimate, digest: str, problem: str, caller: str) -> AnswerRecord:
        """Note an answer that was made; what it is given again by."""
        slowdown = 1.0 if estimate.now is None else estimate.now.seconds / estimate.seconds
        record = AnswerRecord(
            id=make_id(datetime.now(UTC)),
            launch_key="" if estimate.identity is None else estimate.identity.key,
            problem_digest=digest,
            problem=problem,
            kernel=estimate.kernel,
            device_id=estimate.device_id,
            global_size=estimate.ndrange.global_size,
            local_size=estimate.ndrange.known_local_size,
            tier=estimate.tier.value,
            seconds=estimate.seconds,
            low=estimate.low,
            high=estimate.high,
            coverage=estimate.coverage,
            slowdown=slowdown,
            cost_s=estimate.cost.total_s,
            caller=caller,
        )
        self._add(record)
        self.recent.append(estimate)
        return record

    def note_repeat(self, record: AnswerRecord) -> AnswerRecord:
        """Note that an answer was given again; after an hour it is written down anew."""
        age = datetime.now(UTC) - record.at
        if age > _REPEATS_COUNT_FOR:
            again = replace(record, id=make_id(datetime.now(UTC)), cost_s=0.0)
            self._add(again)
            return again
        if len(self._repeats) < _MOST_WAITING or record.id in self._repeats:
            self._repeats[record.id] += 1
        return record

    def observe(self, launch: LaunchIdentity, measured_s: float) -> None:
        """Note what a launch took, to be compared with its last answer."""
        if len(self._observed) < _MOST_WAITING:
            self._observed.append((launch.key, measured_s, datetime.now(UTC)))

    async def run(self) -> None:
        """Store once a second until cancelled."""
        while True:
            await asyncio.sleep(PERIOD_S)
            await self.flush()

    async def flush(self) -> None:
        """Store what waits; readers call this, so that they see all that was answered here. What
        the database does not take waits on."""
        async with self._writing:
            waiting = new, repeats, observed = self._new, self._repeats, self._observed
            if not any(waiting):
                return
            self._new, self._repeats, self._observed = [], Counter(), []
            try:
                compared = await asyncio.to_thread(self._table.write, new, repeats, observed)
            except StoreError as error:
                self._metrics.database_failures.labels("answers").inc()
                log("answers wait for the database", level=30, error=repr(error))
                kept = [*new, *self._new][:_MOST_WAITING]
                self._metrics.answers_lost.inc(len(new) + len(self._new) - len(kept))
                self._new, self._repeats = kept, self._repeats + repeats
                self._observed = [*observed, *self._observed][:_MOST_WAITING]
                return
        for one in compared:
            self._judge(one)
        now = datetime.now(UTC)
        if now - self._pruned_at > _PRUNE_EVERY:
            self._pruned_at, before = now, now - timedelta(days=self._limits.answer_days)
            with suppress(StoreError):  # what is stored is stored; they go in an hour
                most = self._limits.answers
                await asyncio.to_thread(self._table.prune, most=most, before=before)

    def _add(self, record: AnswerRecord) -> None:
        if len(self._new) < _MOST_WAITING:
            self._new.append(record)
        else:
            self._metrics.answers_lost.inc()

    def _judge(self, one: Comparison) -> None:
        """Count an observed answer, and see whether the launch takes another time for good."""
        answer = one.answer
        labels = (answer.device_id, answer.tier, str(one.is_inside).lower())
        self._metrics.predictions.labels(*labels).inc()
        self._metrics.prediction_error.labels(answer.tier, answer.device_id).observe(one.error)
        width = math.log(answer.high / answer.low) / 2
        deviation = width / NormalDist().inv_cdf((1 + answer.coverage) / 2)
        drift = self._drifts.setdefault(answer.launch_key, Drift())
        # Runs of one launch differ by at least so much.
        if drift.add(one.measured_s, one.predicted_s, max(deviation, 0.01)):
            self._metrics.drifts.labels(answer.device_id).inc()
            self.shifts[answer.launch_key] = one
