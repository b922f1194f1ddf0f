"""Tokens of callers, and what administrators did."""

import json

import sqlalchemy as sa

from kernelcast.records.errors import InputError
from kernelcast.records.service_state import AuditRecord, Scope, TokenRecord
from kernelcast.service_state.database import (
    Database,
    count_change,
    load_moment,
    now_us,
)
from kernelcast.service_state.tables import AUDIT, TOKENS
from kernelcast.training_data.store.plain import dump, dump_time, load_time

TOKENS_CHANGED = "tokens"
"""Name of the count of changes to tokens."""


class TokenTable:
    """Tokens, by their ids."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, one: TokenRecord) -> None:
        """Add a token."""
        row = {
            "id": one.id,
            "name": one.name,
            "salt": one.salt,
            "digest": one.digest,
            "scopes": " ".join(sorted(one.scopes)),
            "created_at_us": dump_time(one.created_at),
            "revoked_at_us": dump_time(one.revoked_at),
        }
        with self._database.write() as connection:
            connection.execute(sa.insert(TOKENS), row)
            count_change(connection, TOKENS_CHANGED)

    def find(self, token_id: str) -> TokenRecord | None:
        """Give a token, also a revoked one; None if there is none of that id."""
        with self._database.read() as connection:
            row = connection.execute(
                sa.select(TOKENS).where(TOKENS.c.id == token_id)
            ).one_or_none()  # fmt: skip
        return None if row is None else _read_token(row)

    def list(self) -> list[TokenRecord]:
        """Give all tokens, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(TOKENS).order_by(TOKENS.c.created_at_us)).all()
        return [_read_token(row) for row in rows]

    def rehash(self, one: TokenRecord) -> None:
        """Keep another hash of the same secret; nobody else need look at the token again."""
        with self._database.write() as connection:
            connection.execute(
                sa.update(TOKENS)
                .where(TOKENS.c.id == one.id)
                .values(salt=one.salt, digest=one.digest)
            )

    def revoke(self, token_id: str) -> TokenRecord:
        """Refuse a token from now on."""
        revoked = sa.update(TOKENS).where(TOKENS.c.id == token_id, TOKENS.c.revoked_at_us.is_(None))
        with self._database.write() as connection:
            connection.execute(revoked.values(revoked_at_us=now_us()))
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
        row = {
            "at_us": dump_time(one.at),
            "actor": one.actor,
            "action": one.action,
            "subject": one.subject,
            "detail": dump(dict(one.detail)),
            "remote": one.remote,
            "request_id": one.request_id,
        }
        with self._database.write() as connection:
            connection.execute(sa.insert(AUDIT), row)

    def list(self, *, most: int) -> list[AuditRecord]:
        """Give the newest rows, newest first."""
        with self._database.read() as connection:
            rows = connection.execute(
                sa.select(AUDIT).order_by(AUDIT.c.number.desc()).limit(most)
            ).all()  # fmt: skip
        return [
            AuditRecord(
                at=load_moment(row.at_us),
                actor=row.actor,
                action=row.action,
                subject=row.subject,
                detail=json.loads(row.detail),
                remote=row.remote,
                request_id=row.request_id,
            )
            for row in rows
        ]


def _read_token(row: sa.Row[tuple[object, ...]]) -> TokenRecord:
    held = row._mapping  # noqa: SLF001 - SQLAlchemy's public name
    return TokenRecord(
        id=held["id"],
        name=held["name"],
        salt=held["salt"],
        digest=held["digest"],
        scopes=frozenset(map(Scope, held["scopes"].split())),
        created_at=load_moment(held["created_at_us"]),
        revoked_at=load_time(held["revoked_at_us"]),
    )
