"""Is a scheduler that asks first done sooner than one that runs everything once?

Run ``python -m benchmarks scheduler`` (some minutes; ``--busy`` starts two busy loops
beside it). Twelve kernels of twelve kinds in one program, three sizes each, live pyopencl objects,
all devices of the machine:

* *running everything once*: each launch once on each device, as a program does that wants to know;
* *asking*: a new `Predictor` with an empty store is asked about each launch on each device. Its
  whole wall time counts, builds included;
* list scheduling of random task graphs over the devices (HEFT: upward ranks, earliest finish), by
  the answers, by times of one run, by answers after each launch was observed on the device where
  the first schedule placed it, and by true times, the oracle. Schedules are judged by true times:
  the median of whole runs that are spread over the whole trial.

Both pay for the program's own build, which is not counted, and find runtimes' caches empty. Writes
``results/scheduler/<quiet or busy>.json`` and prints a row per device: where the time goes.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from harness import RESULTS, write_result

HERE = Path(__file__).resolve().parent
FOLDER = RESULTS / "scheduler"
GRAPHS, TASKS, SEED = 200, 24, 7
ROUNDS = 4
"""Whole runs of each launch, at moments spread over the trial."""

Key = tuple[str, int, str]
"""Kernel, number of its size, device id."""
Times = Mapping[Key, float]


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel with three sizes: what it is launched with at each."""

    kernel: str
    sizes: tuple[int, int, int]
    make: Callable[["Maker", int], tuple[tuple[int, ...], tuple[int, ...] | None, list[Any]]]
    """Makes global size, local size and arguments."""


@dataclass
class Maker:
    """Makes arguments on one device, and keeps them."""

    context: Any
    queue: Any
    kept: list[Any] = field(default_factory=list)

    def put(self, array: npt.NDArray[Any]) -> Any:  # noqa: ANN401 - a pyopencl.Buffer
        """Copy an array to a new buffer."""
        import pyopencl as cl

        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        self.kept.append(cl.Buffer(self.context, flags, hostbuf=array))
        return self.kept[-1]

    def floats(self, count: int, width: int = 1) -> Any:  # noqa: ANN401 - a pyopencl.Buffer
        """Make a buffer of uniform numbers."""
        numbers = np.random.default_rng(1).random(count * width, dtype=np.float32)
        return self.put(numbers)

    def integers(self, count: int, behind: int) -> Any:  # noqa: ANN401 - a pyopencl.Buffer
        """Make a buffer of random whole numbers below a bound."""
        return self.put(np.random.default_rng(2).integers(0, behind, count, dtype=np.int32))


def _sparse(maker: Maker, rows: int) -> tuple[tuple[int, ...], tuple[int, ...] | None, list[Any]]:
    lengths = np.random.default_rng(3).integers(1, 64, rows)
    first = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    entries = int(first[-1])
    return (rows,), (64,), [
        maker.floats(rows), maker.put(first), maker.integers(entries, rows),
        maker.floats(entries), maker.floats(rows),
    ]  # fmt: skip


def _local(count: int) -> Any:  # noqa: ANN401 - pyopencl.LocalMemory
    import pyopencl as cl

    return cl.LocalMemory(count)


I32, F32 = np.int32, np.float32
CASES = (
    Case("triad", (2**20, 2**23, 2**25), lambda m, n: (
        (n,), (256,), [m.floats(n), m.floats(n), m.floats(n), F32(2)])),
    Case("diffuse", (1024, 2048, 4096), lambda m, n: (
        (n, n), (32, 8), [m.floats(n * n), m.floats(n * n)])),
    Case("multiply", (256, 512, 1024), lambda m, n: (
        (n, n), (16, 16), [m.floats(n * n), m.floats(n * n), m.floats(n * n)])),
    Case("escape", (512, 1024, 2048), lambda m, n: (
        (n, n), (16, 16), [m.integers(n * n, 9), I32(200)])),
    Case("attract", (2048, 8192, 16384), lambda m, n: (
        (n,), (64,), [m.floats(n, 4), m.floats(n, 4), I32(n)])),
    Case("gather", (2**20, 2**22, 2**24), lambda m, n: (
        (n,), (128,), [m.floats(n), m.floats(n), m.integers(n, n)])),
    Case("sparse", (2**15, 2**18, 2**20), _sparse),
    Case("wave", (2**16, 2**18, 2**20), lambda m, n: (
        (n,), (64,), [m.floats(n), m.floats(n), I32(16)])),
    Case("reduce", (2**20, 2**23, 2**25), lambda m, n: (
        (n // 4,), (256,), [m.floats(n // 1024), m.floats(n), _local(1024)])),
    Case("count", (2**20, 2**22, 2**24), lambda m, n: (
        (n,), (256,), [m.integers(1024, 1), m.integers(n, 2**30)])),
    Case("lower", (2048, 4096, 8192), lambda m, n: (
        (n,), (16,), [m.floats(n), m.floats(n * n), m.floats(n)])),
    Case("stride", (2**21, 2**23, 2**25), lambda m, n: (
        (n // 16,), (128,), [m.floats(n), m.floats(n), I32(n)])),
)  # fmt: skip


@dataclass
class Place:
    """A device with the program's own objects."""

    id: str
    context: Any
    program: Any
    """Kept with the context: on Intel's runtime queues and kernels do not keep theirs alive."""
    queue: Any
    launches: dict[tuple[str, int], Any] = field(default_factory=dict)
    """By kernel and number of its size."""

    def run(self, name: tuple[str, int]) -> float:
        """Run one launch whole; give its wall time, in seconds."""
        import pyopencl as cl

        launch = self.launches[name]
        launch.kernel.set_args(*launch.args)
        started_s = time.perf_counter()
        cl.enqueue_nd_range_kernel(self.queue, launch.kernel, launch.global_size, launch.local_size)
        self.queue.finish()
        return time.perf_counter() - started_s


def open_places() -> list[Place]:
    """Open all devices, build the program on each, fill the buffers."""
    import pyopencl as cl

    import kernelcast

    source = (HERE / "scheduler_kernels.cl").read_text(encoding="utf-8")
    places = []
    for platform in cl.get_platforms():
        for device in platform.get_devices():
            context = cl.Context([device])
            queue = cl.CommandQueue(context)
            program = cl.Program(context, source).build()
            place, maker = (
                Place(f"{platform.name} / {device.name}", context, program, queue),
                Maker(context, queue),
            )
            for case in CASES:
                for number, size in enumerate(case.sizes):
                    global_size, local_size, args = case.make(maker, size)
                    kernel = cl.Kernel(program, case.kernel)
                    place.launches[case.kernel, number] = kernelcast.Launch(
                        kernel, global_size, local_size, args, queue=queue
                    )
            queue.finish()
            places.append(place)
    return places


def run_all(places: Sequence[Place], truth: dict[Key, list[float]]) -> dict[str, float]:
    """Run each launch once on each device; add the times to `truth`, give wall times by device."""
    walls = {}
    for place in places:
        started_s = time.perf_counter()
        for name in place.launches:
            truth.setdefault((*name, place.id), []).append(place.run(name))
        walls[place.id] = time.perf_counter() - started_s
    return walls


def ask_all(predictor: Any, places: Sequence[Place]) -> dict[Key, dict[str, Any]]:  # noqa: ANN401
    """Ask about each launch; give answers with what they cost."""
    answers: dict[Key, dict[str, Any]] = {}
    for place in places:
        for name, launch in place.launches.items():
            started_s = time.perf_counter()
            try:
                answer = predictor.estimate(launch)
            except Exception as error:  # noqa: BLE001 - a refusal is a result
                answers[(*name, place.id)] = {"error": f"{type(error).__name__}: {error}"[:300]}
                continue
            answers[(*name, place.id)] = {
                "wall_s": time.perf_counter() - started_s,
                "seconds": answer.seconds,
                "now_s": answer.now.seconds if answer.now else answer.seconds,
                "low_s": answer.low,
                "high_s": answer.high,
                "tier": str(answer.tier),
                "sampling_s": answer.sampling_seconds,
                "build_s": answer.build_seconds,
                "overhead_s": answer.overhead_seconds,
            }
    return answers


@dataclass(frozen=True, slots=True)
class Graph:
    """Tasks in topological order: which launch each is, and which earlier tasks it waits for."""

    tasks: tuple[tuple[str, int], ...]
    before: tuple[tuple[int, ...], ...]


def make_graphs(names: Sequence[tuple[str, int]]) -> Iterator[Graph]:
    """Draw random task graphs of a width of about four."""
    rng = np.random.default_rng(SEED)
    for _ in range(GRAPHS):
        tasks = tuple(names[number] for number in rng.integers(0, len(names), TASKS))
        before = tuple(
            tuple(earlier for earlier in range(max(0, task - 8), task) if rng.random() < 0.2)
            for task in range(TASKS)
        )
        yield Graph(tasks, before)


def place_graph(graph: Graph, devices: Sequence[str], times: Times) -> list[tuple[int, str]]:
    """Schedule a graph by HEFT: the tasks in the order of their starts, each with its device."""
    from kernelcast.scheduling.placement import Task, place_tasks

    tasks = [
        Task(
            name=str(number),
            times={device: times[*launch, device] for device in devices},
            after=tuple(map(str, graph.before[number])),
        )
        for number, launch in enumerate(graph.tasks)
    ]
    return [(int(name), placement.device) for name, placement in place_tasks(tasks).items()]


def simulate(graph: Graph, placed: Sequence[tuple[int, str]], times: Times) -> float:
    """Give the makespan of a schedule whose tasks take the given times."""
    free: dict[str, float] = {}
    ends: dict[int, float] = {}
    for task, device in placed:
        ready_s = max((ends[earlier] for earlier in graph.before[task]), default=0.0)
        started_s = max(ready_s, free.get(device, 0.0))
        free[device] = ends[task] = started_s + times[*graph.tasks[task], device]
    return max(ends.values())


def judge(graphs: Sequence[Graph], devices: Sequence[str], told: Times, true: Times) -> float:
    """Give the geometric mean of makespans over the oracle's."""
    ratios = [
        simulate(graph, place_graph(graph, devices, told), true)
        / simulate(graph, place_graph(graph, devices, true), true)
        for graph in graphs
    ]
    return float(np.exp(np.mean(np.log(ratios))))


def _spin() -> None:
    while True:
        pass


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Keep processors busy meanwhile."""
    loops = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(count)]
    for loop in loops:
        loop.start()
    try:
        yield
    finally:
        for loop in loops:
            loop.terminate()


def measure() -> dict[str, Any]:
    """Run the trial; give all figures."""
    for variable in ("KERNELCAST_DATA", "POCL_CACHE_DIR", "MESA_SHADER_CACHE_DIR"):
        os.environ[variable] = tempfile.mkdtemp()
    os.environ["PYOPENCL_NO_CACHE"] = "1"
    import kernelcast

    places = open_places()
    devices = [place.id for place in places]
    truth: dict[Key, list[float]] = {}
    run_walls = run_all(places, truth)
    one_run = {key: durations_s[0] for key, durations_s in truth.items()}
    with kernelcast.Predictor() as predictor:
        answers = ask_all(predictor, places)
        run_all(places, truth)
        refused = {key for key, answer in answers.items() if "error" in answer}
        names = [
            name for name in places[0].launches if not any((*name, d) in refused for d in devices)
        ]
        if not names:
            reasons = {(key[2], answers[key]["error"]) for key in refused}
            sys.exit(f"no launch was answered on all devices: {reasons}")
        graphs, chosen = list(make_graphs(names)), set[tuple[tuple[str, int], str]]()
        first = {key: answer["now_s"] for key, answer in answers.items() if key not in refused}
        by_id = {place.id: place for place in places}
        for graph in graphs:
            chosen.update(
                (graph.tasks[n], device) for n, device in place_graph(graph, devices, first)
            )
        for name, device in sorted(chosen):
            by_id[device].run(name)
            predictor.observe(by_id[device].launches[name], by_id[device].run(name))
        later = ask_all(predictor, places)
    for _ in range(ROUNDS - 2):
        run_all(places, truth)
    true = {key: float(np.median(durations_s[1:])) for key, durations_s in truth.items()}
    observed = {key: answer["now_s"] for key, answer in later.items() if "error" not in answer}
    rows = {
        device: summarise(device, answers, true, one_run, run_walls[device]) for device in devices
    }
    asked_s = sum(row["asking_s"] for row in rows.values())
    return {
        "devices": rows,
        "asking_over_running": asked_s / sum(run_walls.values()),
        "makespan_over_oracle": {
            "first answers": judge(graphs, devices, first, true),
            "after observing own placements": judge(graphs, devices, observed, true),
            "times of one run": judge(graphs, devices, one_run, true),
        },
        "refused": {" ".join(map(str, key)): answers[key]["error"] for key in sorted(refused)},
        "launches": [
            {"kernel": kernel, "size": size, "device": device, **answers[kernel, size, device],
             "measured_s": durations_s}
            for (kernel, size, device), durations_s in truth.items()
        ],
    }  # fmt: skip


def summarise(
    device: str,
    answers: Mapping[Key, Mapping[str, Any]],
    true: Times,
    one_run: Times,
    run_wall_s: float,
) -> dict[str, Any]:
    """Give a device's row: cost of asking and of running, and errors beside those of one run."""
    mine = {
        key: answer for key, answer in answers.items() if key[2] == device and "wall_s" in answer
    }
    errors = np.array([abs(answer["now_s"] / true[key] - 1) for key, answer in mine.items()])
    run_errors = np.array([abs(one_run[key] / true[key] - 1) for key in mine])

    def total(name: str) -> float:
        return float(sum(answer[name] for answer in mine.values()))

    return {
        "running_s": run_wall_s,
        "asking_s": total("wall_s"),
        "sampling_s": total("sampling_s"),
        "build_s": total("build_s"),
        "rest_s": total("wall_s") - total("sampling_s") - total("build_s"),
        "first_size_s": float(np.median([mine[k]["wall_s"] for k in mine if k[1] == 0] or [0.0])),
        "later_size_s": float(np.median([mine[k]["wall_s"] for k in mine if k[1] > 0] or [0.0])),
        "median_error": float(np.median(errors)) if len(errors) else None,
        "mean_error": float(errors.mean()) if len(errors) else None,
        "one_run_median_error": float(np.median(run_errors)) if len(errors) else None,
    }


def main() -> None:
    """Measure, write the result and print it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--busy", action="store_true", help="with two busy loops beside it")
    busy = parser.parse_args().busy
    with busy_loops(2 if busy else 0):
        result = measure()
    write_result(FOLDER / f"{'busy' if busy else 'quiet'}.json", result)
    for device, row in result["devices"].items():
        print(device)
        print("  " + ", ".join(f"{name} {value:.3f}" for name, value in row.items() if value))
    print(f"asking over running everything once: {result['asking_over_running']:.2f}")
    for name, ratio in result["makespan_over_oracle"].items():
        print(f"makespan over the oracle's, {name}: {ratio:.3f}")
    print("\n".join(f"refused: {key}: {why}" for key, why in result["refused"].items()))


if __name__ == "__main__":
    main()
