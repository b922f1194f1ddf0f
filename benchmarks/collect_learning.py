"""Collects rows that a learned correction needs: short and long launches, alone and beside others.

``python benchmarks/collect_learning.py FOLDER --minutes 120`` on a machine that does nothing else.
Devices should be calibrated before (``kernelcast calibrate --full``). Kernels of the corpus come in
an order drawn at random, four sizes each from 1 ms to 1 s; all devices, each kernel alone, beside
one and beside two programs that compute, until the time is over. By the times of its parts (a
build, three whole runs and samples of each size) a kernel should take 20 to 40 s per device and
state: the whole corpus on three devices about nine hours, two hours a quarter of it. Writes
``FOLDER/<state>/<device>.parquet``, after Ctrl-C as well; what was there is gone on with. Rows
beside programs are not flagged for that: `others_busy` in their machine's state tells them apart.
"""

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kernelcast.sampling.discovery import find_devices
from kernelcast.training_data.applications import find_kernels

STATES = {"alone": 0, "beside-one": 1, "beside-two": 2}
_BUSY = "while True: sum(range(100000))"
_SIZES = ("--sizes", "4", "--local-sizes", "1", "--shortest", "0.001", "--longest", "1",
          "--runs", "3", "--no-counters", "--least-work-groups", "1")  # fmt: skip


@contextmanager
def computing(count: int) -> Iterator[None]:
    """Let programs compute while the block runs."""
    programs = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for one in programs:
            one.kill()
            one.wait()


def collect(folder: Path, state: str, kernel: str, devices: Sequence[str], ends_s: float) -> None:
    """Collect a kernel on each device, as long as there is time."""
    store = folder / state / "rows.sqlite"
    store.parent.mkdir(parents=True, exist_ok=True)
    limits = ("--most-others", "100", "--worst-noise", "100") if STATES[state] else ()
    with computing(STATES[state]):
        for device in devices:
            left_s = ends_s - time.monotonic()
            if left_s > 1:
                words = ("collect", "--device", device, "--kernels", kernel, *_SIZES, *limits)
                _run(*words, "--time-budget", f"{left_s:.0f}s", "--store", str(store))


def export(folder: Path, devices: Sequence[str]) -> None:
    """Write a file for each state and device that has rows."""
    for state in STATES:
        for device in devices:
            path = folder / state / f"{device}.parquet"
            store = path.with_name("rows.sqlite")
            if store.is_file():
                _run("data", "export", str(path), "--device", device, "--store", str(store))


def _run(*words: str) -> None:
    if subprocess.run([sys.executable, "-m", "kernelcast", *words], check=False).returncode == 130:
        raise KeyboardInterrupt


def main() -> None:
    """Collect until the time is over or Ctrl-C, then write the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--device", action="append", metavar="ID")
    options = parser.parse_args()
    devices = options.device or [one.id for one, _ in find_devices()]
    kernels = [f"{one.application}/{one.stem}" for one in find_kernels("*")]
    random.Random(0).shuffle(kernels)
    steps = [(kernel, state) for kernel in kernels for state in STATES]
    ends_s = time.monotonic() + 60 * options.minutes
    try:
        for done, (kernel, state) in enumerate(steps):
            left_s = ends_s - time.monotonic()
            if left_s <= 0:
                break
            print(
                f"{kernel}, {state}: {done} of {len(steps)} done, {left_s / 60:.1f} of "
                f"{options.minutes:g} minutes left",
                flush=True,
            )
            collect(options.folder, state, kernel, devices, ends_s)
    except KeyboardInterrupt:
        print("interrupted: what was measured is written; the same command goes on", flush=True)
    export(options.folder, devices)


if __name__ == "__main__":
    main()
