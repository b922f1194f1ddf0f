"""What counting costs: the counting copy's time over the plain kernel's, on the same work-groups.

Both run in turn (A B A B) on a window of work-groups large enough to last a millisecond or more;
printed are medians, their ratio, and the noise of the plain runs. Beside it stands the time of
the static analysis, libclang's parse included, warm and without the cache. Writes
``results/instrumented_cost/<device>.json``.

    python benchmarks/instrumented_cost.py [beginning of a device id] ...
"""

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from machine import describe_machine

from kernelcast.features.access import infer_accesses
from kernelcast.features.analysis import analyse
from kernelcast.features.instrumentation.source import instrument
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.errors import KernelcastError
from kernelcast.records.ndrange import GroupBox
from kernelcast.records.problem import Problem
from kernelcast.sampling.counting import CountingLaunch
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.problems import prepared_problem
from kernelcast.sampling.runtimes import pin_threads
from kernelcast.sampling.session import DeviceSession, open_session
from kernelcast.sampling.windows import box_near

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).resolve().parent / "results" / "instrumented_cost"
ROUNDS = 9
LONG_ENOUGH_S = 2e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One kernel's cost; times in seconds."""

    kernel: str
    work_groups: int
    counters: int
    plain_s: float
    counting_s: float
    ratio: float
    noise: float
    analysis_s: float
    rewriting_s: float


def main() -> None:
    """Measure on every device, or on those named."""
    pin_threads()
    wanted = sys.argv[1:] or [description.id for description, _ in find_devices()]
    for device_id in wanted:
        session = open_session(*choose_device(device_id, find_devices()))
        costs = [cost for path in sorted(ROOT.glob("examples/*/*.yaml"))
                 if (cost := _try(session, read_problem(path))) is not None]  # fmt: skip
        _report(session.description.id, costs)


def _try(session: DeviceSession, problem: Problem) -> Cost | None:
    try:
        return _measure(session, problem)
    except KernelcastError as error:
        print(f"{problem.name}: {str(error).splitlines()[0]}")
        return None


def _measure(session: DeviceSession, problem: Problem) -> Cost:
    analysis_s = _time_analysis(problem)
    analysis = analyse(problem.kernel)
    started_s = time.perf_counter()
    instrumented = instrument(problem.kernel, analysis)
    rewriting_s = time.perf_counter() - started_s
    inferred = infer_accesses(problem.kernel, len(problem.arguments))
    with (
        session.lock,
        prepared_problem(session, problem, CountingLaunch, seed=0, inferred=inferred) as launch,
    ):
        built = launch.build_counting(instrumented)
        box = _find_box(launch)
        launch.count(instrumented, built, [box])
        plain, counting = [], []
        for _ in range(ROUNDS):
            launch.settle()
            plain += launch.time_boxes([box])
            counting.append(launch.count(instrumented, built, [box])[0].duration_s)
    middle = float(np.median(plain))
    return Cost(
        kernel=problem.name,
        work_groups=box.work_group_count,
        counters=instrumented.counter_count,
        plain_s=middle,
        counting_s=float(np.median(counting)),
        ratio=float(np.median(counting)) / middle,
        noise=float(np.diff(np.percentile(plain, (10, 90)))[0]) / 2 / middle,
        analysis_s=analysis_s,
        rewriting_s=rewriting_s,
    )


def _find_box(launch: CountingLaunch) -> GroupBox:
    """Give a window in the middle that lasts long enough, or the whole launch."""
    counts = launch.ndrange.group_counts
    total = launch.ndrange.work_group_count
    launch.warm_up(box_near(0, 1, counts))
    groups = 8
    while True:
        box = box_near((total - min(groups, total)) // 2, min(groups, total), counts)
        launch.settle()
        if groups >= total or launch.time_boxes([box])[0] > LONG_ENOUGH_S:
            return box
        groups *= 2


def _time_analysis(problem: Problem) -> float:
    times = []
    for _ in range(ROUNDS):
        analyse.cache_clear()
        started_s = time.perf_counter()
        analyse(problem.kernel)
        times.append(time.perf_counter() - started_s)
    return float(np.median(times))


def _report(device_id: str, costs: list[Cost]) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    ratios = [cost.ratio for cost in costs]
    analyses = [cost.analysis_s for cost in costs]
    summary = {
        "median_ratio": float(np.median(ratios)),
        "worst_ratio": max(ratios),
        "median_analysis_s": float(np.median(analyses)),
        "worst_analysis_s": max(analyses),
    }
    content = {"device": device_id, "machine": describe_machine(), "summary": summary,
               "kernels": [asdict(cost) for cost in costs]}  # fmt: skip
    (RESULTS / f"{device_id}.json").write_text(json.dumps(content, indent=1) + "\n")
    print(f"\n{device_id}")
    for cost in costs:
        print(
            f"  {cost.kernel:16} {cost.counters:3} counters  plain {cost.plain_s * 1e3:8.3f} ms "
            f"(noise {cost.noise:5.1%})  counting x{cost.ratio:5.2f}  "
            f"analysis {cost.analysis_s * 1e3:5.1f} ms"
        )
    print(f"  median x{summary['median_ratio']:.2f}, worst x{summary['worst_ratio']:.2f}; analysis "
          f"median {summary['median_analysis_s'] * 1e3:.1f} ms, worst "
          f"{summary['worst_analysis_s'] * 1e3:.1f} ms")  # fmt: skip


if __name__ == "__main__":
    main()
