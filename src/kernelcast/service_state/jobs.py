"""Jobs: who asked for what, who does it, and what it has come to."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from kernelcast.records.service_state import JobKind, JobRecord, JobState
from kernelcast.service_state.tables import (
    JOBS,
    KEYS,
    Table,
    insert_once,
    select_record,
    write_row,
)
from kernelcast.training_data.store.connecting import fetch

_COLUMNS = JOBS.c
_FOUND = select_record(JOBS, JobRecord)
_IS_RUNNING = _COLUMNS.state == JobState.RUNNING
_WAITING = {"state": JobState.QUEUED, "owner": ""}


class JobTable(Table):
    """Jobs, by their ids; several processes and hosts share the table."""

    def add(
        self, job: JobRecord, *, key: str | None = None, request_digest: str = ""
    ) -> tuple[JobRecord, bool]:
        """Add a job once for each key; give the key's job, and whether its request was the same."""
        with self._database.write() as connection:
            if key is not None:
                row = {"key": key, "request_digest": request_digest, "job_id": job.id,
                       "created_at": datetime.now(UTC)}  # fmt: skip
                if not insert_once(connection, KEYS, row, "key"):
                    known = connection.execute(sa.select(KEYS).where(KEYS.c.key == key)).one()
                    found = fetch(connection, _FOUND.where(_COLUMNS.id == known.job_id), JobRecord)
                    return found[0], known.request_digest == request_digest
            connection.execute(sa.insert(JOBS), write_row(job, JOBS))
        return job, True

    def find(self, job_id: str) -> JobRecord | None:
        found = self._database.fetch(_FOUND.where(_COLUMNS.id == job_id), JobRecord)
        return found[0] if found else None

    def list(
        self,
        *,
        kinds: Collection[JobKind] = (),
        states: Collection[JobState] = (),
        most: int = 100,
        with_results: bool = True,
    ) -> list[JobRecord]:
        """Give jobs of any of these kinds and states, all where none is named; newest first.

        Results of validations have megabytes: without them a job that has one has True in its
        place.
        """
        query = _FOUND
        if not with_results:
            is_there = sa.case((_COLUMNS.result.is_not(None), True), else_=None)
            columns = (one for one in _FOUND.selected_columns if one.key != "result")
            query = sa.select(*columns, is_there.label("result"))
        query = query.order_by(_COLUMNS.created_at.desc(), _COLUMNS.id).limit(most)
        if kinds:
            query = query.where(_COLUMNS.kind.in_(kinds))
        if states:
            query = query.where(_COLUMNS.state.in_(states))
        return self._database.fetch(query, JobRecord)

    def count(self) -> dict[JobState, int]:
        query = sa.select(_COLUMNS.state, sa.func.count()).group_by(_COLUMNS.state)
        with self._database.read() as connection:
            found = {row[0]: row[1] for row in connection.execute(query)}
        return {one: found.get(one, 0) for one in JobState}

    def claim(self, owner: str, devices: Collection[str]) -> JobRecord | None:
        """Take the oldest waiting job whose devices are all here; None if there is none."""
        query = (
            _FOUND.where(_COLUMNS.state == JobState.QUEUED, _COLUMNS.is_cancel_wanted.is_(False))
            .order_by(_COLUMNS.created_at, _COLUMNS.id)
            .limit(100)
            .with_for_update(skip_locked=True)
        )
        with self._database.write() as connection:
            for job in fetch(connection, query, JobRecord):
                if set(job.devices) <= set(devices):
                    its, now = _COLUMNS.id == job.id, datetime.now(UTC)
                    begun = {"heartbeat_at": now, "started_at": job.started_at or now}
                    _change(connection, its, state=JobState.RUNNING, owner=owner, **begun)
                    return fetch(connection, _FOUND.where(its), JobRecord)[0]
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

        `has_advanced` says that something is done that stays done: deaths before do not count any
        more. False is returned where the job shall be cancelled, or somebody else does it now.
        """
        values: dict[str, Any] = {"heartbeat_at": datetime.now(UTC)}
        if progress is not None:
            values |= {"progress": progress, "revision": _COLUMNS.revision + 1}
        if has_advanced:
            values["crashes"] = 0
        own = _select_own(job_id, owner)
        with self._database.write() as connection:
            connection.execute(sa.update(JOBS).where(*own).values(values))
            wanted = sa.select(_COLUMNS.is_cancel_wanted).where(*own)
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
        ended = {"state": state, "ended_at": datetime.now(UTC), "owner": ""}
        with self._database.write() as connection:
            own = _select_own(job_id, owner)
            _change(connection, *own, **ended, result=result, error=error)

    def put_back(self, job_id: str, owner: str, *, has_crashed: bool = False) -> None:
        """Let a job wait again: it goes on where it was."""
        crashes = _COLUMNS.crashes + (1 if has_crashed else 0)
        with self._database.write() as connection:
            _change(connection, *_select_own(job_id, owner), **_WAITING, crashes=crashes)

    def put_back_orphans(self, owner: str, *, silent_since: datetime) -> int:
        """Let jobs wait again whose process is gone; give how many.

        Nobody of the name `owner` is at work; others who gave no sign of life since a time are not.
        """
        gone = sa.or_(_COLUMNS.owner == owner, _COLUMNS.heartbeat_at < silent_since)
        with self._database.write() as connection:
            return _change(connection, _IS_RUNNING, gone, **_WAITING)

    def cancel(self, job_id: str) -> None:
        """Have a job end: at once if it waits, else when its process looks next."""
        its, now = _COLUMNS.id == job_id, datetime.now(UTC)
        with self._database.write() as connection:
            _change(connection, its, _COLUMNS.state == JobState.QUEUED,
                    state=JobState.CANCELLED, ended_at=now, is_cancel_wanted=True)  # fmt: skip
            _change(connection, its, _IS_RUNNING, is_cancel_wanted=True)


def _select_own(job_id: str, owner: str) -> tuple[sa.ColumnElement[bool], ...]:
    return _COLUMNS.id == job_id, _COLUMNS.owner == owner, _IS_RUNNING


def _change(
    connection: sa.Connection,
    *which: sa.ColumnElement[bool],
    **values: Any,  # noqa: ANN401 - of columns
) -> int:
    """Change jobs, which are newer then; give how many."""
    changed = sa.update(JOBS).where(*which)
    return connection.execute(changed.values(revision=_COLUMNS.revision + 1, **values)).rowcount
