import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.launches.estimation import sample_launch
from kernelcast.launches.recordings import FORMAT_VERSION, read_recordings, write_recordings
from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor.answering.measuring import record
from kernelcast.records.errors import RecordingError
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.recording import Recording
from support import strategies
from support.fakes import SyntheticLaunch

NDRANGE = NDRange(global_size=(800,), local_size=(8,))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.just("text") | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.just("key"), inner, max_size=1),
    max_leaves=3,
)


def record_triad() -> Recording:
    """Record two moments of a launch."""
    launch = SyntheticLaunch(NDRANGE, lambda at: 1e-6 * (at[0] + 1))
    sampled = sample_launch(launch, "triad", EstimateSettings(), wait=lambda _: None)
    return record(launch, "triad", sampled.runs)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give the path of a recording that was written."""
    path = tmp_path / "samples.json"
    write_recordings(path, [record_triad()])
    return path


@given(recordings=st.lists(strategies.recordings(), max_size=3))
def test_recordings_survive_their_file(
    tmp_path_factory: pytest.TempPathFactory, recordings: Sequence[Recording]
) -> None:
    """Reads back recordings equal to those that were written."""
    path = tmp_path_factory.getbasetemp() / "round-trip.json"
    write_recordings(path, recordings)
    assert read_recordings(path) == list(recordings)


def test_recordings_of_the_first_format_answer(tmp_path: Path) -> None:
    """Reads launches that the first format kept without what the sampler knew of them."""
    (old,) = json.loads(json.dumps([asdict(record_triad())]))
    launches = [one for run in old.pop("runs") for one in run["launches"]]
    old |= {
        "launches": [[one["box"], one["duration_s"]] for one in launches],
        "weights": [2.0] * len(launches),
        "whole_s": [0.5, 0.1, 0.2],
        "order": "rows",
        "plan": {"budget": 0.02, "seed": 3, "ratio": 3},
    }
    path = tmp_path / "old.json"
    path.write_text(json.dumps({"format": 1, "recordings": [old]}))
    (recording,) = read_recordings(path)
    (run,) = recording.runs
    assert [one.box.start[0] for one in run.launches] == [
        one["box"]["start"][0] for one in launches
    ]
    assert {one.weight for one in run.launches} == {2.0}
    assert recording.whole_s == (0.1, 0.2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is no recording"),
        ("", "is no recording"),
        ("no JSON", "is no recording"),
        ("3", "is no recording"),
        ("null", "is no recording"),
        ("[]", "is no recording"),
        ('"format"', "is no recording"),
        ("{}", r"is no recording \('format' is missing\)"),
        ("[" * 50_000, "is no recording"),
        (json.dumps({"format": 999, "recordings": []}), "is of format 999, this version reads"),
        (json.dumps({"format": FORMAT_VERSION}), "the recording is incomplete"),
        (json.dumps({"format": FORMAT_VERSION, "recordings": 3}), "the recording is incomplete"),
        (json.dumps({"format": FORMAT_VERSION, "recordings": ["a"]}), "recording is incomplete"),
        (json.dumps({"format": FORMAT_VERSION, "recordings": [{}]}), "recording is incomplete"),
    ],
)  # fmt: skip
def test_bad_files_are_refused(tmp_path: Path, content: str | None, message: str) -> None:
    """Refuses a file that is missing, no recording, incomplete or of another version, naming it."""
    path = tmp_path / "samples.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(RecordingError, match=message) as caught:
        read_recordings(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_text_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """Refuses bytes that are no text as no recording."""
    path = tmp_path / "samples.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RecordingError, match="is no recording"):
        read_recordings(path)


def replace_at(tree: Any, place: int, new: Any) -> Any:  # noqa: ANN401 - any JSON
    """Replace the node that is number `place` of a JSON tree, counted modulo its size."""
    nodes: list[tuple[Any, Any]] = []

    def collect(node: Any) -> None:  # noqa: ANN401
        pairs = node.items() if isinstance(node, dict) else enumerate(node)
        for key, child in list(pairs):
            nodes.append((node, key))
            if isinstance(child, (dict, list)):
                collect(child)

    collect(tree)
    holder, key = nodes[place % len(nodes)]
    holder[key] = new
    return tree


@settings(max_examples=300)
@given(place=st.integers(0, 500), new=JSON)
def test_damaged_recordings_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, place: int, new: object
) -> None:
    """Reads a damaged recording or refuses it as a bad recording; nothing else."""
    path = tmp_path_factory.getbasetemp() / "damaged.json"
    write_recordings(path, [record_triad()])
    path.write_text(json.dumps(replace_at(json.loads(path.read_text()), place, new)))
    try:
        recordings = read_recordings(path)
    except RecordingError:
        return
    assert all(isinstance(recording, Recording) for recording in recordings)


@settings(max_examples=50)
@given(share=st.floats(0.0, 0.999))
def test_cut_files_are_refused(tmp_path_factory: pytest.TempPathFactory, share: float) -> None:
    """Refuses a file that was cut off anywhere."""
    path = tmp_path_factory.getbasetemp() / "cut.json"
    write_recordings(path, [record_triad()])
    text = path.read_text().strip()
    path.write_text(text[: int(share * len(text))])
    with pytest.raises(RecordingError):
        read_recordings(path)


@pytest.mark.parametrize(("key", "value"), [("launch_overhead_s", "soon"), ("whole_s", ["long"])])
def test_durations_are_numbers(path: Path, key: str, value: object) -> None:
    """Refuses a recording whose times are no numbers."""
    content = json.loads(path.read_text())
    content["recordings"][0][key] = value
    path.write_text(json.dumps(content))
    with pytest.raises(RecordingError):
        read_recordings(path)


def test_the_first_format_stays_readable(tmp_path: Path) -> None:
    """Reads a file of format 1 as version 0.1.0 wrote it."""
    device = {
        "id": "pocl-epyc-12ab", "name": "EPYC", "platform": "PoCL", "vendor": "AMD",
        "driver": "3.1", "opencl_version": "OpenCL 3.0", "kind": "cpu", "compute_units": 2,
        "local_memory_bytes": 32768, "global_memory_bytes": 2**30,
        "max_allocation_bytes": 2**28, "max_work_group_size": 4096,
        "max_work_item_sizes": [4096, 4096, 4096], "extensions": ["cl_khr_fp64"],
        "has_non_uniform_work_groups": False, "has_fp64": True,
    }  # fmt: skip
    saturation = {
        "p_sat": {"value": 1, "source": "measured"}, "concurrency": 2, "saturated_from": 4,
        "computed": None, "measured": 1, "limiter": None,
    }  # fmt: skip
    one = {
        "kernel_name": "triad", "kernel_digest": "ab" * 32, "device": device,
        "ndrange": {"global_size": [800], "local_size": [8], "global_offset": [0]},
        "saturation": saturation, "order": "rows", "launch_overhead_s": 2e-6,
        "launches": [[{"start": [10], "shape": [3]}, 1e-4]], "whole_s": [0.01],
    }  # fmt: skip
    path = tmp_path / "old.json"
    path.write_text(json.dumps({"format": 1, "recordings": [one]}))
    (recording,) = read_recordings(path)
    assert recording.ndrange == NDRANGE
    (launch,) = recording.runs[0].launches
    assert (launch.box, launch.duration_s) == (GroupBox(start=(10,), shape=(3,)), 1e-4)
    assert recording.device.max_work_item_sizes == (4096, 4096, 4096)
