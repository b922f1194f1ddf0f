"""Where libraries put their own files."""

import os
from pathlib import Path

import pytest

from kernelcast.service.process import keep_files_together


@pytest.mark.parametrize(
    ("name", "inside"), [("SQLITE_TMPDIR", "."), ("MPLCONFIGDIR", "matplotlib")]
)
def test_files_of_libraries_stay_in_the_data_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, inside: str
) -> None:
    """Unless an administrator has chosen another folder."""
    for one in ("SQLITE_TMPDIR", "MPLCONFIGDIR"):
        monkeypatch.setenv(one, "/elsewhere")
    keep_files_together()
    assert os.environ[name] == "/elsewhere"
    monkeypatch.delenv(name)
    keep_files_together()
    assert Path(os.environ[name]) == folder / inside
