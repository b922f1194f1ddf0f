"""When each whole run of an observation began: machines have states that last for hours."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; of older observations nobody knows."""
    op.add_column(
        "observations", sa.Column("started_s", sa.Text(), nullable=False, server_default="[]")
    )
