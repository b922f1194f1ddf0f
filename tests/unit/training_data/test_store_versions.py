import shutil
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from kernelcast.training_data.store import open_store
from kernelcast.training_data.store.connecting import connect, parse_url
from kernelcast.training_data.store.migrating import SCRIPTS, migrate
from kernelcast.training_data.store.tables import HEAD, METADATA, VERSION_TABLE
from kernelcast.training_data.store.versions import read_version
from support.observations import insert_as_then, make_observation

NEXT = """
import sqlalchemy as sa
from alembic import op

revision = "{version}"
down_revision = "{before}"


def upgrade() -> None:
    op.add_column("observations", sa.Column("watts", sa.Double()))
    op.execute("delete from failures")
    {then}
"""
NEWER = f"{int(HEAD) + 1:04}"


def write_scripts(folder: Path, then: str) -> Path:
    """Make migrations as a later release has them: ours and one more."""
    scripts = folder / "migrations"
    shutil.copytree(SCRIPTS, scripts)
    text = NEXT.format(version=NEWER, before=HEAD, then=then)
    (scripts / "versions" / "v_next.py").write_text(text, encoding="utf-8")
    return scripts


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Make a store of this version with a row in it."""
    path = tmp_path / "rows.sqlite"
    with open_store(path) as store:
        store.add(make_observation(1))
    return path


@pytest.fixture
def engine(path: Path) -> Iterator[sa.Engine]:
    """Connect to that store."""
    engine = connect(parse_url(path))
    yield engine
    engine.dispose()


def dump(path: Path) -> list[str]:
    """Give everything a database holds."""
    connection = sqlite3.connect(path)
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


def test_migrations_make_the_tables_that_the_store_uses(engine: sa.Engine) -> None:
    """Ends at the version named here, with exactly its tables, columns and indexes."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert context.get_current_revision() == HEAD
        found = sa.inspect(connection)
        for table in METADATA.sorted_tables:
            columns = {one["name"]: one["nullable"] for one in found.get_columns(table.name)}
            assert columns == {one.name: one.nullable for one in table.columns}
            indexes = {one["name"] for one in found.get_indexes(table.name)}
            assert indexes == {one.name for one in table.indexes}


def test_an_older_store_is_migrated_and_kept(path: Path, engine: sa.Engine, tmp_path: Path) -> None:
    """Brings the store up to date and leaves a copy of what it was."""
    before = dump(path)
    scripts = write_scripts(tmp_path, "pass")
    backup = migrate(engine, str(path), scripts=scripts, head=NEWER)
    assert backup is not None
    assert dump(backup) == before
    with engine.connect() as connection:
        columns = {one["name"] for one in sa.inspect(connection).get_columns("observations")}
        rows = connection.execute(sa.text("select count(*) from observations")).scalar()
    assert "watts" in columns
    assert rows == 1
    assert migrate(engine, str(path), scripts=scripts, head=NEWER) is None


def test_a_store_of_the_first_version_gets_the_index_of_launches(tmp_path: Path) -> None:
    """Its rows stay, it is copied first, and the newest of a launch are found without sorting."""
    path = tmp_path / "first.sqlite"
    engine = connect(parse_url(path))
    migrate(engine, str(path), head="0001")
    rows = [make_observation(number) for number in range(20)]
    insert_as_then(engine, rows)
    engine.dispose()
    assert "ix_observations_kernel_digest" in "\n".join(dump(path))
    before = dump(path)
    with open_store(path) as store:
        assert list(store.find()) == sorted(rows, key=lambda one: one.key)
        store.add(make_observation(20))
        assert store.count() == 21
    assert dump(tmp_path / "first.sqlite.version-0001.backup") == before
    indexes = [line for line in dump(path) if line.startswith("CREATE INDEX")]
    (made,) = [line for line in indexes if "ix_observations_newest" in line]
    assert made.endswith("ON observations (kernel_digest, device_id, measured_at_us);")
    assert not [line for line in indexes if "ix_observations_kernel_digest" in line]


def test_a_migration_that_fails_changes_nothing(
    path: Path, engine: sa.Engine, tmp_path: Path
) -> None:
    """Takes back what a migration did before it failed."""
    before = dump(path)
    scripts = write_scripts(tmp_path, "raise RuntimeError('no')")
    with pytest.raises(RuntimeError, match="no"):
        migrate(engine, str(path), scripts=scripts, head=NEWER)
    assert dump(path) == before
    with open_store(path) as store:
        assert store.get(make_observation(1).key) == make_observation(1)


def test_stores_of_two_threads_are_made_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alembic's scripts work on one connection per process; both stores have all tables."""
    upgrade, at_work, most = command.upgrade, [0], [0]

    def watch(config: Config, head: str) -> None:
        at_work[0] += 1
        most[0] = max(most[0], at_work[0])
        time.sleep(0.02)  # lets the other thread come in, if anything does
        upgrade(config, head)
        at_work[0] -= 1

    monkeypatch.setattr(command, "upgrade", watch)
    engines = [connect(parse_url(str(tmp_path / name))) for name in ("one", "other")]
    with ThreadPoolExecutor(len(engines)) as threads:
        assert [*threads.map(lambda one: migrate(one, "a store"), engines)] == [None, None]
    assert most == [1]
    for engine in engines:
        with engine.connect() as connection:
            assert read_version(connection, VERSION_TABLE) == HEAD
        engine.dispose()
