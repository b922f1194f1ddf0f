"""Opens what the predictor service remembers, and holds its tables of tokens and audits."""

from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from kernelcast.records.errors import InputError
from kernelcast.records.service_state import AuditRecord, TokenRecord
from kernelcast.service_state.answers import AnswerTable
from kernelcast.service_state.jobs import JobTable
from kernelcast.service_state.tables import (
    AUDIT,
    CHANGES,
    HEAD,
    METADATA,
    PROBLEMS,
    TOKENS,
    VERSION_TABLE,
    Table,
    count_change,
    insert_once,
    name_global_size,
    select_record,
    write_row,
)
from kernelcast.training_data.store import open_store
from kernelcast.training_data.store.connecting import (
    Database,
    bring_up_to_date,
    locate,
    read_version,
)

OBSERVATIONS_CHANGED = "observations"
"""Name of the count of changes after which any launch may have other observations."""
TOKENS_CHANGED = "tokens"
"""Name of the count of changes to tokens."""
_FOUND = select_record(TOKENS, TokenRecord)


class TokenTable(Table):
    def add(self, one: TokenRecord) -> None:
        with self._database.write() as connection:
            connection.execute(sa.insert(TOKENS), write_row(one, TOKENS))
            count_change(connection, TOKENS_CHANGED)

    def find(self, token_id: str) -> TokenRecord | None:
        found = self._database.fetch(_FOUND.where(TOKENS.c.id == token_id), TokenRecord)
        return found[0] if found else None

    def list(self) -> list[TokenRecord]:
        return self._database.fetch(_FOUND.order_by(TOKENS.c.created_at), TokenRecord)

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
            connection.execute(sa.insert(AUDIT), write_row(one, AUDIT))

    def list(self, *, most: int) -> list[AuditRecord]:
        newest = select_record(AUDIT, AuditRecord).order_by(AUDIT.c.number.desc())
        return self._database.fetch(newest.limit(most), AuditRecord)


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
        """Note changes, in one transaction."""
        with self._database.write() as connection:
            for name in sorted(names):  # always in this order: writers never wait in a circle
                count_change(connection, name)

    def read(self) -> dict[str, int]:
        with self._database.read() as connection:
            rows = connection.execute(sa.select(CHANGES)).all()
        return {row.name: row.number for row in rows}


_CHECKED = "checked"
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
        self.changes.count(_CHECKED)


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
