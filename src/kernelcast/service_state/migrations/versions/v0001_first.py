"""The first version: tokens, jobs, audit log, keys of requests, problems, changes."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Written out and not taken from `tables`, which describes the newest version.
_Columns = tuple[tuple[str, sa.types.TypeEngine[Any], bool], ...]
_WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TOKENS: _Columns = (
    ("name", sa.Text(), False), ("salt", sa.LargeBinary(), False),
    ("digest", sa.LargeBinary(), False), ("scopes", sa.Text(), False),
    ("created_at_us", _WHOLE, False), ("revoked_at_us", _WHOLE, True),
)  # fmt: skip
_JOBS: _Columns = (
    ("kind", sa.Text(), False), ("options", sa.Text(), False), ("devices", sa.Text(), False),
    ("state", sa.Text(), False), ("created_at_us", _WHOLE, False),
    ("created_by", sa.Text(), False), ("started_at_us", _WHOLE, True),
    ("ended_at_us", _WHOLE, True), ("heartbeat_at_us", _WHOLE, True),
    ("owner", sa.Text(), False), ("crashes", _WHOLE, False), ("progress", sa.Text(), False),
    ("result", sa.Text(), True), ("error", sa.Text(), True),
    ("cancel_wanted", sa.Boolean(), False), ("revision", _WHOLE, False),
)  # fmt: skip
_AUDIT: _Columns = (
    ("at_us", _WHOLE, False), ("actor", sa.Text(), False), ("action", sa.Text(), False),
    ("subject", sa.Text(), False), ("detail", sa.Text(), False), ("remote", sa.Text(), False),
    ("request_id", sa.Text(), False),
)  # fmt: skip
_KEYS: _Columns = (
    ("request_digest", sa.Text(), False), ("job_id", sa.Text(), False),
    ("created_at_us", _WHOLE, False),
)  # fmt: skip
_PROBLEMS: _Columns = (("content", sa.Text(), False), ("created_at_us", _WHOLE, False))


def upgrade() -> None:
    """Make all tables."""
    text = sa.Text()
    _create("service_tokens", ("id", text), _TOKENS)
    _create("service_jobs", ("id", text), _JOBS, indexed=("state",))
    _create("service_audit", ("number", _WHOLE), _AUDIT)
    _create("service_idempotency", ("key", text), _KEYS)
    _create("service_problems", ("digest", text), _PROBLEMS, indexed=("created_at_us",))
    _create("service_changes", ("name", text), (("number", _WHOLE, False),))


def _create(
    table: str,
    key: tuple[str, sa.types.TypeEngine[Any]],
    columns: _Columns,
    *,
    indexed: tuple[str, ...] = (),
) -> None:
    name, kind = key
    op.create_table(
        table,
        sa.Column(name, kind, primary_key=True),
        *(sa.Column(one, its, nullable=nullable) for one, its, nullable in columns),
    )
    for one in indexed:
        op.create_index(f"ix_{table}_{one}", table, [one])
