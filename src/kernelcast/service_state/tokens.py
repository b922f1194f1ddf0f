"""Tokens of callers, and what administrators did."""

from datetime import UTC, datetime

import sqlalchemy as sa

from kernelcast.records.errors import InputError
from kernelcast.records.service_state import AuditRecord, TokenRecord
from kernelcast.service_state.database import Database, count_change
from kernelcast.service_state.tables import AUDIT, TOKENS, select_record, write_row

TOKENS_CHANGED = "tokens"
"""Name of the count of changes to tokens."""
_FOUND = select_record(TOKENS, TokenRecord)


class TokenTable:
    """Tokens, by their ids."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, one: TokenRecord) -> None:
        """Add a token."""
        with self._database.write() as connection:
            connection.execute(sa.insert(TOKENS), write_row(one, TOKENS))
            count_change(connection, TOKENS_CHANGED)

    def find(self, token_id: str) -> TokenRecord | None:
        """Give a token, also a revoked one; None if there is none of that id."""
        with self._database.read() as connection:
            row = connection.execute(_FOUND.where(TOKENS.c.id == token_id)).mappings().one_or_none()
        return None if row is None else TokenRecord(**row)

    def list(self) -> list[TokenRecord]:
        """Give all tokens, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(_FOUND.order_by(TOKENS.c.created_at)).mappings().all()
        return [TokenRecord(**row) for row in rows]

    def revoke(self, token_id: str) -> TokenRecord:
        """Refuse a token from now on."""
        revoked = sa.update(TOKENS).where(TOKENS.c.id == token_id, TOKENS.c.revoked_at.is_(None))
        with self._database.write() as connection:
            connection.execute(revoked.values(revoked_at=datetime.now(UTC)))
            count_change(connection, TOKENS_CHANGED)
        found = self.find(token_id)
        if found is None:
            msg = f"there is no token {token_id!r}; `kernelcast serve token list` shows them"
            raise InputError(msg)
        return found


class AuditTable:
    """What administrators did; rows are only added."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, one: AuditRecord) -> None:
        """Add a row."""
        with self._database.write() as connection:
            connection.execute(sa.insert(AUDIT), write_row(one, AUDIT))

    def list(self, *, most: int) -> list[AuditRecord]:
        """Give the newest rows, newest first."""
        newest = select_record(AUDIT, AuditRecord).order_by(AUDIT.c.number.desc())
        with self._database.read() as connection:
            rows = connection.execute(newest.limit(most)).mappings().all()
        return [AuditRecord(**row) for row in rows]
