"""An index by which the newest observations of one launch are found, however many others there are.

Every observation that a service takes is judged by the newest ones of its launch. The index of a
kernel on a device finds them at once only where most of its rows are of that launch: among 4,000
rows of a kernel in other sizes it took 20 ms. This one serves questions for a launch as well, so
the old one goes, and a row is written to as many indexes as before.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the index, and remove the one that it replaces."""
    # SQLite takes rows without a time as the oldest by itself, PostgreSQL as the newest.
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    moment = "measured_at_us" if is_sqlite else "measured_at_us DESC NULLS LAST"
    op.create_index(
        "ix_observations_launch_newest", "observations", ["launch_key", sa.text(moment)]
    )
    op.drop_index("ix_observations_launch_key", "observations")
