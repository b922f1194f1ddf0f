"""Measures how alike the errors of two moments of samples are, by the time between them.

Run ``python benchmarks/moments_apart.py --device DEVICE``. Each of some kernels of the corpus is
sampled moment by moment, with no pause, as long as there are work-groups left, at most so many
seconds. The errors of moments against the median of their kernel, cut at four deviations, are
correlated by the time from the start of the one to the start of the other. Shows a table, writes
``results/moments_apart/<device>.json``: `kernelcast.launches.estimation.MOMENTS_APART_S` is chosen
by it.
"""

import argparse
import json
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from machine import describe_machine

from kernelcast import read_problem
from kernelcast.launches.estimation import LaunchSampling
from kernelcast.launches.live import find_reach
from kernelcast.launches.settings import EstimateSettings
from kernelcast.models.linear import fit_linear
from kernelcast.records.errors import KernelcastError
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.problems import prepared_problem
from kernelcast.sampling.session import DeviceSession, open_session

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "src" / "kernelcast" / "training_data" / "corpus"
RESULTS = ROOT / "benchmarks" / "results" / "moments_apart"
KERNELS, LONGEST_S, MOST_BYTES = 24, 4.0, 600 << 20
LAGS_S = (0.0, 0.015, 0.03, 0.05, 0.08, 0.13, 0.2, 0.4, 0.8, 1.6, 3.2)
FEWEST, CUT = 20, 4.0
Floats = npt.NDArray[np.float64]


class QuietLaunch(OpenCLLaunch):
    """Leaves out trials of what other programs leave: they take longer than moments are apart."""

    def measure_contention(self) -> None:
        """Try nothing."""


def main() -> None:
    """Measure, write and show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="intel", help="an id or its beginning")
    parser.add_argument("--kernels", type=int, default=KERNELS, help="how many")
    options = parser.parse_args()
    description, handle = choose_device(options.device, find_devices())
    session = open_session(description, handle)
    series = {}
    for path in choose_paths(options.kernels):
        times_s, logs = sample_moments(session, path)
        print(f"{path.stem}: {len(logs)} moments")
        if len(logs) >= FEWEST:
            series[path.stem] = (times_s, logs)
    rows = correlate([*series.values()])
    RESULTS.mkdir(parents=True, exist_ok=True)
    found = {"machine": describe_machine(), "device": description.id, "rows": rows}
    found["kernels"] = {name: {"moments": len(logs), "deviation": float(np.std(logs))}
                        for name, (_, logs) in series.items()}  # fmt: skip
    path = RESULTS / f"{description.id}.json"
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print("| from, ms | to, ms | correlation | pairs |\n|---:|---:|---:|---:|")
    for row in rows:
        print(f"| {1e3 * row['from_s']:.0f} | {1e3 * row['to_s']:.0f} "
              f"| {row['correlation']:+.3f} | {row['pairs']} |")  # fmt: skip


def choose_paths(count: int) -> list[Path]:
    """Give problems of the corpus all over their sizes."""
    sized = []
    for path in sorted(CORPUS.glob("*/*.yaml")):
        try:
            sized.append((read_problem(path).buffer_bytes, path))
        except KernelcastError:  # its inputs are generated
            continue
    sized = sorted(one for one in sized if one[0] <= MOST_BYTES)
    return [sized[place * len(sized) // count][1] for place in range(min(count, len(sized)))]


def sample_moments(session: DeviceSession, path: Path) -> tuple[Floats, Floats]:
    """Sample a kernel again and again; give when, and the logarithms of the times it says."""
    problem, settings = read_problem(path), EstimateSettings()
    # A moment's share of the budget as in an answer, and no end after two.
    settings = replace(settings, within_s=LONGEST_S)
    inferred = (None,) * len(problem.arguments)
    times_s, logs = [], []
    with prepared_problem(
        session, problem, QuietLaunch, seed=0, inferred=inferred, find_reach=find_reach
    ) as launch:
        sampling = LaunchSampling(launch, problem.kernel, settings, arguments=problem.arguments)
        ends_s = time.perf_counter() + LONGEST_S
        while time.perf_counter() < ends_s:
            begin_s = time.perf_counter()
            if not sampling.take_moment():
                break
            times_s.append(begin_s)
            logs.append(math.log(fit_linear(sampling.runs[-1]).seconds))
    return np.array(times_s), np.array(logs)


def correlate(series: Sequence[tuple[Floats, Floats]]) -> list[dict[str, Any]]:
    """Give the mean product of standardised errors by the time between them."""
    sums, pairs = np.zeros(len(LAGS_S) - 1), np.zeros(len(LAGS_S) - 1, dtype=int)
    for times_s, logs in series:
        errors = logs - np.median(logs)
        most = CUT * 1.4826 * np.median(np.abs(errors))
        errors = np.clip(errors, -most, most)
        errors = (errors - errors.mean()) / errors.std()
        for step in range(1, len(errors)):
            place = np.digitize(times_s[step:] - times_s[:-step], LAGS_S) - 1
            product = errors[step:] * errors[:-step]
            is_in = place < len(sums)
            np.add.at(sums, place[is_in], product[is_in])
            np.add.at(pairs, place[is_in], 1)
    return [
        {"from_s": low, "to_s": high, "correlation": float(total / max(count, 1)),
         "pairs": int(count)}
        for low, high, total, count in zip(LAGS_S, LAGS_S[1:], sums, pairs, strict=False)
    ]  # fmt: skip


if __name__ == "__main__":
    main()
