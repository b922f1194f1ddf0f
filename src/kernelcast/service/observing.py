"""Observations: stored before they are acknowledged, each key once; listed, removed, corrected."""

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from importlib.metadata import version
from typing import Final

from cachetools import FIFOCache

from kernelcast.collection.data_rows import Correction, correct_observation, find_observations
from kernelcast.launches.data_store import Selection, open_data_store
from kernelcast.predictor.answering.launch_history import Judge
from kernelcast.predictor.answering.launch_request import INSTRUCTIONS
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError
from kernelcast.records.launch_identity import DeviceIdentity, LaunchIdentity
from kernelcast.records.observation import Observation, ObservationFlag, Origin
from kernelcast.records.observed_times import RunTimes, summarise_runs
from kernelcast.records.problem import Problem, identify_launch
from kernelcast.service.answers import Answers
from kernelcast.service.backend import Backend, bucket_of
from kernelcast.service.errors import ApiError
from kernelcast.service.schemas import DeviceIn, DoubtOut, ObservationIn, ObservationsOut
from kernelcast.service.telemetry import Metrics
from kernelcast.service_state import (
    OBSERVATIONS_CHANGED,
    AddedRows,
    ServiceState,
    Store,
    StoreError,
)

_VERSIONS: Final = {"kernelcast": version("kernelcast")}


Named = tuple[ObservationIn, str, Problem, DeviceIdentity]
"""A measured launch as a caller reports it, the problem's digest, the problem, and the device."""


class Observing:
    """Takes observations, lists, removes and corrects them."""

    def __init__(
        self,
        database: str,
        backend: Backend,
        state: ServiceState,
        metrics: Metrics,
        answers: Answers,
    ) -> None:
        self.store: Store = open_data_store(database)
        self._judge = Judge(backend.history)
        self._count_work = backend.count_work
        self._state = state
        self._metrics = metrics
        self._answers = answers
        self._lock = threading.Lock()
        self._identities: FIFOCache[tuple[object, ...], LaunchIdentity] = FIFOCache(4096)

    async def take(self, reported: Sequence[Named], caller: str) -> ObservationsOut:
        """Store observations, all or none of them."""
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
        """Change an observation; give it as it is now."""
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
        key = (digest, device, tuple(asked.local_size or ()), asked.seed)
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
        counted = None if is_late else self._count_work(problem, caller)
        counts = {} if counted is None else {INSTRUCTIONS: counted}
        found = identify_launch(problem, device, seed=asked.seed, parameters=counts)
        if not is_late:
            with self._lock:
                self._identities[key] = found
        return found


def _make(asked: ObservationIn, launch: LaunchIdentity, now: datetime) -> Observation:
    times = asked.durations_s
    runs = (
        RunTimes(median_s=times[0], durations_s=times) if len(times) == 1 else summarise_runs(times)
    )
    flags = {
        ObservationFlag.FIRST_LAUNCH: asked.is_first_launch,
        ObservationFlag.CONTAMINATED: asked.is_contaminated,
    }
    return Observation(
        launch=launch,
        runs=runs,
        origin=Origin.OBSERVED,
        measurement=asked.key,
        flags=frozenset(flag for flag, is_set in flags.items() if is_set),
        versions=_VERSIONS,
        measured_at=asked.measured_at or now,
    )


def identity_of(device: DeviceDescription | DeviceIn) -> DeviceIdentity:
    """Give what observations of a device of this host or another are stored under."""
    return DeviceIdentity(
        id=device.id, name=device.name, platform=device.platform, driver=device.driver
    )
