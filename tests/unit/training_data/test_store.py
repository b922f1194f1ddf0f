import pickle
import sqlite3
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from kernelcast.records.errors import InputError
from kernelcast.records.observation import Observation, ObservationFlag, Origin, summarise_runs
from kernelcast.training_data.store import AddedRows, Selection, Store, StoreError, open_store
from kernelcast.training_data.store import store as opening
from support.observations import make_failure, make_observation, observations


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Open an empty store."""
    return open_store(tmp_path / "rows.sqlite")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(one=observations())
def test_every_observation_survives(store: Store, one: Observation) -> None:
    """Gives back what was put in, whatever a record allows."""
    store.add(one, replace=True)
    assert store.get(one.key) == one


def test_adding_again_keeps_one_row(store: Store) -> None:
    """The one that is there, also among the rows of one call, unless it is to be replaced."""
    first, second = make_observation(1), make_observation(2)
    assert store.add(first)
    changed = replace(first, runs=summarise_runs([7.0]))
    assert store.add_many([changed, second, second]) == AddedRows(added=1, known=2)
    assert store.get(first.key) == first
    rows = [changed, make_observation(3)]
    assert store.add_many(rows, replace=True) == AddedRows(added=1, replaced=1)
    assert (store.get(first.key), store.count()) == (changed, 3)


def test_rows_are_selected(store: Store) -> None:
    """Finds rows by kernel, application, device, origin, flag, length and size."""
    flagged = replace(make_observation(0), flags=frozenset({ObservationFlag.OUTLIER}))
    store.add_many([flagged, *map(make_observation, range(1, 30))])
    assert store.count(Selection(kernels=("kernel3", "kernel4"))) == 8
    assert store.count(Selection(applications=("application0",))) == 10
    assert store.count(Selection(devices=("device-1",))) == 10
    assert store.count(Selection(devices=("dev",))) == 30
    assert store.count(Selection(devices=("vice",))) == 0
    assert store.count(Selection(drivers=("2.0",))) == 0
    assert store.count(Selection(origins=(Origin.IMPORTED,))) == 0
    assert store.count(Selection(without_flags=frozenset({ObservationFlag.OUTLIER}))) == 29
    assert store.count(Selection(least_seconds=0.12)) == sum(
        one.seconds >= 0.12 for one in map(make_observation, range(30))
    )
    assert store.count(Selection(least_work_groups=1010)) == 20


def test_rows_without_a_time_are_the_oldest(store: Store) -> None:
    """Those of one time, or of none, come in the order of their keys."""
    first = make_observation(0)
    moments = [None, datetime(1969, 1, 1, tzinfo=UTC), None, first.measured_at, first.measured_at]
    rows = [
        replace(first, measurement=f"run {number}", measured_at=moment)
        for number, moment in enumerate(moments)
    ]
    store.add_many(rows)
    parts = ((rows[0], rows[2]), (rows[1],), (rows[3], rows[4]))
    expected = [key for part in parts for key in sorted(one.key for one in part)]
    wanted = Selection(kernel_digests=(first.launch.kernel.digest,))
    for most in (2, 4, 9):
        found = [one.key for one in store.read_newest(wanted, ("key",), most=most)]
        assert found == expected[-most:]


def test_failures_are_kept_apart(store: Store) -> None:
    """Keeps the newest of equal failures, and forgets them when the launch has worked."""
    store.add_failures([make_failure(1), make_failure(2)])
    newer = replace(make_failure(1), message="it hung")
    store.add_failures([newer])
    assert {one.message for one in store.failures()} == {"it hung", make_failure(2).message}
    assert store.failures(Selection(kernels=("kernel2",))) == [make_failure(2)]
    assert store.count() == 0
    assert store.clear_failures(newer.launch.key) == 1
    assert store.failures() == [make_failure(2)]


def test_a_full_disk_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    """Says that the disk is full; what was there can be read, and room helps."""
    store = open_store(tmp_path / "rows.sqlite")
    store.add(make_observation(0))
    with store.read() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages + 4}")
    with pytest.raises(StoreError, match="the disk is full"):
        store.add_many(map(make_observation, range(1, 2000)))
    assert store.count() == 1
    assert store.get(make_observation(0).key) == make_observation(0)
    store.close()
    assert store.add_many(map(make_observation, range(1, 2000))).added == 1999


def test_keys_may_be_shortened(store: Store) -> None:
    """Finds an observation by a unique beginning of its key, and only by such."""
    one = make_observation(1)
    store.add_many([one, make_observation(2)])
    assert store.get(one.key[:10]) == one
    with pytest.raises(InputError, match="no key begins"):
        store.get("xyz")
    with pytest.raises(InputError, match="several keys"):
        store.get("")


def test_threads_share_a_store(store: Store) -> None:
    """Keeps every row of eight threads that write and read at once, each row once; a copy that was
    sent to another process opens the same database."""

    def write(first: int) -> int:
        for number in range(first, first + 20):
            store.add(make_observation(number))
            store.count()
        return store.count()

    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(write, range(0, 80, 10)))
    assert store.count() == 90
    assert max(counts) <= 90
    keys = {row.key for rows in store.read_rows(columns=("key",)) for row in rows}
    assert keys == {make_observation(number).key for number in range(90)}
    with pickle.loads(pickle.dumps(store)) as other:
        assert other.count() == 90


def test_places_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing store is not made by reading; other databases, broken URLs and a driver that is not
    there are named."""
    with pytest.raises(InputError, match="no store"):
        open_store(tmp_path / "none.sqlite", must_exist=True)
    assert not list(tmp_path.iterdir())
    for place in ("mysql://host/data", "sqlite://", "://"):
        with pytest.raises(InputError, match="expected a file"):
            open_store(place)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match=r"pip install 'kernelcast\[postgresql\]'"):
        open_store("postgresql://me@host/rows")


@pytest.mark.parametrize("is_database", [False, True])
def test_a_file_of_another_program_is_refused_untouched(
    tmp_path: Path, *, is_database: bool
) -> None:
    """Leaves other files, and databases of other programs, as they are."""
    path = tmp_path / "other"
    path.write_text("" if is_database else "no database" * 1000, encoding="utf-8")
    if is_database:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("create table songs (title text)")
    before = path.read_bytes()
    told = "no store of observations" if is_database else "no SQLite database"
    with pytest.raises(StoreError, match=told):
        open_store(path)
    assert path.read_bytes() == before


STORES = Path(__file__).resolve().parents[2] / "data" / "stores"


def list_parts(path: Path) -> dict[str, str]:
    """Give the statements that made tables, indexes and triggers, by name, columns in any order."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("select name, sql from sqlite_master where sql is not null")
        return {
            name: " ".join(sorted(sql.replace(",", " ").split())).lower() for name, sql in found
        }


@pytest.fixture(params=["0001", "0003"])
def old(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Make a store as an earlier release left it."""
    path = tmp_path / "old.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((STORES / f"version-{request.param}.sql").read_text("utf-8"))
    return path


def test_an_older_store_becomes_what_a_new_one_is(old: Path, tmp_path: Path) -> None:
    """The same tables and indexes, no trigger; rows can be added."""
    with open_store(old) as store:
        assert store.add(make_observation(77))
    open_store(tmp_path / "new.sqlite").close()
    ours, theirs = list_parts(old), list_parts(tmp_path / "new.sqlite")
    assert ours.keys() == theirs.keys()
    indexes = {name for name in theirs if name.startswith(("ix_", "observations_"))}
    assert {name: ours[name] for name in indexes} == {name: theirs[name] for name in indexes}


def test_a_migration_that_fails_changes_nothing(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes back what it did before it failed."""

    def dump() -> list[str]:
        with closing(sqlite3.connect(old)) as connection:
            return [*connection.iterdump()]

    before = dump()
    monkeypatch.setattr(opening, "_INDEXES", "create nonsense")
    with pytest.raises(StoreError):
        open_store(old)
    assert dump() == before
