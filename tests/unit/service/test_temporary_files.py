"""Where libraries put their own files, and who takes them away."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelcast.service.telemetry import share_counts

OWNER = """
import pathlib, sys, time
from kernelcast.service.telemetry import share_counts
with share_counts(pathlib.Path(sys.argv[1])):
    print("ready", flush=True)
    time.sleep(600)
"""


def test_counts_of_several_processes_go_with_their_service(tmp_path: Path) -> None:
    """Whether it ends in order or not, or is killed: then at its next start."""
    counts = tmp_path / "counts"

    def fail() -> None:
        with share_counts(counts):
            assert os.environ["PROMETHEUS_MULTIPROC_DIR"] == str(counts)
            assert not [*counts.iterdir()]
            raise SystemExit

    process = subprocess.Popen([sys.executable, "-c", OWNER, counts], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"ready\n"
    process.kill()
    process.wait()
    (counts / "left").touch()
    with pytest.raises(SystemExit):
        fail()
    assert not counts.exists()
    assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ
