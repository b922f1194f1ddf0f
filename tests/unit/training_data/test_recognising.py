import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from kernelcast.collection.data_rows import import_file
from kernelcast.records.errors import InputError
from kernelcast.training.table import read_observations
from kernelcast.training_data.importers.tables import find_data_set, read_table
from kernelcast.training_data.importers.tuning import TuningFiles, read_tuning
from kernelcast.training_data.parquet import export_parquet, is_observation_file, read_parquet
from kernelcast.training_data.sources import list_files
from kernelcast.training_data.store import open_store
from kernelcast.training_data.store.connecting import is_database
from support.observations import make_observation

# Opens and closes the database as any command does that another process runs.
_COMMAND = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("SELECT count(*) FROM observations").fetchone()
connection.close()
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Give the place of a store with rows."""
    with open_store(tmp_path / "rows.sqlite") as store:
        store.add_many(map(make_observation, range(5)))
    return tmp_path / "rows.sqlite"


def _import(place: Path) -> None:
    with open_store(place.with_name("other.sqlite")) as other:
        import_file(other, place)


def _import_parquet(place: Path) -> None:
    with open_store(place.with_name("other.sqlite")) as other:
        other.add_many(read_parquet(place))


def _export(place: Path) -> None:
    with open_store(place) as store:
        export_parquet(store, place)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    "read",
    [
        lambda place: list(read_observations([place])),
        list_files,
        is_database,
        is_observation_file,
        lambda place: list(read_parquet(place)),
        lambda place: read_table(place),
        find_data_set,
        lambda place: read_tuning(TuningFiles(results=place)),
        _import,
        _export,
    ],
    ids=["sources", "recognise", "is_database", "mark", "parquet", "rows", "data_set", "tuning",
         "import", "export"],
)  # fmt: skip
def test_reading_a_live_store_loses_nothing(place: Path, read: Callable[[Path], object]) -> None:
    """What is written after any reading and another process survives kill -9."""
    child = os.fork()
    if child == 0:  # nothing of pytest may run in the child
        try:
            store = open_store(place)
            store.add(make_observation(10))
            with suppress(InputError):  # most refuse a database
                read(place)
            subprocess.run([sys.executable, "-c", _COMMAND, str(place)], check=True)
            store.add_many(map(make_observation, range(100, 120)))
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    with open_store(place) as store:
        assert store.count() == 26
        assert store.find_damage() == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_what_a_forked_process_writes_outlives_its_parents_store(place: Path) -> None:
    """A child that goes on writing after its parent has closed the store keeps its rows."""
    store = open_store(place)
    assert store.count() == 5
    begin, end = os.pipe()
    child = os.fork()
    if child == 0:  # nothing of pytest may run in the child
        try:
            store.add(make_observation(10))
            os.write(end, b"a")
            os.close(end)
            os.kill(os.getpid(), signal.SIGSTOP)  # the parent closes
            store.add(make_observation(11))
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    os.close(end)
    assert os.read(begin, 1) == b"a"
    os.close(begin)
    os.waitpid(child, os.WUNTRACED)
    store.close()
    os.kill(child, signal.SIGCONT)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert store.count() == 7


def test_sources_are_what_they_are_whatever_their_name(place: Path) -> None:
    """A store called .parquet is a store, our Parquet file without that ending is one, an empty one
    is refused. A database is one while another holds its lock, and looking leaves no file there."""
    folder = place.parent
    misnamed, bare = folder / "store.parquet", folder / "rows"
    shutil.copy(place, misnamed)
    with open_store(place) as store:
        export_parquet(store, bare)
    (folder / "empty.parquet").touch()
    (folder / "cut.parquet").write_bytes(b"PAR1")
    (folder / "notes.txt").write_text("no rows", encoding="utf-8")
    for store in (place, misnamed, folder / "none.parquet", "postgresql://me@host/rows"):
        assert list_files(store) == []
    assert list_files(folder / "notes.txt") == []  # opened as a store, which says what is wrong
    for path in (bare, folder / "empty.parquet", folder / "cut.parquet"):
        assert list_files(path) == [path]
    assert {*list_files(folder)} == {misnamed, folder / "empty.parquet", folder / "cut.parquet"}
    assert len(list(read_observations([misnamed]))) == len(list(read_observations([bare]))) == 5
    with pytest.raises(InputError, match="is empty"):
        list(read_observations([folder / "empty.parquet"]))
    assert (folder / "empty.parquet").stat().st_size == 0
    with closing(sqlite3.connect(folder / "old.sqlite")) as holder:
        holder.execute("CREATE TABLE one (a)")
        holder.execute("BEGIN EXCLUSIVE")
        before = sorted(folder.iterdir())
        assert is_database(place)
        assert is_database(folder / "old.sqlite")
        assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("take", [_import, _import_parquet, _export])
def test_a_store_is_no_file_to_import_or_export_to(
    place: Path, take: Callable[[Path], object]
) -> None:
    """Says that it is a database, and leaves it as it was."""
    with pytest.raises(InputError, match="is a database"):
        take(place)
    with open_store(place) as store:
        assert store.count() == 5
