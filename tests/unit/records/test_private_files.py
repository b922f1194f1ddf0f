"""What is made is its owner's alone, whatever the umask says."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelcast.launches.data_store import open_data_store
from kernelcast.records.private_files import close_to_others, make_private_file, make_private_folder
from kernelcast.service_state import open_state


@pytest.fixture(autouse=True)
def _usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_folders_and_files_are_private(tmp_path: Path) -> None:
    """Missing parents too; what is there stays as it is."""
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    make_private_folder(shared / "a" / "b")
    make_private_folder(shared / "a" / "b")
    make_private_file(shared / "file")
    (shared / "file").write_text("kept")
    make_private_file(shared / "file")
    assert _mode(shared) == 0o755
    assert _mode(shared / "a") == _mode(shared / "a" / "b") == 0o700
    assert _mode(shared / "file") == 0o600
    assert (shared / "file").read_text() == "kept"
    assert sorted(one.name for one in shared.iterdir()) == ["a", "file"]


@pytest.mark.parametrize(
    ("before", "after", "is_open"),
    [(0o644, 0o600, False), (0o755, 0o700, False), (0o664, 0o664, True), (0o600, 0o600, False)],
)
def test_what_a_umask_has_opened_is_closed(
    tmp_path: Path, before: int, after: int, is_open: bool
) -> None:
    """What others may write somebody has shared on purpose."""
    path = tmp_path / "file"
    path.touch()
    path.chmod(before)
    assert close_to_others(path) is is_open
    assert _mode(path) == after
    assert close_to_others(tmp_path / "nothing") is False


def test_a_store_is_private(tmp_path: Path) -> None:
    """The database, its log, its index and its folder."""
    path = tmp_path / "data" / "rows.sqlite"
    with open_state(path) as state:
        state.changes.count("x")
        found = {one.name: _mode(one) for one in path.parent.iterdir()}
    assert set(found) == {"rows.sqlite", "rows.sqlite-wal", "rows.sqlite-shm"}
    assert set(found.values()) == {0o600}
    assert _mode(path.parent) == 0o700


def test_an_older_store_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its folder, where that is the data folder."""
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path / "data"))
    path = tmp_path / "data" / "rows.sqlite"
    open_data_store(path).close()
    path.parent.chmod(0o755)
    path.chmod(0o644)
    open_data_store(path).close()
    assert _mode(path) == 0o600
    assert _mode(path.parent) == 0o700
