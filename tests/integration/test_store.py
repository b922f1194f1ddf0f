"""Stores in a PostgreSQL cluster of the tests' own."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from kernelcast.records.observation import RunTimes
from kernelcast.training_data.store import Selection, StoreError, open_store
from kernelcast.training_data.store.connecting import connect, locate
from kernelcast.training_data.store.schema import METADATA, VERSION_TABLE
from kernelcast.training_data.summary import FindingKind, check_store
from support.observations import insert_as_then, make_failure, make_observation
from support.postgresql_cluster import PostgresqlCluster

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def url(cluster: PostgresqlCluster) -> str:
    """Give the place of a store that is not there yet; SQLite's are tested without a cluster."""
    return cluster.make_database()


def test_everything_works_in_postgresql(url: str) -> None:
    """Adds, replaces, finds, counts and removes; gives a launch's newest rows and its samples."""
    rows = [make_observation(number) for number in range(30)]
    first = replace(make_observation(31), measured_at=BEGIN)
    more = [
        replace(
            first,
            measurement=str(place),
            samples=(),
            features=None,
            runs=RunTimes(median_s=0.001 * place),
            measured_at=None if place == 1 else BEGIN + timedelta(seconds=place),
        )
        for place in range(1, 30)
    ]
    with open_store(url) as store:
        assert store.add_many(rows).added == 30
        assert store.add_many(rows).known == 30
        assert store.add_many(rows[:3], replace=True).replaced == 3
        assert list(store.find()) == sorted(rows, key=lambda one: one.key)
        assert store.get(rows[4].key[:16]) == rows[4]
        assert [*store.find(Selection(launch_keys=(rows[5].launch.key,)))] == [rows[5]]
        assert store.count(Selection(devices=("device-1",), least_work_groups=1010)) == 7
        store.add_failures([make_failure(1), make_failure(1)])
        assert store.failures() == [make_failure(1)]
        assert store.remove([rows[0].key, make_failure(1).key]) == 2
        assert store.count() == 29
        assert list(check_store(store)) == []
        store.add_many([first, *more])
        wanted = Selection(kernel_digests=(first.launch.kernel.digest,),
                           device_ids=(first.launch.device.id,))  # fmt: skip
        read = store.read_launches(wanted, ("key", "seconds", "launch_key"), most=3)
        own = [row for row in read if row.launch_key == first.launch.key]
        assert [row.seconds for row in own[1:]] == pytest.approx([0.027, 0.028, 0.029])
        assert own[0].key == first.key


def make_first_version(engine: sa.Engine) -> None:
    """Make the tables that the first version had, with its version."""
    names = ("observations", "failures", "feature_schemas")
    with engine.begin() as connection:
        METADATA.create_all(connection, [METADATA.tables[name] for name in names])
        connection.execute(sa.text("ALTER TABLE observations DROP COLUMN started_s"))
        connection.execute(sa.text(f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32))"))
        connection.execute(sa.text(f"INSERT INTO {VERSION_TABLE} VALUES ('0001')"))


def test_a_store_of_the_first_version_is_brought_up_to_date(url: str) -> None:
    """Its rows stay, and the newest come last, those without a time first."""
    first = make_observation(1)
    rows = [replace(make_observation(2), launch=first.launch, measurement="a"),
            replace(first, measurement="b", measured_at=None),
            replace(make_observation(3), launch=first.launch, measurement="c")]  # fmt: skip
    engine = connect(locate(url)[0])
    make_first_version(engine)
    insert_as_then(engine, rows)
    engine.dispose()
    wanted = Selection(kernel_digests=(first.launch.kernel.digest,),
                       device_ids=(first.launch.device.id,))  # fmt: skip
    with open_store(url) as store:
        found = [row.key for row in store.read_newest(wanted, ("key",), most=3)]
        assert found == [rows[place].key for place in (1, 0, 2)]
        assert len(store.read_newest(wanted, ("key",), most=2)) == 2
        assert store.add(make_observation(4))


def test_a_server_that_does_not_answer(cluster: PostgresqlCluster) -> None:
    """Says where it looked, without the password."""
    with pytest.raises(StoreError, match=r"postgres:\*\*\*@127.0.0.1:1/") as caught:
        open_store("postgresql://postgres:secret@127.0.0.1:1/rows")
    assert "secret" not in str(caught.value)
    with pytest.raises(StoreError, match="nowhere"):
        open_store(f"{cluster.server}/nowhere")


def test_a_damaged_index_is_found(url: str) -> None:
    """By counting rows with and without the index."""
    with open_store(url) as store:
        store.add_many(map(make_observation, range(30)))
        assert list(check_store(store)) == []
        for state in ("false", "true"):  # a row comes while nobody keeps the index
            with store.write() as connection:
                connection.exec_driver_sql(
                    f"update pg_index set indisready = {state} "
                    "where indexrelid = 'observations_pkey'::regclass"
                )
            if state == "false":
                store.close()
                store.add(make_observation(40))
        found = list(check_store(store))
        assert {one["kind"] for one in found} == {FindingKind.DAMAGED}
        assert any("observations" in one["message"] for one in found)
