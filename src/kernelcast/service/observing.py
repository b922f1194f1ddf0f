"""What was answered and what is observed: stored, compared, listed, removed and corrected.

Observations are stored before they are acknowledged, each key once; answers while nobody waits.
"""

import asyncio
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from importlib.metadata import version
from statistics import NormalDist
from typing import Final

from cachetools import FIFOCache

from kernelcast.collection.data_rows import Correction, correct_observation, find_observations
from kernelcast.launches.data_store import Selection
from kernelcast.predictor.answering.launch_history import Judge
from kernelcast.predictor.answering.launch_request import INSTRUCTIONS
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Estimate
from kernelcast.records.observation import (
    Observation,
    ObservationFlag,
    Origin,
    summarise_runs,
)
from kernelcast.records.problem import DeviceIdentity, LaunchIdentity, Problem, identify_launch
from kernelcast.service.backend import Backend, bucket_of
from kernelcast.service.errors import ApiError
from kernelcast.service.schemas import DoubtOut, ObservationIn, ObservationsOut
from kernelcast.service.settings import Limits
from kernelcast.service.telemetry import Metrics, log
from kernelcast.service_state import (
    OBSERVATIONS_CHANGED,
    AddedRows,
    AnswerRecord,
    ServiceState,
    Store,
    StoreError,
    make_id,
)

PERIOD_S: Final = 1.0
_MOST_WAITING: Final = 20_000
_VERSIONS: Final = {"kernelcast": version("kernelcast")}
_HOUR: Final = timedelta(hours=1)


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
        # Evidence that times of a launch are longer, and shorter, than was answered.
        self._drifts: FIFOCache[str, tuple[float, float]] = FIFOCache(10_000)
        self._pruned_at = datetime.min.replace(tzinfo=UTC)
        self._writing = asyncio.Lock()
        self.recent: deque[Estimate] = deque(maxlen=200)
        """The last answers of this process with all that they rest on, oldest first."""
        self.shifts: FIFOCache[str, AnswerRecord] = FIFOCache(10_000)
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
        if age > _HOUR:
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
        if now - self._pruned_at > _HOUR:
            self._pruned_at, before = now, now - timedelta(days=self._limits.answer_days)
            with suppress(StoreError):  # what is stored is stored; they go in an hour
                most = self._limits.answers
                await asyncio.to_thread(self._table.prune, most=most, before=before)

    def _add(self, record: AnswerRecord) -> None:
        if len(self._new) < _MOST_WAITING:
            self._new.append(record)
        else:
            self._metrics.answers_lost.inc()

    def _judge(self, answer: AnswerRecord) -> None:
        labels = (answer.device_id, answer.tier, str(answer.is_inside).lower())
        self._metrics.predictions.labels(*labels).inc()
        error = answer.error or 0.0
        self._metrics.prediction_error.labels(answer.tier, answer.device_id).observe(error)
        width = math.log(answer.high / answer.low) / 2
        deviation = width / NormalDist().inv_cdf((1 + answer.coverage) / 2)
        # A two-sided CUSUM on logarithms (E. S. Page, "Continuous inspection schemes", Biometrika
        # 41, 1954), in deviations; runs of one launch differ by at least 1 %. One observation
        # counts for 4 at most, so that none alone raises an alarm; 0.5 is half the smallest shift
        # that matters, 8 is evidence that suffices: by Siegmund's approximation a false alarm comes
        # once in about 9,500 observations of normal noise.
        x = -answer.log_ratio / max(deviation, 0.01)
        x = min(max(x, -4.0), 4.0)
        up, down = self._drifts.get(answer.launch_key, (0.0, 0.0))
        up, down = max(0.0, up + x - 0.5), max(0.0, down - x - 0.5)
        if has_shifted := max(up, down) > 8.0:
            self._metrics.drifts.labels(answer.device_id).inc()
            self.shifts[answer.launch_key] = answer
        self._drifts[answer.launch_key] = (0.0, 0.0) if has_shifted else (up, down)


Named = tuple[ObservationIn, str, Problem, DeviceDescription | DeviceIdentity]
"""A measured launch as a caller reports it, the problem's digest, the problem, and the device."""


@dataclass(eq=False)
class Observing:
    store: Store
    _backend: Backend
    _state: ServiceState
    _metrics: Metrics
    _answers: Answers
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _identities: FIFOCache[tuple[object, ...], LaunchIdentity] = field(
        default_factory=lambda: FIFOCache(4096)
    )

    def __post_init__(self) -> None:
        self._judge = Judge(self._backend.history)

    async def take(self, reported: Sequence[Named], caller: str) -> ObservationsOut:
        observations, taken = await asyncio.to_thread(self._write, reported, caller)
        self._metrics.observations.labels("added").inc(taken.added)
        self._metrics.observations.labels("known").inc(taken.known)
        for one in observations if taken.added else ():
            if not one.flags:  # else it says little of the launch
                self._answers.observe(one.launch, one.runs.median_s)
        return taken

    async def count(self, wanted: Selection, global_size: tuple[int, ...] = ()) -> int:
        return await asyncio.to_thread(self._state.answers.count_observations, wanted, global_size)

    async def list(
        self,
        wanted: Selection,
        *,
        most: int,
        after: tuple[int | None, str] | None = None,
        global_size: tuple[int, ...] = (),
    ) -> tuple[Sequence[Mapping[str, object]], tuple[int | None, str] | None]:
        """List what a selection means, newest first; tell behind which more follow."""

        def read() -> tuple[Sequence[Mapping[str, object]], tuple[int | None, str] | None]:
            places = self._state.answers.list_observations(
                wanted, most=most + 1, after=after, global_size=global_size
            )
            shown = places[:most]
            keys = tuple(key for _, key in shown)
            held = Selection(keys=keys)
            rows = find_observations(self.store, held, most=len(keys)) if keys else ()
            found = {str(one["key"]): one for one in rows}
            last = shown[-1] if len(places) > most and shown else None
            return [found[key] for key in keys if key in found], last

        return await asyncio.to_thread(read)

    async def remove(self, wanted: Selection) -> int:
        try:
            return await asyncio.to_thread(self.store.remove_selected, wanted)
        finally:
            await self._tell()

    async def correct(self, key: str, correction: Correction) -> Mapping[str, object]:
        try:
            return await asyncio.to_thread(correct_observation, self.store, key, correction)
        finally:
            await self._tell()

    async def _tell(self) -> None:
        """Have every process look at its answers again."""
        self.forget()
        await asyncio.to_thread(self._state.changes.count, OBSERVATIONS_CHANGED)

    def forget(self) -> None:
        """Forget what was observed: some of it was removed or corrected."""
        with self._lock:
            self._judge.forget()

    def close(self) -> None:
        self.store.close()

    def _write(
        self, reported: Sequence[Named], caller: str
    ) -> tuple[Sequence[Observation], ObservationsOut]:
        # The sources of a batch may be read until then: what is left tells nothing of other sizes
        # where these decide how much a work-item does.
        now, ends_s = datetime.now(UTC), time.monotonic() + 2.0
        made = [_make(one[0], self._identify(one, caller, ends_s), now) for one in reported]
        doubted = []
        observations = []
        with self._lock:
            for one in made:
                judged, reason = self._judge.judge(one)
                observations.append(judged)
                if reason:
                    doubted.append(
                        DoubtOut(key=one.measurement, observation=one.key, reason=reason)
                    )

        def refuse_changes(rows: AddedRows) -> None:
            """Refuse a key that stands for another time: this one would be lost in silence."""
            for one in made:
                if one.key in rows.changed:
                    raise ApiError(
                        HTTPStatus.CONFLICT,
                        "key_used_otherwise",
                        f"the key {one.measurement!r} stands for another time of this launch "
                        "already; nothing is stored: use a new key, or correct that observation",
                        detail={"key": one.measurement, "observation": one.key},
                    )

        try:
            rows = self.store.add_many(observations, check=refuse_changes)
        except (ApiError, StoreError):
            self.forget()
            raise
        if rows.added:
            self._state.changes.count(*{bucket_of(one.launch) for one in observations})
        return observations, ObservationsOut(added=rows.added, known=rows.known, doubted=doubted)

    def _identify(self, one: Named, caller: str, ends_s: float) -> LaunchIdentity:
        """Name a launch, and say how much it does, if there is time to find out."""
        asked, digest, problem, device = one
        described = (device.id, device.name, device.platform, device.driver)
        key = (digest, *described, tuple(asked.local_size or ()), asked.seed)
        with self._lock:
            known = self._identities.get(key)
        if known is not None:
            return known
        ndrange, used = problem.ndrange, tuple(asked.local_size or ())
        if used and used != ndrange.local_size:
            if ndrange.local_size is not None:
                raise InputError(
                    f"observation {asked.key!r}: ran with local size {list(used)}, the problem "
                    f"says {list(ndrange.local_size)}; leave it out, or send the problem that was "
                    "run"
                )
            ndrange = replace(ndrange, local_size=used)
        problem = replace(problem, ndrange=ndrange)
        is_late = time.monotonic() > ends_s
        counted = None if is_late else self._backend.count_work(problem, caller)
        counts = {} if counted is None else {INSTRUCTIONS: counted}
        found = identify_launch(problem, device, seed=asked.seed, parameters=counts)
        if not is_late:
            with self._lock:
                self._identities[key] = found
        return found


def _make(asked: ObservationIn, launch: LaunchIdentity, now: datetime) -> Observation:
    flags = {
        ObservationFlag.FIRST_LAUNCH: asked.is_first_launch,
        ObservationFlag.CONTAMINATED: asked.is_contaminated,
    }
    return Observation(
        launch=launch,
        runs=summarise_runs(asked.durations_s),
        origin=Origin.OBSERVED,
        measurement=asked.key,
        flags=frozenset(flag for flag, is_set in flags.items() if is_set),
        versions=_VERSIONS,
        measured_at=asked.measured_at or now,
    )
