"""Nine minutes on a GPU machine: everything worth measuring there, in order of worth.

Run ``python benchmarks/nine_minutes.py OUTPUT --prepared FOLDER``, where FOLDER is what
``prepare_nine_minutes.py`` made. The machine needs Python 3.11 or later with NumPy, SciPy,
scikit-learn, pandas, numba and cuda-bindings; no network, no compiler. Each result is appended to
``OUTPUT/measurements.jsonl`` as soon as it is there, so that a kill loses one kernel; run again,
the command goes on with what is missing or failed. ``--seconds`` is the time for all, 540 when left
out; each step gets its planned share of it and what earlier ones left over. ``--list`` shows the
steps. ``nine_minutes_report.py`` reads the results.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import time
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
_RESERVE_S = 6.0
_LEAST_STEP_S = 1.0
_POLL_S = 0.05
_STARTING_S = 45.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something to measure."""

    name: str
    title: str
    planned_s: float
    item_s: float = 15.0
    uses_opencl: bool = False


STEPS = (
    Step(name="device", title="device facts, timers, three kernels", planned_s=22, item_s=25),
    Step(name="saturation", title="P_sat of all kernels by driver and rules", planned_s=20),
    Step(name="sampling", title="60 kernels x 2 sizes, sampled and whole", planned_s=155),
    Step(name="counters", title="ncu: 40 kernels, 20 stencil shapes", planned_s=120, item_s=60),
    Step(name="ladders", title="windows after reads and after writes", planned_s=20, item_s=20),
    Step(name="memory", title="calibration, strides of L1", planned_s=60, item_s=40),
    Step(name="tuning", title="150 configurations of two kernels", planned_s=30),
    Step(name="dispatch", title="unit and times of each work-group", planned_s=15, item_s=20),
    Step(name="answers", title="first answers as users get them", planned_s=18, item_s=25),
    Step(
        name="opencl", title="the driver's own OpenCL, where there is one", planned_s=10,
        uses_opencl=True,
    ),
    Step(name="more", title="60 more kernels, sampled and whole", planned_s=64),
)  # fmt: skip


@dataclass(slots=True)
class Measurements:
    """The file of results: a line per item begun, and per item that ended, of several runs."""

    path: Path
    rows: list[dict[str, Any]] = field(default_factory=list)
    _read_bytes: int = 0

    def refresh(self) -> list[dict[str, Any]]:
        before = len(self.rows)
        if self.path.exists():
            with self.path.open("rb") as file:
                file.seek(self._read_bytes)
                content = file.read()
            whole = content[: content.rfind(b"\n") + 1]
            self._read_bytes += len(whole)
            for line in whole.splitlines():
                with contextlib.suppress(ValueError):
                    self.rows.append(json.loads(line))
        return self.rows[before:]

    def append(self, **row: object) -> None:
        text = json.dumps({**row, "at_s": round(time.time(), 3)}, default=float)
        with self.path.open("a+b") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                text = text if file.read(1) == b"\n" else "\n" + text
            file.write(text.encode() + b"\n")

    def list_over(self, step: str, run: int) -> set[str]:
        """List the items of a step that need not be measured in a run: done, or tried in it."""
        self.refresh()
        return {
            row["item"] for row in self.rows
            if row["step"] == step
            and (row["status"] == "done" or (row["run"] == run and row["status"] != "begun"))
        }  # fmt: skip

    def next_run(self) -> int:
        self.refresh()
        return 1 + max((row["run"] for row in self.rows), default=0)


def share_time(steps: Sequence[Step], seconds: float) -> dict[str, float]:
    """Share time out: when each step must have ended, in seconds after the begin."""
    planned_s = sum(step.planned_s for step in steps)
    ends, end_s = {}, 0.0
    for step in steps:
        end_s += step.planned_s * seconds / planned_s
        ends[step.name] = end_s
    return ends


def run_steps(
    output: Path, command: Sequence[str], steps: Sequence[Step], *, seconds: float,
    environments: Mapping[bool, Mapping[str, str]],
) -> None:  # fmt: skip
    """Run steps in processes of their own, which are begun anew where an item ended one."""
    measurements = Measurements(output / "measurements.jsonl")
    run = measurements.next_run()
    begun_s = time.monotonic()
    open_steps = [step for step in steps if not _is_complete(measurements, step)]
    for step in steps:
        if step not in open_steps:
            print(f"{step.name}: done before", flush=True)
    ends_s = share_time(open_steps, seconds - _RESERVE_S)
    for step in open_steps:
        left_s = ends_s[step.name] - (time.monotonic() - begun_s)
        print(f"{step.name}: {step.title}, {left_s:.0f} s", flush=True)
        started_s = time.monotonic()
        while (left_s := ends_s[step.name] - (time.monotonic() - begun_s)) > _LEAST_STEP_S:
            arguments = [*command, step.name, str(run), f"{left_s:.1f}"]
            if _watch(measurements, step, run, arguments, left_s, environments[step.uses_opencl]):
                break
        took_s = time.monotonic() - started_s
        measurements.append(step=step.name, item="", run=run, status="step", seconds=took_s)
        print(f"{step.name}: {_summarise(measurements, step, run)}, {took_s:.1f} s", flush=True)


def _is_complete(measurements: Measurements, step: Step) -> bool:
    """Tell whether all items of a step are done; its process notes how many there are."""
    measurements.refresh()
    rows = [row for row in measurements.rows if row["step"] == step.name]
    counts = [row["count"] for row in rows if row["status"] == "listed"]
    done = {row["item"] for row in rows if row["status"] == "done"}
    return bool(counts) and len(done) >= counts[-1]


def _summarise(measurements: Measurements, step: Step, run: int) -> str:
    measurements.refresh()
    rows = [row for row in measurements.rows if row["step"] == step.name and row["run"] == run]
    counts = {
        status: len({row["item"] for row in rows if row["status"] == status})
        for status in ("done", "failed", "timed out")
    }
    return ", ".join(f"{count} {status}" for status, count in counts.items() if count) or "nothing"


def _watch(
    measurements: Measurements, step: Step, run: int, arguments: Sequence[str], left_s: float,
    environment: Mapping[str, str],
) -> bool:  # fmt: skip
    """Watch a step's process; tell whether the step is over, or it shall begin anew. It shall where
    it ended on an item: the others may do."""
    log_path = measurements.path.with_name("log.txt")
    with log_path.open("ab") as log:
        log_begin = log.tell()
        process = subprocess.Popen(
            arguments, stdout=log, stderr=log, start_new_session=True, env=environment
        )
        begun_s = last_s = time.monotonic()
        item, has_begun = "", False
        try:
            while process.poll() is None:
                for row in measurements.refresh():
                    if row["step"] == step.name and row["run"] == run:
                        item = row["item"] if row["status"] == "begun" else ""
                        has_begun |= bool(item)
                        last_s = time.monotonic()
                now_s = time.monotonic()
                is_stuck = now_s - last_s > (step.item_s if item else _STARTING_S)
                if is_stuck or now_s - begun_s > left_s:
                    break
                time.sleep(_POLL_S)
        finally:
            is_killed = process.poll() is None
            code = _end(process)
    for row in measurements.refresh():
        if row["step"] == step.name and row["run"] == run:
            item = row["item"] if row["status"] == "begun" else ""
            has_begun |= bool(item)
    if item:
        said = log_path.read_bytes()[log_begin:].decode(errors="replace")[-1500:]
        status = "timed out" if is_killed else "failed"
        measurements.append(step=step.name, item=item, run=run, status=status, message=said)
    return code == 0 or not has_begun


def _end(process: "subprocess.Popen[bytes]") -> int:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def find_cache(work: Path) -> Path:
    return work / "cache"


def make_environments(work: Path, *, is_small: bool) -> dict[bool, dict[str, str]]:
    """Make the environments of steps, by whether they use OpenCL. Where OpenCL shows a GPU,
    kernelcast does not show it by CUDA a second time: most steps see no OpenCL. Trials without a
    GPU do."""
    found = [str(HERE), os.environ.get("PYTHONPATH", "")]
    common = {
        **os.environ,
        "XDG_CACHE_HOME": str(find_cache(work)),
        "XDG_DATA_HOME": str(work / "data"),
        "PYTHONPATH": os.pathsep.join(filter(None, found)),
    }
    if is_small:
        return {False: common, True: common}
    nothing = work / "no-opencl"
    nothing.mkdir(parents=True, exist_ok=True)
    return {False: {**common, "OCL_ICD_VENDORS": str(nothing)}, True: common}


def make_python(prepared: Path, work: Path) -> Path:
    """Make an interpreter that sees kernelcast, what was prepared, and this one's packages. What
    was compiled goes where kernelcast looks before it looks for a compiler. A ``.pth`` file does it
    in child processes too, whatever options they are started with."""
    folder = work / "python"
    python = folder / "bin" / "python"
    if python.exists():
        return python
    packages = work / "packages"
    compiled = find_cache(work) / "kernelcast" / "compiled"
    for name, target in (("packages", packages), ("compiled", compiled)):
        with tarfile.open(prepared / f"{name}.tar.xz") as archive:
            archive.extractall(target, filter="data")
    venv.create(folder, with_pip=False, symlinks=True)
    site = next((folder / "lib").glob("python3*/site-packages"))
    seen = [sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"], *sys.path]
    paths = [
        str(HERE.parent / "src"), str(HERE.parent / "tests"), str(HERE), str(packages),
        *dict.fromkeys(path for path in seen if path.endswith("-packages")),
    ]  # fmt: skip
    (site / "kernelcast.pth").write_text("\n".join(paths) + "\n", encoding="utf-8")
    return python


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("output", type=Path, nargs="?", help="folder of the results")
    parser.add_argument("--prepared", type=Path, help="what prepare_nine_minutes.py made")
    parser.add_argument("--device", default="", help="an id or its beginning; the first GPU")
    parser.add_argument("--seconds", type=float, default=540.0, help="for all steps")
    parser.add_argument("--step", action="append", default=[], help="only these steps")
    parser.add_argument("--most", type=int, default=0, help="so many items of each step")
    parser.add_argument("--small", action="store_true", help="least sizes: a trial without a GPU")
    parser.add_argument("--list", action="store_true", help="show the steps")
    options = parser.parse_args()
    if options.list or options.output is None:
        for step in STEPS:
            print(f"{step.name:12} {step.planned_s:4.0f} s  {step.title}")
        return
    begun_s = time.monotonic()
    output: Path = options.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    work = Path(os.environ.get("TMPDIR", "/tmp")) / f"nine-minutes-{os.getuid()}"
    python, prepared = sys.executable, ""
    environments = make_environments(work, is_small=options.small)
    if options.prepared is not None:
        prepared = str(options.prepared.resolve())
        python = str(make_python(Path(prepared), work))
        shutil.copy(options.prepared / "plan.json", output)  # the report makes the same problems
    command = [
        python, str(HERE / "nine_minutes_steps.py"), "--output", str(output), "--work", str(work),
        "--prepared", prepared, "--device", options.device, "--most", str(options.most),
        *(["--small"] if options.small else []),
    ]  # fmt: skip
    steps = [step for step in STEPS if not options.step or step.name in options.step]
    seconds = options.seconds - (time.monotonic() - begun_s)
    makes_inputs = not options.small and {"sampling", "more"} & {step.name for step in steps}
    with contextlib.ExitStack() as ended:
        if makes_inputs:
            maker = subprocess.Popen(
                [*command, "--inputs"], start_new_session=True, env=environments[False],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            ended.callback(_end, maker)
        run_steps(output, command, steps, seconds=seconds, environments=environments)
    print(f"all: {time.monotonic() - begun_s:.1f} s", flush=True)


if __name__ == "__main__":
    main()
