"""First answers about kernels of kinds that no calibration holds, beside whole runs.

Run ``python -m benchmarks unseen_launches [DEVICE ...]`` on a quiet machine; all devices if none is
named. Each of the 48 ``unseen_kernels`` is asked about once by a predictor that knows nothing, in
data and cache folders that are empty at first, then run whole. Devices that are calibrated are also
asked for answers that run nothing. Writes ``results/unseen_launches/<device>.json`` after each
kernel, and ``summary.md`` from all of them.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
from harness import RESULTS, make_table, percent, read_json, write_result, write_text
from unseen_kernels import CASES
from unseen_kernels.cases import Buffer, Case, Image, Local, Restored

from kernelcast import EstimateSettings, Launch, Predictor, PredictorOptions
from kernelcast.launches.data_folder import data_folder
from kernelcast.records.errors import KernelcastError
from kernelcast.sampling.contention_meter import find_waiting, read_waiting
from kernelcast.sampling.discovery import choose_device, find_devices

SOURCES = Path(__file__).resolve().parent / "unseen_kernels"
FOLDER = RESULTS / "unseen_launches"
# The first two are kept apart: the first finds code and buffers cold.
APART, FEWEST, MOST, GOAL_S = 2, 8, 60, 1.0
MEASURED = 0.2
"""Quantile of whole runs that answers are held against: other programs only lengthen runs."""
FOLDERS = ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME")
DATA = "KERNELCAST_DATA"


@dataclass(frozen=True, slots=True)
class Answer:
    """A time that was told, and its interval."""

    told_s: float
    low_s: float
    high_s: float


@dataclass(frozen=True, slots=True)
class Whole:
    """Whole runs, less what their threads waited for processors."""

    measured_s: float
    median_s: float
    first_s: float
    second_s: float
    spread: float
    """80 % quantile over 5 % quantile, without the first two."""


@dataclass(frozen=True, slots=True)
class Held:
    """A kernel with its buffers on a device."""

    queue: cl.CommandQueue
    program: cl.Program
    """Intel's runtime forgets it otherwise, while its kernel is used."""
    kernel: cl.Kernel
    case: Case
    arguments: tuple[Any, ...]

    def launch(self) -> Launch:
        """Give the launch as the predictor is asked about it."""
        case = self.case
        return Launch(
            self.kernel, case.global_size, case.local_size, self.arguments, queue=self.queue
        )

    def restore(self) -> None:
        """Put back what the kernel reads and changes."""
        for given, held in zip(self.case.arguments, self.arguments, strict=True):
            if isinstance(given, Restored):
                cl.enqueue_copy(self.queue, held, np.ascontiguousarray(given.content))
        self.queue.finish()


def main() -> None:
    """Measure devices, and write the summary."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("devices", nargs="*", metavar="DEVICE", help="ids or their beginnings")
    parser.add_argument("--kernels", nargs="+", metavar="KERNEL", help="only these")
    parser.add_argument("--render", action="store_true", help="only write the summary")
    options = parser.parse_args()
    machines = data_folder() / "machines"
    try:
        if not options.render:
            with fresh_folders() as folder:
                for one in options.devices or [found.id for found, _ in find_devices()]:
                    measure_device(one, options.kernels, folder, machines)
    except KeyboardInterrupt:
        print("stopped; what was measured is kept", file=sys.stderr)
    print(write_summary())


@contextmanager
def fresh_folders() -> Iterator[Path]:
    """Have drivers and kernelcast keep what they find in a folder that is empty and goes."""
    before = {name: os.environ.get(name) for name in (*FOLDERS, DATA)}
    with tempfile.TemporaryDirectory(prefix="short-launches-") as name:
        os.environ.update({one: str(Path(name) / one) for one in before})
        try:
            yield Path(name)
        finally:
            for one, value in before.items():
                os.environ.pop(one)
                if value is not None:
                    os.environ[one] = value


def measure_device(wanted: str, names: Sequence[str] | None, folder: Path, machines: Path) -> None:
    """Ask about kernels and run them; the file is written after each.

    Parameters
    ----------
    names : sequence of str or None
        The kernels that are asked about; all if None.
    folder : Path
        For data of this device, which other devices do not see.
    machines : Path
        Folder of the user's calibrations.
    """
    description, device = choose_device(wanted, find_devices())
    data = folder / description.id
    found = machines / f"{description.id}.yaml"
    if found.is_file():
        calibrated = data / "calibrated" / "machines"
        calibrated.mkdir(parents=True)
        shutil.copy(found, calibrated)
    context = cl.Context([device])  # has to outlive its queue, on Intel's runtime
    queue = cl.CommandQueue(context)
    rows: list[dict[str, Any]] = []
    cases = {name: CASES[name] for name in names or CASES}
    for count, (name, make) in enumerate(cases.items(), 1):
        case = make(np.random.default_rng(zlib.crc32(name.encode())))
        rows.append({"name": name, **measure_kernel(queue, case, data)})
        result = {"device": description.id, "rows": rows}
        write_result(FOLDER / f"{description.id}.json", result)
        progress = f"[{count}/{len(cases)}] {description.id} {name}: {describe(rows[-1])}"
        print(progress, file=sys.stderr, flush=True)


def describe(row: dict[str, Any]) -> str:
    """Say in short what came out."""
    if "error" in row:
        return str(row["error"])
    answer, measured_s = row["answer"], row["whole"]["measured_s"]
    factor = answer["told_s"] / measured_s
    is_inside = answer["low_s"] <= measured_s <= answer["high_s"]
    return f"{1e3 * measured_s:.3g} ms, told {factor:.2f} of it{'' if is_inside else ', outside'}"


def measure_kernel(queue: cl.CommandQueue, case: Case, data: Path) -> dict[str, Any]:
    """Ask about a kernel, run it, and ask for a static answer where the device is calibrated."""
    try:
        with hold(queue, case) as held:
            answer = ask(held, data / "fresh", EstimateSettings())
            found: dict[str, Any] = {"answer": asdict(answer), "whole": asdict(run_whole(held))}
            if (data / "calibrated").is_dir():
                held.restore()
                found["static"] = ask_static(held, data / "calibrated")
    except Exception as error:  # noqa: BLE001 - told, and the next kernel is asked about
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    return found


@contextmanager
def hold(queue: cl.CommandQueue, case: Case) -> Iterator[Held]:
    """Build a kernel and put its buffers there."""
    source = (SOURCES / f"{case.source}.cl").read_text(encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)
        program = cl.Program(queue.context, source).build()
    kernel = cl.Kernel(program, case.kernel)
    arguments: list[Any] = []
    for one in case.arguments:
        if isinstance(one, Buffer):
            content = np.ascontiguousarray(one.content)
            size_bytes = max(content.nbytes, 16)
            arguments.append(cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, size=size_bytes))
            cl.enqueue_copy(queue, arguments[-1], content)
        elif isinstance(one, Image):
            arguments.append(cl.image_from_array(queue.context, one.content, 4))
        else:
            arguments.append(cl.LocalMemory(one.size_bytes) if isinstance(one, Local) else one)
    queue.finish()
    try:
        yield Held(queue, program, kernel, case, tuple(arguments))
    finally:
        for one in arguments:
            if isinstance(one, cl.MemoryObject):
                one.release()


def ask(held: Held, data: Path, settings: EstimateSettings) -> Answer:
    """Ask a predictor that has observed nothing, in a data folder."""
    os.environ[DATA] = str(data)
    options = PredictorOptions(settings=settings)
    with (
        tempfile.TemporaryDirectory() as folder,
        Predictor(store=Path(folder) / "rows.sqlite", options=options) as predictor,
    ):
        estimate = predictor.estimate(held.launch())
    return Answer(estimate.seconds, estimate.low, estimate.high)


def ask_static(held: Held, data: Path) -> dict[str, Any]:
    """Ask without running anything: the answer, or why there is none."""
    try:
        return asdict(ask(held, data, EstimateSettings(samples=False)))
    except KernelcastError as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}


def run_whole(held: Held) -> Whole:
    """Run a kernel whole, again and again for a second."""
    held.kernel.set_args(*held.arguments)
    times_s: list[float] = []
    began_s = time.perf_counter()
    while len(times_s) < MOST:
        if len(times_s) >= FEWEST and time.perf_counter() - began_s > GOAL_S:
            break
        times_s.append(run_once(held))
    later = times_s[APART:]
    low, measured, middle, high = np.quantile(later, (0.05, MEASURED, 0.5, 0.8)).tolist()
    return Whole(measured, middle, times_s[0], times_s[1], high / low)


def run_once(held: Held) -> float:
    """Run a kernel whole: seconds, less what its threads waited for processors."""
    case = held.case
    held.restore()
    before = read_waiting()
    began_s = time.perf_counter()
    cl.enqueue_nd_range_kernel(held.queue, held.kernel, case.global_size, case.local_size)
    held.queue.finish()
    took_s = time.perf_counter() - began_s
    spent = find_waiting(before, read_waiting(), took_s)
    return took_s * spent.worked_s / (spent.worked_s + spent.waited_s) if spent else took_s


NEAR = 1.4
"""Factor within which an answer is called near."""
WORST = 10
LENGTHS = {
    "below 1 ms": (0.0, 1e-3), "1 to 10 ms": (1e-3, 1e-2), "above 10 ms": (1e-2, float("inf")),
    "all": (0.0, float("inf")),
}  # fmt: skip
HEAD = """# First answers about unseen kernels

Kernels of kinds that no calibration holds; one answer of a predictor that knows nothing, beside
the 20 % quantile of whole runs, less what their threads waited for processors. *Near*: within a
factor of 1.4. *Bias*: median of told by measured. *Holds*: whole runs inside intervals for 90 %.
*First run*, *second run*: what these whole runs say of the rest, median error and share near.
Written by `python -m benchmarks unseen_launches`.
"""
Row = dict[str, Any]


def write_summary() -> str:
    """Write the summary of all devices."""
    results = [read_json(path) for path in sorted(FOLDER.glob("*.json"))]
    lines = [HEAD, *(line for result in results for line in describe_device(result))]
    write_text(FOLDER / "summary.md", *lines)
    return "\n".join(lines)


def describe_device(result: dict[str, Any]) -> Iterator[str]:
    """Write the lines about a device."""
    machine = result["machine"]
    rows = [row for row in result["rows"] if "error" not in row]
    yield f"## {result['device']}\n"
    yield (
        f"{machine['processor']}, {machine['cores']} cores, kernelcast "
        f"{machine['versions']['kernelcast']}, {machine['date']}; load {machine['load_1_min']} "
        "when it began.\n"
    )
    if rows:
        yield from make_table(
            ["launches", "number", "median error", "near", "bias", "holds", "first run",
             "second run"],
            list_lengths(rows),
        )  # fmt: skip
        factors = dict(zip((row["name"] for row in rows), compare(rows, "answer"), strict=True))
        worst = sorted(rows, key=lambda row: -abs(np.log(factors[row["name"]])))[:WORST]
        yield ""
        yield from make_table(
            ["farthest off", "measured", "told by measured", "interval", "spread of whole runs"],
            (
                (row["name"], f"{1e3 * row['whole']['measured_s']:.3g} ms",
                 f"{factors[row['name']]:.2f}",
                 " to ".join(f"{row['answer'][end] / row['whole']['measured_s']:.2f}"
                             for end in ("low_s", "high_s")),
                 f"{row['whole']['spread']:.2f}")
                for row in worst
            ),
        )  # fmt: skip
        yield ""
        yield from describe_static(rows)
    else:
        yield "No kernel was measured.\n"
    for row in result["rows"]:
        if "error" in row:
            yield f"No answer: {row['name']}, {row['error']}\n"


def list_lengths(rows: Sequence[Row]) -> Iterator[tuple[object, ...]]:
    """List scores by length of the launch."""
    for name, (least_s, most_s) in LENGTHS.items():
        chosen = [row for row in rows if least_s <= row["whole"]["measured_s"] < most_s]
        if chosen:
            factors = compare(chosen, "answer")
            runs = (
                ", ".join(score([row["whole"][key] / row["whole"]["measured_s"] for row in chosen]))
                for key in ("first_s", "second_s")
            )
            holds = percent(share_held(chosen, "answer"))
            yield (name, len(chosen), *score(factors), f"{np.median(factors):.2f}", holds, *runs)


def describe_static(rows: Sequence[Row]) -> Iterator[str]:
    """Say in one line how answers that run nothing do."""
    asked = [row for row in rows if "static" in row]
    answered = [row for row in asked if "error" not in row["static"]]
    if not asked:
        yield "Static answers: none, the device was not calibrated.\n"
    elif not answered:
        yield f"Static answers: for none of {len(asked)}.\n"
    else:
        factors = compare(answered, "static")
        error, near = score(factors)
        yield (
            f"Static answers, calibrated: for {len(answered)} of {len(asked)}; median error "
            f"{error}, near {near}, bias {np.median(factors):.2f}, "
            f"holds {percent(share_held(answered, 'static'))}.\n"
        )


def compare(rows: Iterable[Row], key: str) -> list[float]:
    """Divide what was told by what was measured."""
    return [row[key]["told_s"] / row["whole"]["measured_s"] for row in rows]


def share_held(rows: Sequence[Row], key: str) -> float:
    """Compute the share of intervals that hold what was measured."""
    held = [row[key]["low_s"] <= row["whole"]["measured_s"] <= row[key]["high_s"] for row in rows]
    return float(np.mean(held))


def score(factors: Sequence[float]) -> tuple[str, str]:
    """Write median error and share of those that are near."""
    near = [1 / NEAR <= factor <= NEAR for factor in factors]
    return percent(float(np.median(np.abs(np.array(factors) - 1)))), percent(sum(near) / len(near))


if __name__ == "__main__":
    main()
