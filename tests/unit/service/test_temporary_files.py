"""Where libraries put their own files, and who takes them away."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kernelcast.service.process import keep_files_together
from kernelcast.service.telemetry import share_counts


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


OWNER = """
import sys, time
from kernelcast.service.telemetry import share_counts
with share_counts():
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give an empty folder of temporary files, of this process and those that it starts."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_counts_of_several_processes_go_with_their_service(temporary: Path) -> None:
    """Whether it ends in order or not."""

    def fail() -> None:
        with share_counts():
            assert len([*temporary.iterdir()]) == 1
            assert os.environ["PROMETHEUS_MULTIPROC_DIR"].startswith(str(temporary))
            raise SystemExit

    with pytest.raises(SystemExit):
        fail()
    assert not [*temporary.iterdir()]
    assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ


def test_what_a_killed_service_leaves_goes_at_the_next_start(temporary: Path) -> None:
    """Not before it is dead, and nothing that is somebody else's."""
    strange = temporary / "kernelcast-metrics-strange"
    strange.mkdir()
    (temporary / "kernelcast-metrics-link").symlink_to(strange)
    process = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"ready\n"
    (left,) = [one for one in temporary.iterdir() if one.name[-7:] not in {"strange", "cs-link"}]
    with share_counts():
        assert left.is_dir()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert left.is_dir()
    with share_counts():
        assert not left.exists()
    assert strange.is_dir()
