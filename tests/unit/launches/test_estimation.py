import json
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.launches import estimation
from kernelcast.launches.estimation import measure, sample_launch
from kernelcast.launches.recordings import (
    FORMAT_VERSION,
    Recording,
    read_recordings,
    write_recordings,
)
from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor.answering.measuring import record
from kernelcast.records.errors import RecordingError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling.host import Waiting
from kernelcast.sampling.plan import SamplingPlan
from support import strategies
from support.fakes import SyntheticLaunch


def test_small_launches_are_out_of_domain() -> None:
    small = NDRange(global_size=(16 * 8,), local_size=(8,))
    launch = SyntheticLaunch(small, lambda at: 1e-5)
    estimate, _ = sample_launch(launch, "k", EstimateSettings(), wait=lambda _: None)
    assert not estimate.in_domain
    assert any("small" in warning for warning in estimate.warnings)


def test_moments_lie_apart() -> None:
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        time.sleep(min(seconds, 0.02))

    settings = EstimateSettings(plan=SamplingPlan(moments=2))
    launch = SyntheticLaunch(NDRange(global_size=(64 * 100_000,), local_size=(64,)), 5e-6)
    _, runs = sample_launch(launch, "triad", settings, wait=wait)
    assert len(runs) == 2
    assert len(waits) == 1
    assert 0 < waits[0] <= 0.1  # less what stages have taken: a busy machine is slow


class _SlowLaunch(SyntheticLaunch):
    """A launch whose whole runs let time pass."""

    def time_whole(self, begin: Callable[[], object] = lambda: None) -> float:
        begin()
        time.sleep(0.02)
        return 0.02


@pytest.mark.parametrize(
    ("left_s", "runs"), [(math.inf, 4), (10.0, 4), (0.07, 1), (0.025, 1), (0.02, 0), (-1.0, 0)]
)
def test_whole_runs_end_in_time(left_s: float, runs: int) -> None:
    """One that does not fit is not begun; the first counts where no other fits."""
    launch = _SlowLaunch(NDRange(global_size=(64,), local_size=(8,)), lambda _: 1e-5)
    ends_s = time.monotonic() + left_s
    found = measure(launch, 4, expected_s=0.02, ends_s=ends_s)
    if not runs:
        assert found is None
        return
    assert found is not None
    assert runs <= len(found.durations_s) <= (4 if runs == 4 else 2)
    assert found.slowdown == 1.0  # threads that slept say nothing


def test_whole_runs_say_what_they_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that waited twice as long as they worked made the runs three times as long."""
    spent = {"1": Waiting(0.0, 0.0)}

    class FilledLaunch(SyntheticLaunch):
        def time_whole(self, begin: Callable[[], object] = lambda: None) -> float:
            worked_s, waited_s = spent["1"]
            spent["1"] = Waiting(worked_s + 0.01, waited_s + 0.5)
            begin()
            spent["1"] = Waiting(worked_s + 0.02, waited_s + 0.52)
            return 0.01

    monkeypatch.setattr(estimation, "read_waiting", lambda: dict(spent))
    launch = FilledLaunch(NDRange(global_size=(64,), local_size=(8,)), lambda _: 1e-3)
    found = measure(launch, 2)
    assert found is not None
    assert found.slowdown == pytest.approx(3.0)
    assert found.error_of(found.seconds / 3) == pytest.approx(0.0)


with TemporaryDirectory() as _folder:
    _launch = SyntheticLaunch(
        NDRange(global_size=(800,), local_size=(8,)), lambda at: 1e-6 * (at[0] + 1)
    )
    _, _runs = sample_launch(_launch, "triad", EstimateSettings(), wait=lambda _: None)
    _recorded = record(_launch, Kernel(name="triad", source="triad"), _runs)
    write_recordings(_path := Path(_folder) / "x.json", [_recorded])
    WHOLE = json.loads(_path.read_text())
[GOOD] = WHOLE["recordings"]


@given(recordings=st.lists(strategies.recordings(), max_size=3))
def test_recordings_survive_their_file(
    tmp_path_factory: pytest.TempPathFactory, recordings: Sequence[Recording]
) -> None:
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
