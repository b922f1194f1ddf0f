"""Measures how long the first answer about a kernel takes, beside another checkout.

Run ``python benchmarks/first_sight.py --device DEVICE [--against PATH] [--kernels N]``. Each
checkout has a process of its own with a warm `Predictor`, which has answered before; both are asked
the same question one after the other, and take turns in who is first. Live buffers: a new kernel,
another size of it, the same again. Problem files: new, the same again, a device that does not
exist. Cold: ``kernelcast estimate`` as a process, with a right and a wrong device. Corpus and
held-out kernels, those with the largest buffers and those in the middle. What a stage of a new
problem file takes is read off the progress reports. Writes ``results/first_sight/<device>.json``
and shows a table of medians; what was refused counts nowhere.

``--live`` asks about live objects alone, 20 kernels of the corpus and 13 held out, beside samples
and builds: new kernel, new size of a known kernel, where nothing may run too, repeated, and each
with a written buffer of 2 GiB; writes ``results/first_sight/live-<device>.json``.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from first_sight_live import measure_live, show_live, write_live
from machine import describe_machine

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "first_sight"
WARM = ("live, new kernel", "live, new size", "live, repeated", "file, new", "file, repeated",
        "file, wrong device")  # fmt: skip
COLD = ("command line", "command line, wrong device")
LARGE_BYTES = 256 << 20
WARM_PROBLEM = ROOT / "examples" / "mandelbrot" / "mandelbrot.yaml"


def main() -> None:
    """Measure, write and show; or answer as one of the checkouts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="intel", help="an id or its beginning")
    parser.add_argument("--against", type=Path, help="another checkout of this repository")
    parser.add_argument("--kernels", type=int, default=4, help="how many of each kind")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--live", action="store_true", help="live objects alone, beside samples")
    options = parser.parse_args()
    if options.live:
        found = measure_live(options.device)
        write_live(found, RESULTS)
        show_live(found)
        return
    if options.child:
        answer(options.device)
        return
    result = measure(options.device, options.against, options.kernels)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{result['device']}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    show(result)


def measure(device: str, against: Path | None, count: int) -> dict[str, Any]:
    """Ask both checkouts about each kernel."""
    sources = {"this": ROOT / "src"} | ({"other": against / "src"} if against else {})
    with contextlib.ExitStack() as stack:
        sides = {
            name: stack.enter_context(
                _Side.started(path, device, stack.enter_context(tempfile.TemporaryDirectory()))
            )
            for name, path in sources.items()
        }
        hello = {name: side.ask("hello", "") for name, side in sides.items()}
        problems = choose_problems(count)
        rows = []
        for turn, (path, size_bytes) in enumerate(problems):
            order = [*sides] if turn % 2 else [*sides][::-1]
            row: dict[str, Any] = {"problem": path.stem, "bytes": size_bytes}
            for question in (*WARM, *COLD):
                found = {name: sides[name].ask(question, str(path)) for name in order}
                row[question] = {name: found[name] for name in sides}
            rows.append(row)
            print(f"[{turn + 1}/{len(problems)}] {path.stem}", file=sys.stderr, flush=True)
    return {"machine": describe_machine(), "device": hello["this"]["device"], "rows": rows}


def choose_problems(count: int) -> list[tuple[Path, int]]:
    """Give the corpus and held-out problems with the largest buffers, and as many in the middle."""
    from kernelcast.launches.problem_file import read_problem
    from kernelcast.records.errors import KernelcastError

    chosen: list[tuple[Path, int]] = []
    for folder in ("src/kernelcast/training_data/corpus", "benchmarks/heldout"):
        sized = []
        for path in sorted((ROOT / folder).glob("*/*.yaml")):
            with contextlib.suppress(KernelcastError):  # those whose inputs are generated
                sized.append((path, read_problem(path).buffer_bytes))
        sized.sort(key=lambda one: -one[1])
        middle = max(0, len(sized) // 2 - count // 2)
        chosen += sized[: (count + 1) // 2] + sized[middle : middle + count // 2]
    return chosen


@dataclass(slots=True)
class _Side:
    """One checkout: a process that answers questions, and a folder of its own."""

    process: subprocess.Popen[str]
    environment: dict[str, str]
    device: str

    @classmethod
    @contextlib.contextmanager
    def started(cls, source: Path, device: str, folder: str) -> Any:  # noqa: ANN401 - an iterator
        """Start the process; end it with the block."""
        environment = {**os.environ, "PYTHONPATH": str(source), "KERNELCAST_DATA": folder}
        process = subprocess.Popen(
            [sys.executable, __file__, "--child", "--device", device],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        try:
            yield cls(process, environment, device)
        finally:
            process.kill()
            process.wait()

    def ask(self, question: str, path: str) -> dict[str, Any]:
        """Ask one question; a cold one is a process of its own."""
        if question in COLD:
            device = self.device if question == COLD[0] else "no-such-device"
            command = [sys.executable, "-m", "kernelcast", "estimate", path, "--device", device]
            begin_s = time.perf_counter()
            done = subprocess.run(
                command, env=self.environment, capture_output=True, text=True, check=False
            )
            return {"seconds": time.perf_counter() - begin_s, "status": done.returncode}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([question, path]) + "\n")
        self.process.stdin.flush()
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found


@dataclass(slots=True)
class _Stages:
    """Times from each progress report to the next, in seconds."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    stage: str = "before the first report"
    since_s: float = field(default_factory=time.perf_counter)

    def __call__(self, stage: str) -> None:
        now_s = time.perf_counter()
        self.seconds[self.stage] += now_s - self.since_s
        self.stage, self.since_s = stage.rpartition(": ")[2], now_s


def answer(device_id: str) -> None:
    """Answer questions from standard input until it ends."""
    asked = _Asked(device_id)
    for line in sys.stdin:
        question, path = json.loads(line)
        try:
            found = asked.answer(question, path)
        except Exception as error:  # noqa: BLE001 - told, and the next question is answered
            found = {"error": f"{type(error).__name__}: {error}"[:300]}
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


class _Asked:
    """A warm predictor with what one kernel's questions share."""

    def __init__(self, device_id: str) -> None:
        from kernelcast import Predictor
        from kernelcast.sampling.discovery import choose_device, find_devices
        from kernelcast.sampling.session import open_session

        self.description, handle = choose_device(device_id, find_devices())
        self.session = open_session(self.description, handle)
        self.predictor = Predictor([self.description])
        self._live: tuple[str, Callable[[int], Any], Callable[[], None]] | None = None

    def answer(self, question: str, path: str) -> dict[str, Any]:
        """Give the seconds that an answer took, and those of its stages where there are any."""
        from kernelcast import read_problem

        if question == "hello":
            for one in WARM[:4]:
                self.answer(one, str(WARM_PROBLEM))
            return {"device": self.description.id}
        if question.startswith("live"):
            launch = self._make_live(path)(2 if question == WARM[1] else 1)
            return self._time(lambda: self.predictor.estimate(launch))
        self._end_live()
        problem = read_problem(Path(path))
        if question == WARM[3]:
            # Child processes end when they are idle: this one is awake as in a program that asks.
            self.predictor.answer(read_problem(WARM_PROBLEM), self.description)
            stages = _Stages()
            found = self._time(
                lambda: self.predictor.answer(problem, self.description, report=stages)
            )
            stages("")
            self.predictor.estimate(problem, self.description)  # what is asked again is remembered
            return found | {"stages": dict(stages.seconds)}
        device = "no-such-device" if question == WARM[5] else self.description
        return self._time(lambda: self.predictor.estimate(problem, device))

    @staticmethod
    def _time(ask: Callable[[], object]) -> dict[str, Any]:
        from kernelcast.records.errors import KernelcastError

        begin_s = time.perf_counter()
        try:
            ask()
        except KernelcastError as error:
            return {"seconds": time.perf_counter() - begin_s, "refused": str(error)[:200]}
        return {"seconds": time.perf_counter() - begin_s}

    def _make_live(self, path: str) -> Callable[[int], Any]:
        """Build a problem's kernel and put its buffers there; give launches of a part of it."""
        import pyopencl as cl

        from kernelcast import Launch, read_problem
        from kernelcast.sampling.problems import put_arguments, release_arguments

        if self._live is not None and self._live[0] == path:
            return self._live[1]
        self._end_live()
        problem = read_problem(Path(path))
        program = cl.Program(self.session.context, problem.kernel.source)
        program.build(list(problem.kernel.build_options))
        kernel = cl.Kernel(program, problem.kernel.name)
        arguments = put_arguments(self.session, problem, seed=0)
        sizes, local = problem.ndrange.global_size, problem.ndrange.local_size

        def make(parts: int) -> Any:  # noqa: ANN401 - the checkout's own
            unit = local[-1] if local else 1
            last = max(unit, sizes[-1] // parts // unit * unit)
            return Launch(
                kernel, (*sizes[:-1], last), local, arguments, queue=self.session.queue,
                global_offset=problem.ndrange.global_offset,
                source=problem.kernel.source, build_options=problem.kernel.build_options,
            )  # fmt: skip

        def end(program: object = program) -> None:  # which must live as long as its kernels
            release_arguments(self.session, arguments)

        self._live = (path, make, end)
        return make

    def _end_live(self) -> None:
        if self._live is not None:
            self._live[2]()
            self._live = None


def show(result: dict[str, Any]) -> None:
    """Print medians, and where the time of new problem files goes."""
    sides = [*result["rows"][0][WARM[0]]] if result["rows"] else []
    print(f"{result['device']}, medians in ms\n")
    print(f"| question | kernels | {' | '.join(sides)} |\n|---|---:|{'---:|' * len(sides)}")
    large = [row for row in result["rows"] if row["bytes"] >= LARGE_BYTES]
    for question, rows in [*((one, result["rows"]) for one in (*WARM, *COLD)), (WARM[3], large)]:
        times = {
            side: [1e3 * row[question][side]["seconds"] for row in rows
                   if "seconds" in row[question][side]
                   and ("refused" not in row[question][side] or question == WARM[5])]
            for side in sides
        }  # fmt: skip
        told = " | ".join(f"{median(times[side]):.2f}" if times[side] else "-" for side in sides)
        name = f"{question}, {LARGE_BYTES >> 20} MiB and more" if rows is large else question
        print(f"| {name} | {len(rows)} | {told} |")
    for side in sides:
        stages: dict[str, list[float]] = defaultdict(list)
        for row in result["rows"]:
            for stage, seconds in row[WARM[3]][side].get("stages", {}).items():
                stages[stage].append(1e3 * seconds)
        print(f"\nstages of a new problem file, {side}:")
        for stage, times_ms in sorted(stages.items(), key=lambda one: -median(one[1])):
            print(f"  {median(times_ms):9.2f} ms  {stage} ({len(times_ms)})")


if __name__ == "__main__":
    main()
