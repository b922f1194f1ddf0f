import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kernelcast.training_data.store import StoreError, open_store
from kernelcast.training_data.store import store as opening
from support.observations import make_observation

STORES = Path(__file__).resolve().parents[2] / "data" / "stores"


def dump(path: Path) -> list[str]:
    """Give everything a database holds."""
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def list_parts(path: Path) -> dict[str, str]:
    """Give the statements that made tables, indexes and triggers, by name, columns in any order."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("select name, sql from sqlite_master where sql is not null")
        return {
            name: " ".join(sorted(sql.replace(",", " ").split())).lower() for name, sql in found
        }


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """Make a store of this version."""
    path = tmp_path / "new.sqlite"
    open_store(path).close()
    return path


@pytest.fixture(params=["0001", "0003"])
def old(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Make a store as an earlier release left it."""
    path = tmp_path / "old.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((STORES / f"version-{request.param}.sql").read_text("utf-8"))
    return path


def test_an_older_store_becomes_what_a_new_one_is(old: Path, new: Path) -> None:
    """The same columns and indexes, no trigger; rows stay."""
    with open_store(old) as store:
        rows = [*store.find()]
        store.add(make_observation(77))
    ours, theirs = list_parts(old), list_parts(new)
    assert ours.keys() == theirs.keys()
    indexes = {name for name in theirs if name.startswith(("ix_", "observations_"))}
    assert {name: ours[name] for name in indexes} == {name: theirs[name] for name in indexes}
    assert open_store(old).count() == len(rows) + 1


def test_a_migration_that_fails_changes_nothing(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes back what it did before it failed."""
    before = dump(old)
    monkeypatch.setattr(opening, "_INDEXES", "create nonsense")
    with pytest.raises(StoreError):
        open_store(old)
    assert dump(old) == before
