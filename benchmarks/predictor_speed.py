"""Measures what a cached estimate and an observation cost, alone and from eight threads.

Run it as ``python benchmarks/predictor_speed.py [CALLS]``. The device is a formula: nothing is
sampled twice, so that only the predictor's own work is timed. Prints JSON.
"""

import json
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from kernelcast.predictor.predictor import Predictor
from kernelcast.predictor.predictor_options import PredictorOptions
from kernelcast.records.problem import Problem
from kernelcast.training_data.store import open_store
from support.fake_executor import FakeExecutor, make_device, make_problem

_THREADS = 8
_EACH = 16
_SINGLE = 1_000_000


def measure_single(predictor: Predictor, problem: Problem, device_id: str) -> dict[str, float]:
    """Time cached estimates of one thread: all together, and each by itself."""
    begin_s = time.perf_counter()
    for _ in range(_SINGLE):
        predictor.estimate(problem, device_id)
    mean_s = (time.perf_counter() - begin_s) / _SINGLE
    times_s = np.array([_time_one(predictor, problem, device_id) for _ in range(_SINGLE // 10)])
    return {"mean_us": 1e6 * mean_s, "p99_us": 1e6 * float(np.quantile(times_s, 0.99))}


def measure_threads(
    predictor: Predictor, problems: list[Problem], device_id: str, calls: int
) -> dict[str, float]:
    """Time cached estimates of eight threads that observe as often as they ask."""
    times_s: list[list[float]] = [[] for _ in range(_THREADS)]
    observing_s: list[list[float]] = [[] for _ in range(_THREADS)]

    def work(thread: int) -> None:
        for turn in range(calls // _THREADS):
            problem = problems[(turn + thread) % len(problems)]
            times_s[thread].append(_time_one(predictor, problem, device_id))
            found = predictor.estimate(problem, device_id)
            begin_s = time.perf_counter()
            predictor.observe(found, 0.5 + 0.0005 * (turn % 10))
            observing_s[thread].append(time.perf_counter() - begin_s)

    begin_s = time.perf_counter()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(_THREADS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    took_s = time.perf_counter() - begin_s
    asking, telling = np.concatenate(times_s), np.concatenate(observing_s)
    return {
        "calls": float(asking.size),
        "took_s": took_s,
        "estimate_median_us": 1e6 * float(np.median(asking)),
        "estimate_p99_us": 1e6 * float(np.quantile(asking, 0.99)),
        "estimate_p999_us": 1e6 * float(np.quantile(asking, 0.999)),
        "observe_median_us": 1e6 * float(np.median(telling)),
        "observe_p99_us": 1e6 * float(np.quantile(telling, 0.99)),
    }


def _time_one(predictor: Predictor, problem: Problem, device_id: str) -> float:
    begin_s = time.perf_counter()
    predictor.estimate(problem, device_id)
    return time.perf_counter() - begin_s


def main() -> None:
    """Measure and print."""
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    device = make_device()
    problems = [make_problem(number) for number in range(_EACH)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.sqlite"
        predictor = Predictor(
            [device], store=path, registry=folder, options=PredictorOptions(executor=FakeExecutor())
        )
        for problem in problems:
            predictor.estimate(problem, device.id)
        found = {"single": measure_single(predictor, problems[0], device.id)}
        found["threads"] = measure_threads(predictor, problems, device.id, calls)
        begin_s = time.perf_counter()
        predictor.close(timeout_s=600)
        found["threads"]["close_s"] = time.perf_counter() - begin_s
        with open_store(path) as store:
            found["threads"]["stored"] = float(store.count())
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
