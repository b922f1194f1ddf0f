"""Measures how long the command line and the service take to a first answer, beside the build.

Run ``python benchmarks/first_sight_service.py [--device DEVICE] [--rounds N]``.
The command line is asked about a kernel with 1 GiB of buffers, in a data folder that is new and
again, and about problems that are wrong; the service about a new kernel on two devices, the same
again, other sizes of it, and wrong problems. Every round has kernels of its own, so that no
compiler has seen them. From the time of each answer that of the build is taken off. Writes
``results/first_sight/ways-<device>.json`` and the page of `first_sight.py`, and shows medians
beside the bars.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from first_sight import RESULTS, write_page
from machine import describe_machine

Found = dict[str, list[float]]
"""Seconds of each question."""
BARS_S = {
    "command line, first": 1.5, "command line, again": 0.7,
    "command line, wrong name": 0.5, "command line, wrong count": 0.5,
    "command line, wrong type": 0.5, "command line, wrong size of a file": 0.5,
    "command line, wrong device": 0.5,
    "service, first": 1.0, "service, kept": 0.01, "service, new size": 0.05,
    "service, wrong name": 0.5, "service, wrong type": 0.5,
}  # fmt: skip
_PORT = 8519
_BUFFER_COUNT = (1 << 30) // 3 // 4 // 64 * 64
_SERVICE_COUNT = 1 << 22
_READY_S = 120.0
_SETTLE_S = 8.0
_SOURCE = """kernel void round_{number}(global const float *a, global const float *b,
    global float *c, const uint n, float s)
{{
    const size_t i = get_global_id(0);
    float x = a[i];
    const float y = b[i];
    for (int k = 0; k < {number}; ++k)
        x = x * 0.999f + y * s;
    c[i] = x;
}}
"""


def main() -> None:
    """Measure, write and show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="intel", help="an id or its beginning")
    parser.add_argument("--other-device", default="pocl", help="the service's second device")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    found: Found = defaultdict(list)
    for number in range(options.rounds):
        ask_command_line(options.device, 300 + number, found)
        print(f"[{number + 1}/{options.rounds}] command line", file=sys.stderr)
    with open_service() as call:
        for number in range(options.rounds):
            ask_service(call, (options.device, options.other_device), number, found)
    result = {"machine": describe_machine(), "device": options.device, "seconds": found}
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"ways-{options.device}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    write_page()
    show(found)


def make_problem(number: int, count: int) -> dict[str, Any]:
    """Describe a launch over three buffers as a problem file does; the source is text."""
    return {
        "code": _SOURCE.format(number=number),
        "kernel": f"round_{number}",
        "global_size": [count],
        "local_size": [64],
        "args": [
            {"buffer": "float32", "count": count, "init": "uniform"},
            {"buffer": "float32", "count": count, "init": "uniform"},
            {"buffer": "float32", "count": count, "init": "zeros"},
            {"scalar": "uint32", "value": count},
            {"scalar": "float32", "value": 0.3},
        ],
    }


def spoil(problem: dict[str, Any], how: str) -> dict[str, Any]:
    """Make a problem wrong in a way."""
    wrong: dict[str, Any] = json.loads(json.dumps(problem))
    match how:
        case "wrong name":
            wrong["kernel"] = "no_such_kernel"
        case "wrong count":
            wrong["args"].pop()
        case "wrong type":
            wrong["args"][3] = {"scalar": "int32", "value": 1}
        case "wrong size of a file":
            wrong["args"][0] = {"buffer": "float32", "count": 64, "init": "short.npy"}
    return wrong


def ask_command_line(device: str, number: int, found: Found) -> None:
    """Ask in a data folder that nobody has used."""
    import numpy as np

    right = make_problem(number, _BUFFER_COUNT)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        np.save(place / "short.npy", np.zeros(63, dtype=np.float32))
        environment = {**os.environ, "KERNELCAST_DATA": str(place / "data")}
        for question in ("first", "again"):
            found[f"command line, {question}"].append(_run(right, place, device, environment))
        for how in ("wrong name", "wrong count", "wrong type", "wrong size of a file"):
            wrong = spoil(right, how)
            seconds = _run(wrong, place, device, environment, is_right=False)
            found[f"command line, {how}"].append(seconds)
        seconds = _run(right, place, "no-such-device", environment, is_right=False)
        found["command line, wrong device"].append(seconds)


def _run(
    problem: dict[str, Any], folder: Path, device: str, environment: dict[str, str], *,
    is_right: bool = True,
) -> float:  # fmt: skip
    """Ask once; give the seconds that it took beside the build."""
    described = {**problem, "source": "round.cl"}
    (folder / "round.cl").write_text(described.pop("code"), encoding="utf-8")
    path = folder / "round.yaml"
    path.write_text(json.dumps(described), encoding="utf-8")  # JSON is YAML
    command = [sys.executable, "-m", "kernelcast", "estimate", str(path), "--device", device]
    begin_s = time.perf_counter()
    done = subprocess.run(
        [*command, "--json"], env=environment, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - begin_s
    if (done.returncode == 0) is not is_right:
        sys.exit(f"{path}: status {done.returncode}: {done.stderr}")
    return seconds - _build_s(json.loads(done.stdout)) if is_right else seconds


def _build_s(answers: list[dict[str, Any]]) -> float:
    """Give the seconds of the slowest build."""
    return max(float(one["cost"]["build_seconds"]) for one in answers)


class _Call:
    """Asks a service that runs."""

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}"

    def __call__(self, path: str, body: dict[str, Any] | None = None) -> tuple[float, Any]:
        """Give the seconds that an answer took, and the answer."""
        request = urllib.request.Request(
            self._address + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"content-type": "application/json"},
        )
        begin_s = time.perf_counter()
        try:
            with urllib.request.urlopen(request, timeout=100) as answer:
                content = json.loads(answer.read())
        except urllib.error.HTTPError as error:
            content = json.loads(error.read())
        return time.perf_counter() - begin_s, content


@contextlib.contextmanager
def open_service() -> Iterator[_Call]:
    """Run a service that has had time to get ready, and that refines nothing meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "KERNELCAST_DATA": folder}
        process = subprocess.Popen(
            [sys.executable, "-m", "kernelcast", "serve", "--port", str(_PORT), "--allow-run",
             "--no-jobs", "--database", f"{folder}/store.sqlite"],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            call = _Call(_PORT)
            ends_s = time.monotonic() + _READY_S
            while True:
                try:
                    call("/v1/devices")
                    break
                except OSError:
                    if time.monotonic() > ends_s:
                        raise
                    time.sleep(0.1)
            yield call
        finally:
            process.terminate()
            process.wait()


def ask_service(call: _Call, devices: tuple[str, str], number: int, found: Found) -> None:
    """Ask about a kernel that is new to the service, and about other sizes of it."""
    time.sleep(_SETTLE_S)
    for question, count in (
        ("first", _SERVICE_COUNT), ("kept", _SERVICE_COUNT), ("new size", _SERVICE_COUNT // 2),
        ("new size", _SERVICE_COUNT * 3 // 4),
    ):  # fmt: skip
        body = {"problem": make_problem(300 + number, count), "devices": list(devices)}
        seconds, answer = call("/v1/estimates", body)
        build_s = _build_s(answer["estimates"]) if question == "first" else 0.0
        found[f"service, {question}"].append(seconds - build_s)
    for how in ("wrong name", "wrong type"):
        time.sleep(_SETTLE_S)
        problem = spoil(make_problem(600 + number, _SERVICE_COUNT), how)
        seconds, _ = call("/v1/estimates", {"problem": problem, "devices": list(devices)})
        found[f"service, {how}"].append(seconds)


def show(found: Found) -> None:
    """Print medians and minima beside the bars."""
    print("seconds beside the build\n\n| question | bar | median | least |\n|---|---:|---:|---:|")
    for question, bar_s in BARS_S.items():
        times = found[question]
        print(f"| {question} | {bar_s:g} | {median(times):.3f} | {min(times):.3f} |")


if __name__ == "__main__":
    main()
