"""The first half hour on a GPU machine: everything worth measuring, in order of worth.

Run ``python benchmarks/first_gpu_hour.py DEVICE [--output FILE] [--again STEP]``. Each step runs in
a process of its own with a time limit, and what it has found when it ends, or is ended, is kept in
one JSON file; all steps together take at most 25 minutes. Started again with the same file, steps
that were done or ran out of time are not repeated, unless ``--again`` names them. ``--list`` shows
the steps.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LONGEST_S = 25 * 60.0
_SHORTEST_S = 5.0
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something to measure.

    Parameters
    ----------
    name, title : str
        For commands, and in words.
    limit_s : float
        After which it is ended.
    """

    name: str
    title: str
    limit_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a step's process left.

    Parameters
    ----------
    status : str
        ``done``, ``timed out`` or ``failed``.
    result : mapping
        As far as it came.
    message : str
        The end of what it wrote, where it failed.
    """

    status: str
    result: Mapping[str, Any]
    message: str = ""


Runner = Callable[[Step, float], Outcome]

STEPS = (
    Step(name="device", title="device facts and attributes, event timers", limit_s=60),
    Step(name="compiler", title="build logs, PTX, registers, sub-groups, occupancy", limit_s=120),
    Step(name="dispatch", title="dispatch order, concurrency, who ends before whom", limit_s=90),
    Step(name="sampling", title="samples of 20 corpus kernels against whole runs", limit_s=420),
    Step(name="write_back", title="what a clean L2 cache takes", limit_s=60),
    Step(name="calibration", title="calibration microbenchmarks, quick", limit_s=510),
    Step(name="stencils", title="volumes and times of stencils by the GPU model", limit_s=240),
)  # fmt: skip


def run_steps(
    path: Path,
    steps: Sequence[Step],
    runner: Runner,
    *,
    again: Sequence[str] = (),
    longest_s: float = LONGEST_S,
    report: Report = lambda _: None,
) -> Mapping[str, Any]:
    """Run what the file does not hold yet, and keep each outcome at once.

    Parameters
    ----------
    path : Path
        The file; made where there is none.
    steps : sequence of Step
        In order of worth.
    runner : callable
        Runs a step within so many seconds.
    again : sequence of str
        Steps to repeat.
    longest_s : float
        For all steps that this file will ever hold, in seconds.
    report : callable, optional
        Is told what happens.

    Returns
    -------
    mapping
        What the file holds: ``steps`` by name, each with status, seconds, result and message.
    """
    held: dict[str, Any] = {"steps": {}}
    if path.exists():
        held = json.loads(path.read_text(encoding="utf-8"))
    kept: dict[str, Any] = held["steps"]
    for name in again:
        kept.pop(name, None)
    for step in steps:
        old = kept.get(step.name, {})
        if old.get("status") in {"done", "timed out"}:
            report(f"{step.name}: {old['status']} before")
            continue
        left_s = longest_s - sum(one["seconds"] for one in kept.values())
        limit_s = min(step.limit_s, left_s)
        if limit_s < _SHORTEST_S:
            report(f"{step.name}: no time is left")
            continue
        report(f"{step.name}: {step.title}, at most {limit_s:.0f} s")
        began_s = time.monotonic()
        outcome = runner(step, limit_s)
        seconds = time.monotonic() - began_s
        kept[step.name] = {
            "status": outcome.status,
            "seconds": round(old.get("seconds", 0.0) + seconds, 1),
            "result": outcome.result,
            "message": outcome.message,
        }
        _write(path, held)
        report(f"{step.name}: {outcome.status} after {seconds:.0f} s {outcome.message[-300:]}")
    return held


def _write(path: Path, held: Mapping[str, Any]) -> None:
    """Write all of it or nothing: the machine may go away at any moment."""
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
    beside.replace(path)


def run_in_process(device: str, folder: Path) -> Runner:
    """Give a runner that starts this script anew for each step."""

    def run(step: Step, limit_s: float) -> Outcome:
        target = folder / f"{step.name}.json"
        target.unlink(missing_ok=True)
        command = [sys.executable, __file__, device, "--step", step.name, "--output", str(target)]
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
            try:
                code = process.wait(limit_s)
                status = "done" if code == 0 else "failed"
            except subprocess.TimeoutExpired:
                status = "timed out"
            finally:
                _end(process)
            log.seek(0)
            text = log.read()
        found = json.loads(target.read_text(encoding="utf-8")) if target.exists() else {}
        return Outcome(
            status=status, result=found, message="" if status == "done" else text[-2000:]
        )

    return run


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a step and the processes that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def main() -> None:
    """Run all steps, or, in a step's own process, that one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("device", nargs="?", help="an id or its beginning")
    parser.add_argument("--output", type=Path, default=Path("first_gpu_hour.json"))
    parser.add_argument("--again", action="append", default=[], help="a step to repeat")
    parser.add_argument("--list", action="store_true", help="show the steps")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.list or not options.device:
        for one in STEPS:
            print(f"{one.name:12} {one.limit_s:4.0f} s  {one.title}")
    elif options.step:
        from first_gpu_hour_steps import measure  # a device is opened in a step's process only

        measure(options.step, options.device, options.output)
    else:
        with tempfile.TemporaryDirectory() as folder:
            run_steps(
                options.output, STEPS, run_in_process(options.device, Path(folder)),
                again=options.again, report=lambda text: print(text, flush=True),
            )  # fmt: skip


if __name__ == "__main__":
    main()
