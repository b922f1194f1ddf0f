"""The first version: observations, failures, schemas of features."""

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
_LAUNCH: _Columns = (
    ("launch_key", sa.Text(), False), ("measurement", sa.Text(), False),
    ("kernel_digest", sa.Text(), False), ("kernel", sa.Text(), False),
    ("application", sa.Text(), False), ("suite", sa.Text(), False),
    ("device_id", sa.Text(), False), ("device", sa.Text(), False),
    ("platform", sa.Text(), False), ("driver", sa.Text(), False),
    ("ndrange", sa.Text(), True), ("work_groups", _WHOLE, True),
    ("arguments_digest", sa.Text(), False), ("parameters", sa.Text(), False),
)  # fmt: skip
_OBSERVATION: _Columns = (
    ("seconds", sa.Double(), False), ("durations_s", sa.Text(), False),
    ("noise", sa.Double(), True), ("run_count", _WHOLE, False),
    ("schema_id", sa.Text(), True), ("features", sa.LargeBinary(), True),
    ("linear_s", sa.Double(), True), ("sampling_s", sa.Double(), True),
    ("samples", sa.Text(), False), ("origin", sa.Text(), False), ("source", sa.Text(), False),
    ("flags", sa.Text(), False), ("machine_state", sa.Text(), False),
    ("versions", sa.Text(), False), ("measured_at_us", _WHOLE, True),
)  # fmt: skip
_FAILURE: _Columns = (
    ("kind", sa.Text(), False), ("message", sa.Text(), False), ("failed_at_us", _WHOLE, True),
)  # fmt: skip
_SCHEMA: _Columns = (("version", _WHOLE, False), ("names", sa.Text(), False))
_INDEXED = ("launch_key", "kernel_digest", "kernel", "device_id")


def upgrade() -> None:
    """Make all tables."""
    _create("observations", "key", (*_LAUNCH, *_OBSERVATION), indexed=(*_INDEXED, "schema_id"))
    _create("failures", "key", (*_LAUNCH, *_FAILURE), indexed=_INDEXED)
    _create("feature_schemas", "id", _SCHEMA, indexed=())


def _create(
    table: str,
    key: str,
    columns: _Columns,
    *,
    indexed: tuple[str, ...],
) -> None:
    op.create_table(
        table,
        sa.Column(key, sa.Text(), primary_key=True),
        *(sa.Column(name, kind, nullable=nullable) for name, kind, nullable in columns),
    )
    for name in indexed:
        op.create_index(f"ix_{table}_{name}", table, [name])
