"""Answers with what was observed of them, their sums by week, and the order of observations."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# Written out and not taken from `tables`, which describes the newest version.
_WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TEXTS = (
    "launch_key", "problem_digest", "problem", "kernel", "device_id", "global_size", "local_size",
    "tier", "caller",
)  # fmt: skip
_NUMBERS = ("seconds", "low", "high", "coverage", "slowdown", "cost_s")
_SUMS = ("cost_s", "predicted_s", "error", "log_ratio")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "service_answers",
        sa.Column("id", _WHOLE, primary_key=True, autoincrement=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in _TEXTS),
        *(sa.Column(name, sa.Double(), nullable=False) for name in _NUMBERS),
        sa.Column("asked", _WHOLE, nullable=False),
        sa.Column("observed", _WHOLE, nullable=False),
        sa.Column("measured_s", sa.Double()),
        sa.Column("observed_at_us", _WHOLE),
        sa.Column("error", sa.Double()),
        sa.Column("is_inside", sa.Boolean()),
    )
    for name in ("launch_key", "kernel", "device_id"):
        op.create_index(f"ix_service_answers_{name}", "service_answers", [name, "id"])
    op.create_table(
        "service_answer_weeks",
        sa.Column("week_us", _WHOLE, primary_key=True, autoincrement=False),
        *(sa.Column(name, sa.Text(), primary_key=True) for name in ("device_id", "kernel", "tier")),
        *(
            sa.Column(name, _WHOLE, nullable=False)
            for name in ("asked", "made", "observed", "inside")
        ),
        *(sa.Column(name, sa.Double(), nullable=False) for name in _SUMS),
    )
    # Newest first by the time of the measurement: pages and the API read a part at a time.
    columns = ["measured_at_us", "key"]
    op.create_index("ix_observations_measured", "observations", columns, if_not_exists=True)
    flagged = sa.text("flags <> ''")
    op.create_index(
        "ix_observations_flagged", "observations", columns, if_not_exists=True,
        sqlite_where=flagged, postgresql_where=flagged,
    )  # fmt: skip
