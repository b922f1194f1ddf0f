"""Brings the service's tables to the version that this release knows."""

from pathlib import Path

import sqlalchemy as sa

from kernelcast.service_state.tables import HEAD, VERSION_TABLE
from kernelcast.training_data.store import StoreError
from kernelcast.training_data.store.connecting import WRITER
from kernelcast.training_data.store.versions import lock_versions, read_version, run_scripts

SCRIPTS = Path(__file__).parent / "migrations"
# "kcss" as a number: not the locks of the store.
_PG_LOCK = 0x6B637373


def migrate(engine: sa.Engine, where: str, *, scripts: Path = SCRIPTS, head: str = HEAD) -> None:
    """Make the tables, or bring older ones up to date, in one transaction."""
    with engine.connect() as connection:
        found = read_version(connection, VERSION_TABLE)
    if found == head:
        return
    if found is not None and found > head:
        msg = (
            f"{where}: the service's tables are of version {found}, this kernelcast knows "
            f"versions up to {head}; update kernelcast (nothing was changed)"
        )
        raise StoreError(msg)
    with engine.connect().execution_options(**WRITER) as connection, connection.begin():
        lock_versions(connection, _PG_LOCK)
        if read_version(connection, VERSION_TABLE) != head:  # another process may have been first
            run_scripts(connection, scripts, head, version_table=VERSION_TABLE)
