"""The store's tables, as the newest migration leaves them.

A row of `observations` has columns for what is searched, split and learned by; what only people
look at is JSON text. Features are one blob per row: float64, little endian, in the order of the
schema, NaN where absent. A table of 100,000 rows and 200 features is then read by joining blobs
into one array: no number is parsed, and no column is added when a feature is.
"""

import sqlalchemy as sa

HEAD = "0004"
"""Newest version of the tables: the name of the last migration."""
VERSION_TABLE = "kernelcast_store_version"
METADATA = sa.MetaData()

# SQLite has one integer type, PostgreSQL's default has 32 bits.
WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _launch_columns(*, is_indexed: bool) -> list[sa.Column[object]]:
    """Make the columns that say what was run where."""
    return [
        sa.Column("launch_key", sa.Text, nullable=False, index=is_indexed),
        sa.Column("measurement", sa.Text, nullable=False),
        sa.Column("kernel_digest", sa.Text, nullable=False, index=is_indexed),
        sa.Column("kernel", sa.Text, nullable=False, index=True),
        sa.Column("application", sa.Text, nullable=False),
        sa.Column("suite", sa.Text, nullable=False),
        sa.Column("device_id", sa.Text, nullable=False, index=True),
        sa.Column("device", sa.Text, nullable=False),
        sa.Column("platform", sa.Text, nullable=False),
        sa.Column("driver", sa.Text, nullable=False),
        sa.Column("ndrange", sa.Text),
        sa.Column("work_groups", WHOLE),
        sa.Column("arguments_digest", sa.Text, nullable=False),
        sa.Column("parameters", sa.Text, nullable=False),
    ]


OBSERVATIONS = sa.Table(
    "observations",
    METADATA,
    sa.Column("key", sa.Text, primary_key=True),
    *_launch_columns(is_indexed=False),
    sa.Column("seconds", sa.Double, nullable=False),
    sa.Column("durations_s", sa.Text, nullable=False),
    sa.Column("started_s", sa.Text, nullable=False, server_default="[]"),
    sa.Column("noise", sa.Double),
    sa.Column("run_count", WHOLE, nullable=False),
    sa.Column("schema_id", sa.Text, index=True),
    sa.Column("features", sa.LargeBinary),
    sa.Column("linear_s", sa.Double),
    sa.Column("sampling_s", sa.Double),
    sa.Column("samples", sa.Text, nullable=False),
    sa.Column("origin", sa.Text, nullable=False),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("flags", sa.Text, nullable=False),
    sa.Column("machine_state", sa.Text, nullable=False),
    sa.Column("versions", sa.Text, nullable=False),
    sa.Column("measured_at_us", WHOLE),
    # The newest of a kernel on a device; questions for a kernel alone use it too.
    sa.Index("ix_observations_newest", "kernel_digest", "device_id", "measured_at_us"),
    # Sums up a launch without a look at its rows; questions for a launch alone use it too.
    sa.Index(
        "ix_observations_launch_times",
        "launch_key", "measured_at_us", "seconds", "noise", "run_count", "origin", "flags",
    ),
    # Only rows with samples: the newest of a launch that was observed 100,000 times since.
    sa.Index("ix_observations_launch_samples", "launch_key", "measured_at_us"),
)  # fmt: skip

LAUNCHES = sa.Table(
    "launches",
    METADATA,
    sa.Column("launch_key", sa.Text, primary_key=True),
    sa.Column("kernel", sa.Text, nullable=False),
    sa.Column("application", sa.Text, nullable=False),
    sa.Column("suite", sa.Text, nullable=False),
    sa.Column("device_id", sa.Text, nullable=False),
    sa.Column("changed", WHOLE, nullable=False, index=True),
)
"""What was collected or observed, once; triggers of `observations` keep it. `changed` grows.

A launch whose observations were removed stays here, so that those who knew it see that they were.
"""

FAILURES = sa.Table(
    "failures",
    METADATA,
    sa.Column("key", sa.Text, primary_key=True),
    *_launch_columns(is_indexed=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("failed_at_us", WHOLE),
)

FEATURE_SCHEMAS = sa.Table(
    "feature_schemas",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("version", WHOLE, nullable=False),
    sa.Column("names", sa.Text, nullable=False),
)
