import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import nine_minutes
import pytest

from support.cuda_driver import use_stand_in

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
STEP = """
import json, os, sys, time
from nine_minutes import Measurements
path, step, run, seconds = sys.argv[1:]
held = Measurements(__import__("pathlib").Path(path))
over = held.list_over(step, int(run))
held.append(step=step, item="", run=int(run), status="listed", count=3)
for item in ("one", "two", "three"):
    if item in over:
        continue
    held.append(step=step, item=item, run=int(run), status="begun")
    BODY
    held.append(step=step, item=item, run=int(run), status="done", seconds=0.1, result={})
"""


def run_step(folder: Path, body: str, *, item_s: float = 10.0) -> None:
    """Run one step of three items in processes that do as they are told before each is done."""
    script = folder / "step.py"
    script.write_text(STEP.replace("BODY", body))
    step = replace(nine_minutes.STEPS[0], name="step", item_s=item_s)
    environment = {**os.environ, "PYTHONPATH": str(BENCHMARKS)}
    nine_minutes.run_steps(
        folder, [sys.executable, str(script), str(folder / "measurements.jsonl")], [step],
        seconds=40.0, environments={False: environment, True: environment},
    )  # fmt: skip


def read_rows(folder: Path, *statuses: str) -> list[Mapping[str, Any]]:
    """Read the rows of items that ended."""
    rows = []
    for line in (folder / "measurements.jsonl").read_text().splitlines():
        with contextlib.suppress(ValueError):
            rows.append(json.loads(line))
    return [row for row in rows if row["status"] in statuses]


def test_items_that_end_or_hang_cost_themselves_only(tmp_path: Path) -> None:
    """Says what the process wrote, measures the others, and tries what failed at the next run."""
    body = """
    item == 'two' and sys.exit('the driver is gone')
    item == 'one' and time.sleep(60)
    """
    run_step(tmp_path, body.strip(), item_s=1.5)
    assert [row["item"] for row in read_rows(tmp_path, "timed out")] == ["one"]
    assert [row["item"] for row in read_rows(tmp_path, "done")] == ["three"]
    [failure] = read_rows(tmp_path, "failed")
    assert (failure["item"], failure["message"].strip()) == ("two", "the driver is gone")
    path = tmp_path / "measurements.jsonl"
    with path.open("a") as file:
        file.write('{"step": "step", "item": "th')  # as of a run that was killed
    run_step(tmp_path, "pass")
    assert "two" in [row["item"] for row in read_rows(tmp_path, "done")]
    assert nine_minutes.Measurements(path).list_over("step", 2) >= {"two", "three"}


def test_steps_share_the_time_as_planned() -> None:
    """Plans 540 s at most for all steps, and cuts each by the same share."""
    assert sum(step.planned_s for step in nine_minutes.STEPS) <= 540
    ends_s = nine_minutes.share_time(nine_minutes.STEPS, 270.0)
    assert list(ends_s.values())[-1] == pytest.approx(270.0)
    assert ends_s["device"] < nine_minutes.STEPS[0].planned_s


@pytest.mark.device
def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    """Samples two kernels on a CUDA device, each once, though the first run is killed between."""
    output = tmp_path / "results"
    command = [
        sys.executable, str(BENCHMARKS / "nine_minutes.py"), str(output), "--small", "--most", "2",
        "--step", "sampling", "--seconds", "60",
    ]  # fmt: skip
    environment = {**os.environ, **use_stand_in(alone=1), "TMPDIR": str(tmp_path)}
    first = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True
    )
    until_s = time.monotonic() + 60
    while time.monotonic() < until_s and not (
        (output / "measurements.jsonl").exists() and read_rows(output, "done")
    ):
        time.sleep(0.05)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    done = read_rows(output, "done")
    assert len({row["item"] for row in done}) == 2
    assert done[0]["item"] not in {row["item"] for row in done if row["run"] == 2}
    for row in done:
        assert len(row["result"]["whole"]) == 5
        assert {window[2] for window in row["result"]["windows"]} == {2, 3, 4}
        assert min(window[-1] for window in row["result"]["windows"]) > 0
