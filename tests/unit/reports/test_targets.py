"""Files and folders that somebody names for results."""

from pathlib import Path

import pytest

from kernelcast.records.errors import InputError
from kernelcast.reports.targets import make_folder, writing


def test_a_folder_is_there_before_the_work(tmp_path: Path) -> None:
    """With those above it; a second time it stays as it is."""
    folder = tmp_path / "new" / "results"
    make_folder(folder)
    make_folder(folder)
    assert folder.is_dir()


def test_a_file_in_the_way_is_told(tmp_path: Path) -> None:
    """By its name and what is the matter."""
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"file/in: the folder cannot be made: Not a directory"):
        make_folder(tmp_path / "file" / "in")
    absent = tmp_path / "absent" / "page.txt"
    with (
        pytest.raises(InputError, match=r"page.txt: the chart cannot be written: No such file"),
        writing(absent, "the chart"),
    ):
        absent.write_text("x")
