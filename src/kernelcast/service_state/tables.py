"""The service's tables, as the newest migration leaves them."""

import sqlalchemy as sa

from kernelcast.training_data.store.tables import WHOLE

HEAD = "0001"
"""Newest version of the tables: the name of the last migration."""
VERSION_TABLE = "kernelcast_service_version"
METADATA = sa.MetaData()

TOKENS = sa.Table(
    "service_tokens",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("salt", sa.LargeBinary, nullable=False),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("scopes", sa.Text, nullable=False),
    sa.Column("created_at_us", WHOLE, nullable=False),
    sa.Column("revoked_at_us", WHOLE),
)

JOBS = sa.Table(
    "service_jobs",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("options", sa.Text, nullable=False),
    sa.Column("devices", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False, index=True),
    sa.Column("created_at_us", WHOLE, nullable=False),
    sa.Column("created_by", sa.Text, nullable=False),
    sa.Column("started_at_us", WHOLE),
    sa.Column("ended_at_us", WHOLE),
    sa.Column("heartbeat_at_us", WHOLE),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("crashes", WHOLE, nullable=False),
    sa.Column("progress", sa.Text, nullable=False),
    sa.Column("result", sa.Text),
    sa.Column("error", sa.Text),
    sa.Column("cancel_wanted", sa.Boolean, nullable=False),
    sa.Column("revision", WHOLE, nullable=False),
)

AUDIT = sa.Table(
    "service_audit",
    METADATA,
    sa.Column("number", WHOLE, primary_key=True, autoincrement=True),
    sa.Column("at_us", WHOLE, nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Column("remote", sa.Text, nullable=False),
    sa.Column("request_id", sa.Text, nullable=False),
)

KEYS = sa.Table(
    "service_idempotency",
    METADATA,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("request_digest", sa.Text, nullable=False),
    sa.Column("job_id", sa.Text, nullable=False),
    sa.Column("created_at_us", WHOLE, nullable=False),
)

PROBLEMS = sa.Table(
    "service_problems",
    METADATA,
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("created_at_us", WHOLE, nullable=False, index=True),
)

CHANGES = sa.Table(
    "service_changes",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("number", WHOLE, nullable=False),
)
