"""A table of launches that says which of them have changed, and indexes to sum each up.

What shows every launch once read the whole store after every observation: 5 to 14 s. Now it reads
the launches that have changed since it last looked, and of each a few of its newest observations.
Triggers keep the table: it is right whoever adds, changes or removes observations, in the
transaction that does so. Imported observations are of other machines, and are left out.

`changed` grows from transaction to transaction: writers work one at a time.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_LABELS = ("kernel", "application", "suite", "device_id")
_WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
# The lock that writers of the store hold anyway; held until the transaction ends.
_PG_LOCK = 0x6B637377

# The newest launch gets the highest number.
_FILL = """
INSERT INTO launches (launch_key, kernel, application, suite, device_id, changed)
SELECT launch_key, max(kernel), max(application), max(suite), max(device_id),
       row_number() OVER (ORDER BY max(coalesce(measured_at_us, 0)), launch_key)
FROM observations WHERE origin <> 'imported' GROUP BY launch_key
"""

# No upsert: SQLite would copy what a row changes, in case that it is taken back, row by row.
_SQLITE_MARK = """
UPDATE launches SET changed = (SELECT max(changed) + 1 FROM launches){labels}
WHERE launch_key = {row}.launch_key;
"""
_SQLITE_ADD = """
INSERT INTO launches (launch_key, kernel, application, suite, device_id, changed)
SELECT new.launch_key, new.kernel, new.application, new.suite, new.device_id,
       (SELECT coalesce(max(changed), 0) + 1 FROM launches)
WHERE NOT EXISTS (SELECT 1 FROM launches WHERE launch_key = new.launch_key);
"""
_SQLITE_TRIGGER = """
CREATE TRIGGER observations_{event}_{row} AFTER {event} ON observations
WHEN {row}.origin <> 'imported' BEGIN {mark} END
"""

# One number for a transaction: an import of a million observations of one launch would make as many
# versions of its row otherwise, and look through all of them every time.
_PG_FUNCTION = f"""
CREATE FUNCTION mark_launches() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE number bigint := nullif(current_setting('kernelcast.change', true), '')::bigint;
BEGIN
  IF number IS NULL THEN
    PERFORM pg_advisory_xact_lock({_PG_LOCK});
    SELECT coalesce(max(changed), 0) + 1 INTO number FROM launches;
    PERFORM set_config('kernelcast.change', number::text, true);
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.origin <> 'imported' AND NOT EXISTS (
    SELECT FROM launches WHERE launch_key = NEW.launch_key AND changed = number
  ) THEN
    INSERT INTO launches (launch_key, kernel, application, suite, device_id, changed)
    VALUES (NEW.launch_key, NEW.kernel, NEW.application, NEW.suite, NEW.device_id, number)
    ON CONFLICT (launch_key) DO UPDATE SET
      kernel = excluded.kernel, application = excluded.application, suite = excluded.suite,
      device_id = excluded.device_id, changed = number;
  END IF;
  IF TG_OP <> 'INSERT' AND OLD.origin <> 'imported' THEN
    UPDATE launches SET changed = number WHERE launch_key = OLD.launch_key AND changed < number;
  END IF;
  RETURN NULL;
END $$
"""
_PG_TRIGGER = """
CREATE TRIGGER observations_mark_launches AFTER INSERT OR UPDATE OR DELETE ON observations
FOR EACH ROW EXECUTE FUNCTION mark_launches()
"""


def upgrade() -> None:
    """Make the table, fill it, and keep it from now on."""
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    op.create_table(
        "launches",
        sa.Column("launch_key", sa.Text(), primary_key=True),
        *(sa.Column(name, sa.Text(), nullable=False) for name in _LABELS),
        sa.Column("changed", _WHOLE, nullable=False),
    )
    op.execute(_FILL)
    op.create_index("ix_launches_changed", "launches", ["changed"])
    _index_observations(is_sqlite=is_sqlite)
    for statement in _list_sqlite() if is_sqlite else _list_postgresql():
        op.execute(statement)


def _index_observations(*, is_sqlite: bool) -> None:
    # SQLite takes rows without a time as the oldest by itself, PostgreSQL as the newest.
    moment = "measured_at_us" if is_sqlite else "measured_at_us DESC NULLS LAST"
    held = ["seconds", "noise", "run_count", "origin", "flags"]
    op.create_index(
        "ix_observations_launch_times", "observations", ["launch_key", sa.text(moment), *held]
    )
    op.create_index(
        "ix_observations_launch_samples",
        "observations",
        ["launch_key", sa.text(moment)],
        sqlite_where=sa.text("linear_s IS NOT NULL"),
        postgresql_where=sa.text("linear_s IS NOT NULL"),
    )
    op.drop_index("ix_observations_launch_key", "observations")  # the first serves its questions


def _list_sqlite() -> list[str]:
    labels = "".join(f", {name} = new.{name}" for name in _LABELS)
    marks = {
        "old": _SQLITE_MARK.format(row="old", labels=""),
        "new": _SQLITE_MARK.format(row="new", labels=labels) + _SQLITE_ADD,
    }
    events = (("insert", "new"), ("update", "old"), ("update", "new"), ("delete", "old"))
    return [_SQLITE_TRIGGER.format(event=event, row=row, mark=marks[row]) for event, row in events]


def _list_postgresql() -> list[str]:
    return [_PG_FUNCTION, _PG_TRIGGER]
