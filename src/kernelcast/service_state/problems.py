"""Problems that were submitted, by their digests, and counts of changes."""

from datetime import UTC, datetime

import sqlalchemy as sa

from kernelcast.service_state.database import (
    Database,
    count_change,
    insert_once,
)
from kernelcast.service_state.tables import CHANGES, PROBLEMS

OBSERVATIONS_CHANGED = "observations"
"""Name of the count of changes after which any launch may have other observations."""


class ProblemTable:
    """Problems as JSON texts; when there are too many, the oldest are forgotten."""

    def __init__(self, database: Database, *, most: int = 20_000) -> None:
        self._database = database
        self._most = most

    def add(self, digest: str, content: str) -> None:
        """Keep a problem."""
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


class ChangeTable:
    """Counts of changes: a process that sees one grown looks anew at what it holds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def count(self, *names: str) -> None:
        """Note changes, in one transaction."""
        with self._database.write() as connection:
            for name in sorted(names):  # always in this order: writers never wait in a circle
                count_change(connection, name)

    def read(self) -> dict[str, int]:
        """Give all counts."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(CHANGES)).all()
        return {row.name: row.number for row in rows}
