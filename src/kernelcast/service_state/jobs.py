"""Jobs: who asked for what, who does it, and what it has come to."""

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from kernelcast.records.service_state import JobKind, JobRecord, JobState
from kernelcast.service_state.database import (
    Database,
    insert_once,
    load_moment,
    now_us,
)
from kernelcast.service_state.tables import JOBS, KEYS
from kernelcast.training_data.store.plain import dump, dump_time, load_time

_CANDIDATES = 100
_COLUMNS = JOBS.c
_TRUE = "true"


class JobTable:
    """Jobs, by their ids; several processes and hosts share the table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self, job: JobRecord, *, key: str | None = None, request_digest: str = ""
    ) -> tuple[JobRecord, bool]:
        """Add a job, once for each key.

        Parameters
        ----------
        job : JobRecord
            The job.
        key : str, optional
            Of the request: a second one with it adds nothing.
        request_digest : str
            Of the request's content.

        Returns
        -------
        job : JobRecord
            The one that was added for the key, now or before.
        is_same : bool
            Whether the request with the key had this content.
        """
        with self._database.write() as connection:
            if key is not None:
                row = {"key": key, "request_digest": request_digest, "job_id": job.id,
                       "created_at_us": now_us()}  # fmt: skip
                if not insert_once(connection, KEYS, row, "key"):
                    known = connection.execute(sa.select(KEYS).where(KEYS.c.key == key)).one()
                    wanted = sa.select(JOBS).where(_COLUMNS.id == known.job_id)
                    found = _read_job(connection.execute(wanted).one())
                    return found, known.request_digest == request_digest
            connection.execute(sa.insert(JOBS), _write_job(job))
        return job, True

    def find(self, job_id: str) -> JobRecord | None:
        """Give a job; None if there is none of that id."""
        with self._database.read() as connection:
            row = connection.execute(sa.select(JOBS).where(_COLUMNS.id == job_id)).one_or_none()
        return None if row is None else _read_job(row)

    def list(
        self,
        *,
        kinds: Collection[JobKind] = (),
        states: Collection[JobState] = (),
        most: int = 100,
        with_results: bool = True,
    ) -> list[JobRecord]:
        """Give jobs, newest first.

        Parameters
        ----------
        kinds, states : collection
            One of these; empty means any.
        most : int
            How many at most.
        with_results : bool
            Whether results are read: those of validations have megabytes. Else a job that has one
            has True in its place.
        """
        columns = [*_COLUMNS]
        if not with_results:
            is_there = sa.case((_COLUMNS.result.is_not(None), _TRUE), else_=None)
            columns = [is_there.label("result") if one.name == "result" else one for one in columns]
        query = sa.select(*columns).order_by(_COLUMNS.created_at_us.desc(), _COLUMNS.id)
        query = query.limit(most)
        if kinds:
            query = query.where(_COLUMNS.kind.in_([one.value for one in kinds]))
        if states:
            query = query.where(_COLUMNS.state.in_([one.value for one in states]))
        with self._database.read() as connection:
            return [_read_job(row) for row in connection.execute(query).all()]

    def count(self) -> dict[JobState, int]:
        """Count jobs by their state."""
        query = sa.select(_COLUMNS.state, sa.func.count()).group_by(_COLUMNS.state)
        with self._database.read() as connection:
            found = {JobState(state): count for state, count in connection.execute(query).all()}
        return {one: found.get(one, 0) for one in JobState}

    def claim(self, owner: str, devices: Collection[str]) -> JobRecord | None:
        """Take the oldest waiting job whose devices are all here; None if there is none."""
        query = (
            sa.select(JOBS)
            .where(_COLUMNS.state == JobState.QUEUED.value, _COLUMNS.cancel_wanted.is_(False))
            .order_by(_COLUMNS.created_at_us, _COLUMNS.id)
            .limit(_CANDIDATES)
            .with_for_update(skip_locked=True)
        )
        with self._database.write() as connection:
            for row in connection.execute(query).all():
                job = _read_job(row)
                if set(job.devices) <= set(devices):
                    return self._take(connection, job, owner)
        return None

    def report(
        self,
        job_id: str,
        owner: str,
        progress: Mapping[str, Any] | None,
        *,
        has_advanced: bool = False,
    ) -> bool:
        """Give a sign of life, and progress if there is some; tell whether to go on.

        Parameters
        ----------
        job_id, owner : str
            The job, and who does it.
        progress : mapping or None
            Where it stands.
        has_advanced : bool
            Whether something is done that stays done: deaths before do not count any more.

        Returns
        -------
        bool
            False if the job shall be cancelled or somebody else does it now.
        """
        values: dict[str, Any] = {"heartbeat_at_us": now_us()}
        if progress is not None:
            values |= {"progress": dump(dict(progress)), "revision": _COLUMNS.revision + 1}
        if has_advanced:
            values["crashes"] = 0
        own = (_COLUMNS.id == job_id, _COLUMNS.owner == owner,
               _COLUMNS.state == JobState.RUNNING.value)  # fmt: skip
        with self._database.write() as connection:
            connection.execute(sa.update(JOBS).where(*own).values(values))
            wanted = sa.select(_COLUMNS.cancel_wanted).where(*own)
            is_unwanted: bool | None = connection.execute(wanted).scalar_one_or_none()
        return is_unwanted is False

    def finish(
        self,
        job_id: str,
        owner: str,
        state: JobState,
        *,
        result: object = None,
        error: Mapping[str, Any] | None = None,
    ) -> None:
        """Note what a job has come to; nothing if somebody else does it now."""
        values = {
            "state": state.value,
            "ended_at_us": now_us(),
            "owner": "",
            "result": None if result is None else dump(result),
            "error": None if error is None else dump(dict(error)),
            "revision": _COLUMNS.revision + 1,
        }
        with self._database.write() as connection:
            connection.execute(
                sa.update(JOBS)
                .where(_COLUMNS.id == job_id, _COLUMNS.owner == owner)
                .where(_COLUMNS.state == JobState.RUNNING.value)
                .values(values)
            )

    def put_back(self, job_id: str, owner: str, *, has_crashed: bool = False) -> None:
        """Let a job wait again: it goes on where it was."""
        with self._database.write() as connection:
            connection.execute(
                sa.update(JOBS)
                .where(_COLUMNS.id == job_id, _COLUMNS.owner == owner)
                .where(_COLUMNS.state == JobState.RUNNING.value)
                .values(
                    state=JobState.QUEUED.value,
                    owner="",
                    crashes=_COLUMNS.crashes + (1 if has_crashed else 0),
                    revision=_COLUMNS.revision + 1,
                )
            )

    def put_back_orphans(self, owner: str, *, silent_since: datetime) -> int:
        """Let jobs wait again whose process is gone.

        Parameters
        ----------
        owner : str
            Whoever calls knows that nobody of this name is at work.
        silent_since : datetime
            Jobs of others that gave no sign of life since then are taken from them.

        Returns
        -------
        int
            How many there were.
        """
        is_silent = _COLUMNS.heartbeat_at_us < (dump_time(silent_since) or 0)
        with self._database.write() as connection:
            return connection.execute(
                sa.update(JOBS)
                .where(_COLUMNS.state == JobState.RUNNING.value)
                .where(sa.or_(_COLUMNS.owner == owner, is_silent))
                .values(state=JobState.QUEUED.value, owner="", revision=_COLUMNS.revision + 1)
            ).rowcount

    def cancel(self, job_id: str) -> JobRecord | None:
        """Have a job end; one that waits is cancelled at once. None if there is none."""
        with self._database.write() as connection:
            connection.execute(
                sa.update(JOBS)
                .where(_COLUMNS.id == job_id, _COLUMNS.state == JobState.QUEUED.value)
                .values(
                    state=JobState.CANCELLED.value,
                    ended_at_us=now_us(),
                    cancel_wanted=True,
                    revision=_COLUMNS.revision + 1,
                )
            )
            connection.execute(
                sa.update(JOBS)
                .where(_COLUMNS.id == job_id, _COLUMNS.state == JobState.RUNNING.value)
                .values(cancel_wanted=True, revision=_COLUMNS.revision + 1)
            )
        return self.find(job_id)

    def _take(self, connection: sa.Connection, job: JobRecord, owner: str) -> JobRecord:
        moment = now_us()
        values = {
            "state": JobState.RUNNING.value,
            "owner": owner,
            "heartbeat_at_us": moment,
            "started_at_us": dump_time(job.started_at) or moment,
            "revision": _COLUMNS.revision + 1,
        }
        connection.execute(sa.update(JOBS).where(_COLUMNS.id == job.id).values(values))
        return _read_job(connection.execute(sa.select(JOBS).where(_COLUMNS.id == job.id)).one())


def _write_job(job: JobRecord) -> dict[str, Any]:
    return {
        "id": job.id,
        "kind": job.kind.value,
        "options": dump(dict(job.options)),
        "devices": dump(list(job.devices)),
        "state": job.state.value,
        "created_at_us": dump_time(job.created_at),
        "created_by": job.created_by,
        "started_at_us": dump_time(job.started_at),
        "ended_at_us": dump_time(job.ended_at),
        "heartbeat_at_us": dump_time(job.heartbeat_at),
        "owner": job.owner,
        "crashes": job.crashes,
        "progress": dump(dict(job.progress)),
        "result": None if job.result is None else dump(job.result),
        "error": None if job.error is None else dump(dict(job.error)),
        "cancel_wanted": job.is_cancel_wanted,
        "revision": job.revision,
    }


def _read_job(row: sa.Row[Any]) -> JobRecord:
    return JobRecord(
        id=row.id,
        kind=JobKind(row.kind),
        options=json.loads(row.options),
        devices=tuple(json.loads(row.devices)),
        state=JobState(row.state),
        created_at=load_moment(row.created_at_us),
        created_by=row.created_by,
        started_at=load_time(row.started_at_us),
        ended_at=load_time(row.ended_at_us),
        heartbeat_at=load_time(row.heartbeat_at_us),
        owner=row.owner,
        crashes=row.crashes,
        progress=json.loads(row.progress),
        result=None if row.result is None else json.loads(row.result),
        error=None if row.error is None else json.loads(row.error),
        is_cancel_wanted=bool(row.cancel_wanted),
        revision=row.revision,
    )
