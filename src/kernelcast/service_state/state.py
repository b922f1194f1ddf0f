"""Tokens, jobs, problems and audits: the service's tables, and how they are opened."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from kernelcast.records.errors import InputError
from kernelcast.records.service_state import AuditRecord, JobKind, JobRecord, JobState, TokenRecord
from kernelcast.service_state.answers import AnswerTable
from kernelcast.service_state.tables import (
    METADATA,
    Table,
    grow,
    insert_once,
    make_table,
    name_global_size,
    select_record,
    write_row,
)
from kernelcast.training_data.store import open_store
from kernelcast.training_data.store.connecting import (
    Database,
    bring_up_to_date,
    fetch,
    locate,
    read_version,
)
from kernelcast.training_data.store.schema import WHOLE

HEAD = "0004"
"""Newest version of the tables."""
VERSION_TABLE = "kernelcast_service_version"
TOKENS = make_table("service_tokens", TokenRecord, "id")
# Of the slow hashes that release 0.1 kept: nobody reads it.
TOKENS.append_column(sa.Column("salt", sa.LargeBinary, nullable=False, default=b""))

JOBS = make_table("service_jobs", JobRecord, "id")
sa.Index("ix_service_jobs_state", JOBS.c.state)

AUDIT = make_table("service_audit", AuditRecord)
AUDIT.append_column(sa.Column("number", WHOLE, primary_key=True, autoincrement=True))

KEYS = make_table(
    "service_idempotency",
    {"key": str, "request_digest": str, "job_id": str, "created_at": datetime},
    "key",
)

PROBLEMS = make_table(
    "service_problems", {"digest": str, "content": str, "created_at": datetime}, "digest"
)
sa.Index("ix_service_problems_created_at_us", PROBLEMS.c.created_at)

CHANGES = make_table("service_changes", {"name": str, "number": int}, "name")

OBSERVATIONS_CHANGED = "observations"
"""Name of the count of changes after which any launch may have other observations."""
TOKENS_CHANGED = "tokens"
"""Name of the count of changes to tokens."""
_TOKENS = select_record(TOKENS, TokenRecord)
_JOBS = select_record(JOBS, JobRecord)
_IS_RUNNING = JOBS.c.state == JobState.RUNNING
_WAITING = {"state": JobState.QUEUED, "owner": ""}


def count_change(connection: sa.Connection, name: str) -> None:
    """Note that something has changed, so that other processes look anew."""
    grow(connection, CHANGES, ("name",), ("number",), [{"name": name, "number": 1}])


class TokenTable(Table):
    def add(self, one: TokenRecord) -> None:
        with self._database.write() as connection:
            connection.execute(sa.insert(TOKENS), write_row(one))
            count_change(connection, TOKENS_CHANGED)

    def find(self, token_id: str) -> TokenRecord | None:
        found = self._database.fetch(_TOKENS.where(TOKENS.c.id == token_id), TokenRecord)
        return found[0] if found else None

    def list(self) -> list[TokenRecord]:
        return self._database.fetch(_TOKENS.order_by(TOKENS.c.created_at), TokenRecord)

    def revoke(self, token_id: str) -> TokenRecord:
        revoked = sa.update(TOKENS).where(TOKENS.c.id == token_id, TOKENS.c.revoked_at.is_(None))
        with self._database.write() as connection:
            connection.execute(revoked.values(revoked_at=datetime.now(UTC)))
            count_change(connection, TOKENS_CHANGED)
        found = self.find(token_id)
        if found is None:
            msg = f"there is no token {token_id!r}; `kernelcast serve token list` shows them"
            raise InputError(msg)
        return found


class AuditTable(Table):
    def add(self, one: AuditRecord) -> None:
        with self._database.write() as connection:
            connection.execute(sa.insert(AUDIT), write_row(one))

    def list(self, *, most: int) -> list[AuditRecord]:
        newest = select_record(AUDIT, AuditRecord).order_by(AUDIT.c.number.desc())
        return self._database.fetch(newest.limit(most), AuditRecord)


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
                    found = fetch(connection, _JOBS.where(JOBS.c.id == known.job_id), JobRecord)
                    return found[0], known.request_digest == request_digest
            connection.execute(sa.insert(JOBS), write_row(job))
        return job, True

    def find(self, job_id: str) -> JobRecord | None:
        found = self._database.fetch(_JOBS.where(JOBS.c.id == job_id), JobRecord)
        return found[0] if found else None

    def list(
        self,
        *,
        kinds: Collection[JobKind] = (),
        states: Collection[JobState] = (),
        most: int = 100,
    ) -> list[JobRecord]:
        """Give jobs of any of these kinds and states, all where none is named; newest first.

        Results of validations have megabytes: a job that has one has True in its place.
        """
        is_there = sa.case((JOBS.c.result.is_not(None), True), else_=None)
        columns = (one for one in _JOBS.selected_columns if one.key != "result")
        query = sa.select(*columns, is_there.label("result"))
        query = query.order_by(JOBS.c.created_at.desc(), JOBS.c.id).limit(most)
        if kinds:
            query = query.where(JOBS.c.kind.in_(kinds))
        if states:
            query = query.where(JOBS.c.state.in_(states))
        return self._database.fetch(query, JobRecord)

    def count(self) -> dict[JobState, int]:
        query = sa.select(JOBS.c.state, sa.func.count()).group_by(JOBS.c.state)
        with self._database.read() as connection:
            found = {row[0]: row[1] for row in connection.execute(query)}
        return {one: found.get(one, 0) for one in JobState}

    def claim(self, owner: str, devices: Collection[str]) -> JobRecord | None:
        """Take the oldest waiting job whose devices are all here; None if there is none."""
        query = (
            _JOBS.where(JOBS.c.state == JobState.QUEUED, JOBS.c.is_cancel_wanted.is_(False))
            .order_by(JOBS.c.created_at, JOBS.c.id)
            .limit(100)
            .with_for_update(skip_locked=True)
        )
        with self._database.write() as connection:
            for job in fetch(connection, query, JobRecord):
                if set(job.devices) <= set(devices):
                    its, now = JOBS.c.id == job.id, datetime.now(UTC)
                    begun = {"heartbeat_at": now, "started_at": job.started_at or now}
                    _change(connection, its, state=JobState.RUNNING, owner=owner, **begun)
                    return fetch(connection, _JOBS.where(its), JobRecord)[0]
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
            values |= {"progress": progress, "revision": JOBS.c.revision + 1}
        if has_advanced:
            values["crashes"] = 0
        own = _select_own(job_id, owner)
        with self._database.write() as connection:
            connection.execute(sa.update(JOBS).where(*own).values(values))
            wanted = sa.select(JOBS.c.is_cancel_wanted).where(*own)
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
        crashes = JOBS.c.crashes + (1 if has_crashed else 0)
        with self._database.write() as connection:
            _change(connection, *_select_own(job_id, owner), **_WAITING, crashes=crashes)

    def put_back_orphans(self, owner: str, *, silent_since: datetime) -> int:
        """Let jobs wait again whose process is gone; give how many.

        Nobody of the name `owner` is at work; others who gave no sign of life since a time are not.
        """
        gone = sa.or_(JOBS.c.owner == owner, JOBS.c.heartbeat_at < silent_since)
        with self._database.write() as connection:
            return _change(connection, _IS_RUNNING, gone, **_WAITING)

    def cancel(self, job_id: str) -> None:
        """Have a job end: at once if it waits, else when its process looks next."""
        its, now = JOBS.c.id == job_id, datetime.now(UTC)
        with self._database.write() as connection:
            _change(connection, its, JOBS.c.state == JobState.QUEUED,
                    state=JobState.CANCELLED, ended_at=now, is_cancel_wanted=True)  # fmt: skip
            _change(connection, its, _IS_RUNNING, is_cancel_wanted=True)


def _select_own(job_id: str, owner: str) -> tuple[sa.ColumnElement[bool], ...]:
    return JOBS.c.id == job_id, JOBS.c.owner == owner, _IS_RUNNING


def _change(
    connection: sa.Connection,
    *which: sa.ColumnElement[bool],
    **values: Any,  # noqa: ANN401 - of columns
) -> int:
    """Change jobs, which are newer then; give how many."""
    changed = sa.update(JOBS).where(*which)
    return connection.execute(changed.values(revision=JOBS.c.revision + 1, **values)).rowcount


class ProblemTable(Table):
    """Problems as JSON texts; when there are too many, the oldest are forgotten."""

    def __init__(self, database: Database, *, most: int = 20_000) -> None:
        super().__init__(database)
        self._most = most

    def add(self, digest: str, content: str) -> None:
        row = {"digest": digest, "content": content, "created_at": datetime.now(UTC)}
        with self._database.write() as connection:
            if not insert_once(connection, PROBLEMS, row, "digest"):
                return
            count = connection.scalar(sa.select(sa.func.count()).select_from(PROBLEMS)) or 0
            if count > self._most:
                oldest = (
                    sa.select(PROBLEMS.c.digest)
                    .order_by(PROBLEMS.c.created_at)
                    .limit(min(1000, count - self._most + self._most // 20))
                )
                digests = list(connection.scalars(oldest))
                connection.execute(sa.delete(PROBLEMS).where(PROBLEMS.c.digest.in_(digests)))

    def find(self, digest: str) -> str | None:
        """Give a problem's text; None if it was never submitted, or so long ago."""
        wanted = sa.select(PROBLEMS.c.content).where(PROBLEMS.c.digest == digest)
        with self._database.read() as connection:
            found: str | None = connection.execute(wanted).scalar_one_or_none()
        return found


class ChangeTable(Table):
    """Counts of changes: a process that sees one grown looks anew at what it holds."""

    def count(self, *names: str) -> None:
        with self._database.write() as connection:
            for name in sorted(names):  # always in this order: writers never wait in a circle
                count_change(connection, name)

    def read(self) -> dict[str, int]:
        with self._database.read() as connection:
            rows = connection.execute(sa.select(CHANGES)).all()
        return {row.name: row.number for row in rows}


# Newest first by the time of the measurement: pages and the API read a part at a time.
_INDEXES = (
    "CREATE INDEX IF NOT EXISTS ix_observations_measured ON observations (measured_at_us, key)",
    "CREATE INDEX IF NOT EXISTS ix_observations_origin "
    "ON observations (origin, measured_at_us, key)",
    "CREATE INDEX IF NOT EXISTS ix_observations_flagged ON observations (measured_at_us, key) "
    "WHERE flags <> ''",
    "CREATE INDEX IF NOT EXISTS ix_observations_size "
    "ON observations (({size}), measured_at_us, key)",
)


class ServiceState(Database):
    """Tokens, jobs, audit log, problems, answers and counts of changes; threads share one."""

    def __init__(self, url: sa.URL, where: str) -> None:
        super().__init__(url, where)
        self.tokens = TokenTable(self)
        self.audit = AuditTable(self)
        self.jobs = JobTable(self)
        self.problems = ProblemTable(self)
        self.changes = ChangeTable(self)
        self.answers = AnswerTable(self)

    def check(self) -> None:
        """Find out whether the database answers and can be written: on a full disk it is read."""
        self.changes.count("checked")


def find_state(place: str | Path) -> ServiceState | None:
    """Open the service's tables beside a store, where a service has made them; else make none."""
    with Database(*locate(place)) as database, database.read() as connection:
        is_there = read_version(connection, VERSION_TABLE) is not None
    return open_state(place) if is_there else None


def open_state(place: str | Path) -> ServiceState:
    """Open the service's tables in the database of a store; make both where there is nothing."""
    # The store takes a database only if it is its own or empty, so it comes first.
    open_store(place).close()
    state = ServiceState(*locate(place))

    def update(connection: sa.Connection, _: str | None) -> None:
        METADATA.create_all(connection)  # versions have only added tables
        for statement in _INDEXES:
            size = name_global_size(connection.dialect).replace("observations.", "")
            connection.exec_driver_sql(statement.format(size=size))

    try:
        # "kcss": not the locks of the store.
        bring_up_to_date(state, VERSION_TABLE, HEAD, 0x6B637373, update, "the service's tables are")
    except BaseException:
        state.close()
        raise
    return state
