"""Exhaustive measurements of the tuning examples: taken, kept and read again."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from machine import describe_machine

from kernelcast.launches.devices import choose_devices
from kernelcast.records.device import DeviceDescription
from kernelcast.tuning.device_runs import EventKind, MeasureTask, TuningEvent, run_on_device
from kernelcast.tuning.space import SearchSpace, read_space

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "tuning"
EXAMPLES = ROOT / "examples" / "tuning"
DEVELOPMENT = ROOT / "benchmarks" / "tuning_kernels"
SCHEMA = "kernelcast-tuning-benchmark-1"
TIMEOUT_S = 60.0
CLOCKS: dict[str, Callable[[dict[str, Any]], float]] = {
    "wall": lambda entry: min(entry["runs_s"]),
    "cpu": lambda entry: median(entry["cpu_s"]),
}
"""How long a configuration takes: the fastest run, for what else runs on the machine only lengthens
runs; or the time of all threads of the process, which of CPU devices is known on a busy machine
too. It does not tell how evenly the cores were busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One example on one device, measured exhaustively.

    Parameters
    ----------
    name : str
        The example.
    names : tuple of str
        What was searched over.
    parameters : dict of int to dict
        Values by configuration.
    seconds : dict of int to float
        By the clock asked for, see `CLOCKS`; of those that ran.
    build_s : dict of int to float
        Building and the first run, by the same kind of clock.
    run_s : dict of int to float
        All runs together.
    """

    name: str
    names: tuple[str, ...]
    parameters: dict[int, dict[str, float]]
    seconds: dict[int, float]
    build_s: dict[int, float]
    run_s: dict[int, float]

    @property
    def best_s(self) -> float:
        """The best time."""
        return min(self.seconds.values())

    def share(self, chosen: Sequence[int]) -> float:
        """Give the speed of the best of some configurations as a share of the best speed."""
        found = [self.seconds[one] for one in chosen if one in self.seconds]
        return self.best_s / min(found) if found else 0.0

    def cost_s(self, chosen: Sequence[int]) -> float:
        """Give the time that measuring some configurations takes, builds included."""
        return sum(self.build_s.get(one, 0.0) + self.run_s.get(one, 0.0) for one in chosen)


def find_examples(*, development: bool, names: Sequence[str]) -> dict[str, Path]:
    """List the examples that are quoted, or those that the model was developed with."""
    paths = DEVELOPMENT.glob("*.yaml") if development else EXAMPLES.glob("*/*.yaml")
    found = {path.stem: path for path in sorted(paths)}
    return {name: path for name, path in found.items() if not names or name in names}


def result_file(device_id: str, *, development: bool) -> Path:
    """Give the file of a device's measurements."""
    return RESULTS / ("development" if development else "") / f"{device_id}.json"


def measure_all(
    device_id: str, examples: dict[str, Path], *, runs: int, development: bool, again: bool
) -> None:
    """Measure all configurations of all examples; examples that are there are kept."""
    device = choose_devices([device_id])[0]
    path = result_file(device.id, development=development)
    content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    content = {
        "schema": SCHEMA,
        "device": {"id": device.id, "name": device.name, "driver": device.driver},
        "examples": content.get("examples", {}),
    }
    for name, file in examples.items():
        space = read_space(file)
        known = content["examples"].get(name)
        if known and not again and known["configurations_total"] == len(space.configurations):
            continue
        found = _measure(device, space, runs)
        content["examples"][name] = found
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        ran = sum(bool(one["runs_s"]) for one in found["configurations"])
        print(
            f"{device.id}: {name}: {ran} of {len(space.configurations)} measured in "
            f"{found['wall_s']:.1f} s",
            flush=True,
        )


def measure_again(
    device: DeviceDescription,
    space: SearchSpace,
    numbers: Sequence[int],
    *,
    runs: int,
    clock: str,
) -> dict[int, float]:
    """Measure some configurations once more, in turn, and give each one's time.

    The best of many noisy measurements is better on paper than in fact: what is compared with it
    must be measured beside it.
    """
    entries = _run(device, space, runs, frozenset(numbers))
    return {number: CLOCKS[clock](one) for number, one in entries.items() if one["runs_s"]}


def _measure(device: DeviceDescription, space: SearchSpace, runs: int) -> dict[str, Any]:
    machine = describe_machine()
    started_s = time.perf_counter()
    every = frozenset(one.number for one in space.configurations)
    entries = _run(device, space, runs, every)
    return {
        "machine": machine,
        "configurations_total": len(space.configurations),
        "wall_s": time.perf_counter() - started_s,
        "runs": runs,
        "names": list(space.names),
        "configurations": list(entries.values()),
    }


def _run(
    device: DeviceDescription, space: SearchSpace, runs: int, wanted: frozenset[int]
) -> dict[int, dict[str, Any]]:
    chosen = [one for one in space.configurations if one.number in wanted]
    problems = {one.number: one.problem for one in chosen if one.problem}
    entries: dict[int, dict[str, Any]] = {
        one.number: {
            "parameters": dict(one.parameters),
            "build_s": 0.0,
            "build_cpu_s": 0.0,
            "runs_s": [],
            "cpu_s": [],
            "obstacle": one.obstacle,
        }
        for one in chosen
    }

    def take(event: TuningEvent) -> None:
        entry = entries[event.number]
        if event.kind is EventKind.BUILT:
            entry["build_s"], entry["build_cpu_s"] = event.seconds, event.cpu_s
        elif event.kind is EventKind.RAN:
            entry["runs_s"].append(event.seconds)
            entry["cpu_s"].append(event.cpu_s)
        elif event.kind is EventKind.REFUSED:
            entry["obstacle"] = event.reason

    def order(given_up: frozenset[int]) -> MeasureTask | None:
        needed = {
            number: runs - len(entries[number]["runs_s"])
            for number in problems
            if number not in given_up
            and len(entries[number]["runs_s"]) < runs
            and not entries[number]["obstacle"]
        }
        left = {number: problems[number] for number in needed}
        task = MeasureTask(device_id=device.id, problems=left, runs=needed, seed=0)
        return task if left else None

    run_on_device(order, timeout_s=TIMEOUT_S, take=take)
    return entries


def read_measured(path: Path, *, clock: str) -> dict[str, Measured]:
    """Read a device's measurements, by example.

    Raises
    ------
    SystemExit
        If the file is something else.
    """
    content = json.loads(path.read_text(encoding="utf-8"))
    if content.get("schema") != SCHEMA:
        msg = f"{path}: is no file of tuning measurements"
        raise SystemExit(msg)
    return {name: _read_one(name, one, clock) for name, one in content["examples"].items()}


def _read_one(name: str, content: dict[str, Any], clock: str) -> Measured:
    entries = dict(enumerate(content["configurations"]))
    ran = {number: one for number, one in entries.items() if one["runs_s"]}
    build, runs = ("build_cpu_s", "cpu_s") if clock == "cpu" else ("build_s", "runs_s")
    return Measured(
        name=name,
        names=tuple(content["names"]),
        parameters={number: one["parameters"] for number, one in entries.items()},
        seconds={number: CLOCKS[clock](one) for number, one in ran.items()},
        build_s={number: one[build] for number, one in entries.items()},
        run_s={number: sum(one[runs]) for number, one in ran.items()},
    )
