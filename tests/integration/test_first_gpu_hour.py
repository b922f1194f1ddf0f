import importlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Protocol

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
NAMES = ("one", "two", "three")


class Named(Protocol):
    """A step, as far as it is looked at here."""

    name: str


@pytest.fixture(scope="module")
def hour() -> Iterator[ModuleType]:
    """Import the script."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module("first_gpu_hour")
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.fixture
def steps(hour: ModuleType) -> tuple[Named, ...]:
    """Give three steps of 100 s."""
    return tuple(hour.Step(name=name, title=name, limit_s=100) for name in NAMES)


class Runner:
    """Notes what is asked of it; answers with what a step's name is mapped to."""

    def __init__(self, hour: ModuleType, **answers: str) -> None:
        self._hour = hour
        self._answers = answers
        self.asked: list[tuple[str, float]] = []

    def __call__(self, step: Named, limit_s: float) -> object:
        """Answer."""
        self.asked.append((step.name, limit_s))
        status = self._answers.get(step.name, "done")
        if status == "interrupt":
            raise KeyboardInterrupt
        return self._hour.Outcome(status=status, result={"found": step.name})

    @property
    def names(self) -> list[str]:
        """Steps that ran."""
        return [name for name, _ in self.asked]


def test_steps_that_are_done_are_not_repeated(
    hour: ModuleType, steps: tuple[Named, ...], tmp_path: Path
) -> None:
    """Goes on where an interrupt came, with what was found before still there."""
    path = tmp_path / "hour.json"
    first = Runner(hour, two="interrupt")
    with pytest.raises(KeyboardInterrupt):
        hour.run_steps(path, steps, first)
    assert list(json.loads(path.read_text())["steps"]) == ["one"]
    second = Runner(hour)
    held = hour.run_steps(path, steps, second)
    assert second.names == ["two", "three"]
    assert {name: one["result"] for name, one in held["steps"].items()} == {
        name: {"found": name} for name in NAMES
    }
    assert json.loads(path.read_text()) == held


def test_failures_are_tried_again_and_lost_time_is_not(
    hour: ModuleType, steps: tuple[Named, ...], tmp_path: Path
) -> None:
    """Repeats what failed, not what ran out of time, unless it is named."""
    path = tmp_path / "hour.json"
    hour.run_steps(path, steps, Runner(hour, one="failed", two="timed out"))
    again = Runner(hour)
    hour.run_steps(path, steps, again)
    assert again.names == ["one"]
    named = Runner(hour)
    hour.run_steps(path, steps, named, again=["two", "three"])
    assert named.names == ["two", "three"]


def test_all_steps_together_keep_their_limit(
    hour: ModuleType, steps: tuple[Named, ...], tmp_path: Path
) -> None:
    """Cuts the last steps to the time that is left, and leaves out those with none."""
    path = tmp_path / "hour.json"
    spent = {"steps": {"one": {"status": "done", "seconds": 870.0, "result": {}, "message": ""}}}
    path.write_text(json.dumps(spent))
    cut = Runner(hour)
    hour.run_steps(path, steps[:2], cut, longest_s=900)
    assert cut.asked == [("two", 30.0)]
    none_left = Runner(hour)
    held = hour.run_steps(path, steps, none_left, longest_s=870)
    assert none_left.asked == []
    assert "three" not in held["steps"]


def test_a_step_is_ended_with_what_it_had_found(
    hour: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ends a step's process and those it started, and keeps its notes."""
    script = tmp_path / "endless.py"
    script.write_text(
        "import json, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "path = sys.argv[sys.argv.index('--output') + 1]\n"
        "open(path, 'w').write(json.dumps({'child': child.pid}))\n"
        "print('measuring', flush=True)\n"
        "time.sleep(60)\n"
    )
    monkeypatch.setattr(hour, "__file__", str(script))
    step = hour.Step(name="endless", title="never ends", limit_s=60)
    outcome = hour.run_in_process("any", tmp_path)(step, 2.0)
    assert outcome.status == "timed out"
    assert outcome.message.strip() == "measuring"
    for _ in range(100):
        if not _is_alive(outcome.result["child"]):
            break
        time.sleep(0.05)
    assert not _is_alive(outcome.result["child"])


def _is_alive(process: int) -> bool:
    """Tell whether a process runs; a zombie does not."""
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


def test_a_step_that_fails_says_why(
    hour: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keeps the end of what the process wrote."""
    script = tmp_path / "failing.py"
    script.write_text("raise SystemExit('the driver is gone')\n")
    monkeypatch.setattr(hour, "__file__", str(script))
    step = hour.Step(name="failing", title="fails", limit_s=60)
    outcome = hour.run_in_process("any", tmp_path)(step, 60.0)
    assert (outcome.status, outcome.result) == ("failed", {})
    assert outcome.message.strip() == "the driver is gone"


def test_limits_fit_the_half_hour(hour: ModuleType) -> None:
    """Has steps of different names whose limits add up to 25 minutes at most."""
    assert sum(one.limit_s for one in hour.STEPS) <= hour.LONGEST_S <= 25 * 60
    assert len({one.name for one in hour.STEPS}) == len(hour.STEPS)
