"""The service's tables, as the newest migration leaves them."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa

from kernelcast.records.service_state import JobKind, JobState, Scope
from kernelcast.training_data.store.schema import WHOLE, dump, dump_time, load_time

HEAD = "0002"
"""Newest version of the tables: the name of the last migration."""
VERSION_TABLE = "kernelcast_service_version"
METADATA = sa.MetaData()


class _Stored(sa.types.TypeDecorator[Any]):
    """Values that are stored as a text or a number; nothing stays nothing.

    Parameters
    ----------
    kind : type
        Of what is stored.
    write, read : callable
        Turn a value into that, and back.
    """

    impl = sa.Text
    cache_ok = True

    def __init__(
        self,
        kind: type[sa.types.TypeEngine[Any]],
        write: Callable[[Any], Any],
        read: Callable[[Any], Any],
    ) -> None:
        super().__init__()
        self.kind, self.write, self.read = kind, write, read

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        """Give the type of what is stored."""
        return dialect.type_descriptor(self.kind())

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> Any:  # noqa: ANN401
        """Write a value."""
        del dialect
        return None if value is None else self.write(value)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Any:  # noqa: ANN401
        """Read a value."""
        del dialect
        return None if value is None else self.read(value)


def _dump_plain(content: Any) -> str:  # noqa: ANN401 - plain values
    return dump(dict(content) if isinstance(content, Mapping) else content)


def _load_texts(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


def _dump_scopes(scopes: frozenset[Scope]) -> str:
    return " ".join(sorted(scopes))


def _load_scopes(text: str) -> frozenset[Scope]:
    return frozenset(map(Scope, text.split()))


_MOMENT = _Stored(sa.BigInteger, dump_time, load_time)
_PLAIN = _Stored(sa.Text, _dump_plain, json.loads)
_TEXTS = _Stored(sa.Text, dump, _load_texts)
_SIZES = _Stored(sa.Text, dump, lambda text: tuple(json.loads(text)))
_SCOPES = _Stored(sa.Text, _dump_scopes, _load_scopes)
# Keys of columns are names of fields; what is in the database has its unit in its name.

TOKENS = sa.Table(
    "service_tokens",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    # Of the slow hashes that release 0.1 kept: nobody reads it.
    sa.Column("salt", sa.LargeBinary, nullable=False, default=b""),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("scopes", _SCOPES, nullable=False),
    sa.Column("created_at_us", _MOMENT, key="created_at", nullable=False),
    sa.Column("revoked_at_us", _MOMENT, key="revoked_at"),
)

JOBS = sa.Table(
    "service_jobs",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("kind", _Stored(sa.Text, str, JobKind), nullable=False),
    sa.Column("options", _PLAIN, nullable=False),
    sa.Column("devices", _TEXTS, nullable=False),
    sa.Column("state", _Stored(sa.Text, str, JobState), nullable=False, index=True),
    sa.Column("created_at_us", _MOMENT, key="created_at", nullable=False),
    sa.Column("created_by", sa.Text, nullable=False),
    sa.Column("started_at_us", _MOMENT, key="started_at"),
    sa.Column("ended_at_us", _MOMENT, key="ended_at"),
    sa.Column("heartbeat_at_us", _MOMENT, key="heartbeat_at"),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("crashes", WHOLE, nullable=False),
    sa.Column("progress", _PLAIN, nullable=False),
    sa.Column("result", _PLAIN),
    sa.Column("error", _PLAIN),
    sa.Column("cancel_wanted", sa.Boolean, key="is_cancel_wanted", nullable=False),
    sa.Column("revision", WHOLE, nullable=False),
)

AUDIT = sa.Table(
    "service_audit",
    METADATA,
    sa.Column("number", WHOLE, primary_key=True, autoincrement=True),
    sa.Column("at_us", _MOMENT, key="at", nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("detail", _PLAIN, nullable=False),
    sa.Column("remote", sa.Text, nullable=False),
    sa.Column("request_id", sa.Text, nullable=False),
)

KEYS = sa.Table(
    "service_idempotency",
    METADATA,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("request_digest", sa.Text, nullable=False),
    sa.Column("job_id", sa.Text, nullable=False),
    sa.Column("created_at_us", _MOMENT, key="created_at", nullable=False),
)

PROBLEMS = sa.Table(
    "service_problems",
    METADATA,
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("created_at_us", _MOMENT, key="created_at", nullable=False, index=True),
)

CHANGES = sa.Table(
    "service_changes",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("number", WHOLE, nullable=False),
)

ANSWERS = sa.Table(
    "service_answers",
    METADATA,
    # Microseconds since 1970 when it was given, and some random bits: newest first by itself.
    sa.Column("id", WHOLE, primary_key=True, autoincrement=False),
    sa.Column("launch_key", sa.Text, nullable=False),
    sa.Column("problem_digest", sa.Text, nullable=False),
    sa.Column("problem", sa.Text, nullable=False),
    sa.Column("kernel", sa.Text, nullable=False),
    sa.Column("device_id", sa.Text, nullable=False),
    sa.Column("global_size", _SIZES, nullable=False),
    sa.Column("local_size", _SIZES, nullable=False),
    sa.Column("tier", sa.Text, nullable=False),
    sa.Column("seconds", sa.Double, nullable=False),
    sa.Column("low", sa.Double, nullable=False),
    sa.Column("high", sa.Double, nullable=False),
    sa.Column("coverage", sa.Double, nullable=False),
    sa.Column("slowdown", sa.Double, nullable=False),
    sa.Column("cost_s", sa.Double, nullable=False),
    sa.Column("caller", sa.Text, nullable=False),
    sa.Column("asked", WHOLE, nullable=False),
    sa.Column("observed", WHOLE, nullable=False),
    sa.Column("measured_s", sa.Double),
    sa.Column("observed_at_us", _MOMENT, key="observed_at"),
    sa.Column("error", sa.Double),
    sa.Column("is_inside", sa.Boolean),
    # The end of each is the order in which they are read.
    sa.Index("ix_service_answers_launch_key", "launch_key", "id"),
    sa.Index("ix_service_answers_kernel", "kernel", "id"),
    sa.Index("ix_service_answers_device_id", "device_id", "id"),
)
"""Answers, each with what was observed of it last; repeats within an hour are counted."""

WEEKS = sa.Table(
    "service_answer_weeks",
    METADATA,
    sa.Column("week_us", _MOMENT, key="week", primary_key=True),
    sa.Column("device_id", sa.Text, primary_key=True),
    sa.Column("kernel", sa.Text, primary_key=True),
    sa.Column("tier", sa.Text, primary_key=True),
    sa.Column("asked", WHOLE, nullable=False),
    sa.Column("made", WHOLE, nullable=False),
    sa.Column("cost_s", sa.Double, nullable=False),
    sa.Column("predicted_s", sa.Double, nullable=False),
    sa.Column("observed", WHOLE, nullable=False),
    sa.Column("inside", WHOLE, nullable=False),
    sa.Column("error", sa.Double, nullable=False),
    sa.Column("log_ratio", sa.Double, nullable=False),
)
"""Sums over the answers of a week, so that a page need not read millions of them."""


def list_fields(table: sa.Table) -> list[sa.Label[Any]]:
    """Give the columns of a table under the names of the record's fields."""
    return [one.label(one.key) for one in table.columns]


def write_row(record: Any, table: sa.Table) -> dict[str, Any]:  # noqa: ANN401 - a record
    """Give a record's fields as a row."""
    keys = [one.key for one in table.columns]
    return {key: getattr(record, key) for key in keys if hasattr(record, key)}
