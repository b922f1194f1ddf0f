import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
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


@settings(max_examples=100)
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
