import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.launches.estimation import sample_launch
from kernelcast.launches.recordings import (
    FORMAT_VERSION,
    Recording,
    read_recordings,
    write_recordings,
)
from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor.answering.measuring import record
from kernelcast.records.errors import RecordingError
from kernelcast.records.ndrange import NDRange
from support import strategies
from support.fakes import SyntheticLaunch

NDRANGE = NDRange(global_size=(800,), local_size=(8,))


def record_triad() -> Recording:
    """Record two moments of a launch."""
    launch = SyntheticLaunch(NDRANGE, lambda at: 1e-6 * (at[0] + 1))
    sampled = sample_launch(launch, "triad", EstimateSettings(), wait=lambda _: None)
    return record(launch, "triad", sampled.runs)


def write_triad() -> dict[str, Any]:
    """Write a recording, and read it as plain values."""
    with TemporaryDirectory() as folder:
        write_recordings(path := Path(folder) / "samples.json", [record_triad()])
        content: dict[str, Any] = json.loads(path.read_text())
    return content


WHOLE = write_triad()
[GOOD] = WHOLE["recordings"]


@given(recordings=st.lists(strategies.recordings(), max_size=3))
def test_recordings_survive_their_file(
    tmp_path_factory: pytest.TempPathFactory, recordings: Sequence[Recording]
) -> None:
    """Reads back recordings equal to those that were written."""
    path = tmp_path_factory.getbasetemp() / "round-trip.json"
    write_recordings(path, recordings)
    assert read_recordings(path) == list(recordings)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is no recording"),
        ("", "is no recording"),
        ("null", "is no recording"),
        (b"\xff\xfe\x00", "is no recording"),
        ("{}", r"is no recording \('format' is missing\)"),
        ("[" * 50_000, "is no recording"),
        (json.dumps({"format": 999, "recordings": []}), "is of format 999, this version reads"),
        (json.dumps({"format": FORMAT_VERSION}), "the recording is incomplete"),
        (json.dumps({"format": FORMAT_VERSION, "recordings": [{}]}), "recording is incomplete"),
        *((json.dumps(WHOLE | {"recordings": [GOOD | part]}), "recording is incomplete")
          for part in ({"runs": []}, {"runs": 3}, {"whole_s": [-1.0]}, {"launch_overhead_s": "x"},
                       {"ndrange": {"global_size": [8], "local_size": [8]}})),
    ],
)  # fmt: skip
def test_bad_files_are_refused(tmp_path: Path, content: str | bytes | None, message: str) -> None:
    """Refuses a file that is missing, no recording, incomplete or of another version, naming it."""
    path = tmp_path / "samples.json"
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(RecordingError, match=message) as caught:
        read_recordings(path)
    assert str(caught.value).startswith(f"{path}: ")
