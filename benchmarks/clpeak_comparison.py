"""Peaks and launch latency beside clpeak's, in turns on the same devices.

Each round measures one figure after the other with clpeak (``apt-get install clpeak``) and at once
with kernelcast's microbenchmarks, so that both meet the same machine. Devices whose profiling
events cannot be believed are left out: clpeak's figures for rusticl exceed what its processor can
do 400 times. Writes ``results/clpeak/<device>.json``.

clpeak's figure is the best over its vector widths, kernelcast's the peak of `InstructionFacts` or
the best bandwidth of loads. Medians over the rounds are compared.
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from machine import describe_machine

from kernelcast.records.device import DeviceDescription
from kernelcast.sampling.discovery import find_devices
from kernelcast.sampling.microbenchmarks.effort import Effort
from kernelcast.sampling.microbenchmarks.findings import BenchmarkResult
from kernelcast.sampling.microbenchmarks.harness import Bench
from kernelcast.sampling.microbenchmarks.suite import suite
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.runtimes import pin_threads
from kernelcast.sampling.session import open_session

RESULTS = Path(__file__).resolve().parent / "results" / "clpeak"
TIMEOUT_S = 300
_VALUE = re.compile(r"^\s+\w+\s*:\s*([\d.]+)\s*$")
_LATENCY = re.compile(r"Kernel launch latency : ([\d.]+) us")


def read_peak(result: BenchmarkResult) -> float | None:
    """Read the peak of an instruction."""
    peaks = [one.peak_per_s.value for one in result.instructions if one.peak_per_s]
    return max(peaks, default=None)


def read_bandwidth(result: BenchmarkResult) -> float | None:
    """Read the best bandwidth of loads from global memory."""
    rates = [
        rate.value
        for memory in result.memories
        if memory.space == "global"
        for rate in memory.load_bytes_per_s.values()
    ]
    return max(rates, default=None)


def read_latency(result: BenchmarkResult) -> float | None:
    """Read the time from queued to start."""
    cost = result.costs.get("launch_queued_to_start_s")
    return cost.value if cost else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One figure that both programs measure.

    Parameters
    ----------
    name : str
        With its unit.
    title : str
        How clpeak heads it.
    option : str
        What makes clpeak measure it.
    scale : float
        What turns clpeak's unit into ours.
    benchmark : str
        Our microbenchmark.
    read : callable
        Takes the figure out of its result.
    """

    name: str
    title: str
    option: str
    scale: float
    benchmark: str
    read: Callable[[BenchmarkResult], float | None]


METRICS = (
    Metric(name="fp32_per_s", title="Single-precision compute", option="--compute-sp",
           scale=1e9, benchmark="instructions-fp32_fma", read=read_peak),
    Metric(name="fp64_per_s", title="Double-precision compute", option="--compute-dp",
           scale=1e9, benchmark="instructions-fp64_fma", read=read_peak),
    Metric(name="int32_per_s", title="Integer compute (GIOPS)", option="--compute-integer",
           scale=1e9, benchmark="instructions-int32", read=read_peak),
    Metric(name="global_load_bytes_per_s", title="Global memory bandwidth",
           option="--global-bandwidth",
           scale=1e9, benchmark="bandwidth", read=read_bandwidth),
    Metric(name="launch_queued_to_start_s", title="Kernel launch latency",
           option="--kernel-latency",
           scale=1e-6, benchmark="launch", read=read_latency),
)  # fmt: skip


def main() -> int:
    """Run on each device; give the exit status."""
    options = _parse()
    if shutil.which("clpeak") is None:
        print("clpeak is not here: apt-get install clpeak", file=sys.stderr)
        return 1
    pin_threads()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for description, device in find_devices():
        if not description.id.startswith(options.device):
            continue
        session = open_session(description, device)
        if not session.uses_event_timer:
            print(f"{description.id}: left out, its profiling events cannot be believed")
            continue
        bench = Bench(session, Effort(options.effort))
        rows = _compare(bench, device, options.rounds)
        _write(description, rows, options.effort)
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="", help="beginning of a device's id")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--effort", default="normal", choices=[str(one) for one in Effort])
    return parser.parse_args()


def _compare(bench: Bench, device: cl.Device, rounds: int) -> list[dict[str, object]]:
    """Run both programs in turns; give a row per figure."""
    theirs: dict[str, list[float]] = {metric.name: [] for metric in METRICS}
    ours: dict[str, list[float]] = {metric.name: [] for metric in METRICS}
    known = {benchmark.name: benchmark for benchmark in suite()}
    for _ in range(rounds):
        for metric in METRICS:
            their_value = _read_clpeak(_run_clpeak(device, metric.option), metric)
            our_value = metric.read(known[metric.benchmark].run(bench))
            if their_value is not None:
                theirs[metric.name].append(their_value)
            if our_value is not None:
                ours[metric.name].append(our_value)
    return [_make_row(metric, ours[metric.name], theirs[metric.name]) for metric in METRICS]


def _run_clpeak(device: cl.Device, option: str) -> str:
    platform = device.platform
    numbers = (cl.get_platforms().index(platform), platform.get_devices().index(device))
    command = ["clpeak", "-p", str(numbers[0]), "-d", str(numbers[1]), "--use-event-timer", option]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return done.stdout


def _read_clpeak(text: str, metric: Metric) -> float | None:
    r"""Read the best value below a heading.

    Examples
    --------
    >>> text = "  Single-precision compute (GFLOPS)\n   float : 1.5\n   float2 : 2.5\n"
    >>> _read_clpeak(text, METRICS[0])
    2500000000.0
    """
    latency = _LATENCY.search(text)
    if latency and metric.title in latency[0]:
        return float(latency[1]) * metric.scale
    values: list[float] = []
    lines = iter(text.splitlines())
    for line in lines:
        if metric.title in line:
            for below in lines:
                match = _VALUE.match(below)
                if match is None:
                    break
                values.append(float(match[1]) * metric.scale)
    return max(values, default=None)


def _make_row(metric: Metric, ours: list[float], theirs: list[float]) -> dict[str, object]:
    our_value = statistics.median(ours) if ours else None
    their_value = statistics.median(theirs) if theirs else None
    ratio = our_value / their_value if our_value and their_value else None
    return {
        "figure": metric.name,
        "kernelcast": our_value,
        "clpeak": their_value,
        "ratio": ratio,
        "kernelcast_rounds": ours,
        "clpeak_rounds": theirs,
    }


def _write(description: DeviceDescription, rows: list[dict[str, object]], effort: str) -> None:
    content = {
        "device": description.id,
        "name": description.name,
        "platform": description.platform,
        "driver": description.driver,
        "effort": effort,
        "machine": describe_machine(),
        "rows": rows,
    }
    path = RESULTS / f"{description.id}.json"
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(description.id)
    for row in rows:
        shown = [
            f"{row[key]:.3g}" if isinstance(row[key], float) else "-"
            for key in ("kernelcast", "clpeak", "ratio")
        ]
        print(f"  {row['figure']:26} kernelcast {shown[0]:>10}  clpeak {shown[1]:>10}  {shown[2]}")


if __name__ == "__main__":
    sys.exit(main())
