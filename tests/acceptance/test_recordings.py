"""Recorded samples give the recorded answers, on any machine."""

import json
from pathlib import Path

import pytest

from acceptance.conftest import Ask, Run

pytestmark = pytest.mark.usefixtures("home")

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"


@pytest.mark.parametrize("runtime", ["intel", "pocl"])
def test_recorded_launches_give_the_recorded_times(
    ask: Ask, repository: Path, runtime: str
) -> None:
    """Eighteen kernels answer within 1 %; what the shipped calibration adds leaves them inside."""
    path = RECORDINGS / f"examples-{runtime}.json"
    recorded = json.loads((RECORDINGS / f"examples-{runtime}-answers.json").read_text())
    answers = ask("estimate", "--replay", path)
    assert len(answers) == len(recorded) == 18
    for answer, before in zip(answers, recorded, strict=True):
        name = before["problem"]
        assert answer["device_id"].startswith(runtime)
        linear_s = before["estimates"]["linear"]
        assert answer["estimates"]["linear"] == pytest.approx(linear_s, rel=0.01), name
        assert answer["low"] < before["seconds"] < answer["high"], name
        assert answer["seconds"] == pytest.approx(before["seconds"], rel=0.05), name
    wanted = recorded[-1]["problem"]
    example = repository / "examples" / wanted / f"{wanted}.yaml"
    (answer,) = ask("estimate", example, "--replay", path)
    assert answer["problem"] == wanted
    assert answer["seconds"] == answers[-1]["seconds"]


def test_wider_coverage_never_gives_a_narrower_interval(ask: Ask) -> None:
    """The same samples say the same time, with an interval that holds those of lesser coverage."""
    path = RECORDINGS / "examples-pocl.json"
    shares = (0.5, 0.8, 0.9, 0.99)
    wider = [ask("estimate", "--replay", path, "--coverage", share) for share in shares]
    for answers in zip(*wider, strict=True):
        assert [one["coverage"] for one in answers] == [*shares]
        assert len({one["seconds"] for one in answers}) == 1
        lows, highs = ([one[end] for one in answers] for end in ("low", "high"))
        assert lows == sorted(lows, reverse=True)
        assert highs == sorted(highs)


def test_older_recordings_answer_and_others_are_refused(run: Run, ask: Ask, tmp_path: Path) -> None:
    """The first format is read for good; what is cut, damaged or newer is named and refused."""
    old = RECORDINGS / "first-format.json"
    (answer,) = ask("estimate", "--replay", old, "--measure")
    assert answer["estimates"]["linear"] == pytest.approx(0.01, rel=0.01)
    assert answer["low"] < 0.01 < answer["high"]
    assert answer["measured_seconds"] == pytest.approx(0.0103, rel=0.03)
    newer = {**json.loads(old.read_text()), "format": 999}
    damaged = {
        "newer.json": (json.dumps(newer), "is of format 999"),
        "cut.json": (old.read_text()[:700], "is no recording"),
        "empty.json": ("", "is no recording"),
        "incomplete.json": ('{"format": 1, "recordings": [{}]}', "incomplete"),
    }
    for name, (content, complaint) in damaged.items():
        (tmp_path / name).write_text(content)
        ended = run("estimate", "--replay", tmp_path / name, "--json")
        assert ended.status == 2, name
        assert complaint in ended.stderr
        assert name in ended.stderr
    ended = run("estimate", "--replay", RECORDINGS / "examples-intel.json", "--measure")
    assert ended.status == 2
    assert "record with --measure" in ended.stderr
