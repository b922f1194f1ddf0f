"""Performance models of StarPU: where their times come from, their text, and where it is written.

Times are estimates, observations, or the caller's own. Source of the text: StarPU 1.3.10,
`src/core/perfmodel/perfmodel_history.c` (`dump_model_file` writes format 45, `parse_model_file`
reads it; alpha and beta of the power law are from sums over logarithms) and `regression.c` (a, b,
c). Times are in microseconds there, sizes in bytes.
"""

import json
import math
import os
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from statistics import NormalDist, linear_regression
from typing import Any

from scipy.optimize import minimize_scalar

from kernelcast.launches.devices import choose_devices
from kernelcast.launches.settings import EstimateSettings
from kernelcast.models.linear import fit_linear, make_interval
from kernelcast.predictor.answering.launch_history import LaunchHistory, see
from kernelcast.predictor.estimates import estimate_on_devices
from kernelcast.records.contention import DEFAULT_COVERAGE
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.estimates import Interval
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.observation import ObservationFlag
from kernelcast.records.private_files import writing, written_whole
from kernelcast.records.problem import digest_arguments
from kernelcast.records.samples import SampleRun, TimedLaunch
from kernelcast.scheduling.starpu.codelets import Wanted, Worker, parse_worker
from kernelcast.training_data.store import Selection, Store

FORMAT = 45
"""``_STARPU_PERFMODEL_VERSION``: also the name of the folder."""
LEAST_SAMPLES = 10
"""``STARPU_CALIBRATE_MINIMUM``: with fewer, StarPU calibrates instead of believing."""
_MICROSECONDS = 1e6
_NEAR = 0.9
_LONGEST_PATH = 255
_HOMES = ("XDG_CACHE_HOME", "STARPU_HOME", "HOME")  # StarPU 1.3.10, src/common/utils.c
_RULE = "#" * 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedTime:
    seconds: float
    deviation_s: float = 0.0
    """Standard deviation, in seconds; 0 where it is not known."""
    origin: str
    """Where it comes from: an estimate's tier, ``store``, ``sampled``, ``given``."""
    device_id: str = ""
    """OpenCL device it is of; empty for others."""

    def __post_init__(self) -> None:
        if not (0 < self.seconds < math.inf and 0 <= self.deviation_s < math.inf):
            raise InputError(f"{self}: expected a time above 0, and no negative deviation")


Entry = tuple[Wanted, ExpectedTime]
"""How long tasks of a codelet and size take on a worker."""
TimeSource = Callable[[Wanted], ExpectedTime | None]
"""Tells a time; None where it knows none."""


def read_estimates(paths: Sequence[Path]) -> TimeSource:
    """Read what ``kernelcast estimate --json`` has written."""
    answers: list[Mapping[str, Any]] = []
    for path in paths:
        content = read_list(path, "estimates")
        if not all("kernel" in one and "device_id" in one for one in content):
            msg = f"{path}: holds no estimates; give what `kernelcast estimate --json` prints"
            raise InputError(msg)
        answers += content
    used: dict[int, str] = {}

    def find(wanted: Wanted) -> ExpectedTime | None:
        problem = wanted.problem
        if problem is None:
            return None
        found = [
            one
            for one in answers
            if one["kernel"] == problem.kernel.name
            and one.get("problem", problem.name) == problem.name
            and one.get("global_size") == list(problem.ndrange.global_size)
            and str(one["device_id"]).startswith(wanted.device_id)
        ]
        if not found:
            return None
        _refuse_several(wanted, "estimates", {str(one["device_id"]) for one in found})
        answer = found[-1]
        other = used.setdefault(id(answer), wanted.size)
        if other != wanted.size:
            raise InputError(
                f"{wanted.label}: the estimate for {other} has the same index space, so files of "
                "estimates cannot tell the two apart; let the export estimate, without --estimates"
            )
        numbers = {key: float(answer[key]) for key in ("seconds", "low", "high", "coverage")}
        return expect(Interval(**numbers), str(answer["tier"]), str(answer["device_id"]))

    return find


def recall_observed(store: Store) -> TimeSource:
    """Have what is believed of observations of the very launch, whatever the driver's version."""

    def find(wanted: Wanted) -> ExpectedTime | None:
        problem = wanted.problem
        if problem is None:
            return None
        selection = Selection(
            kernel_digests=(problem.kernel.digest,),
            devices=(wanted.device_id,) if wanted.device_id else (),
            without_flags=frozenset({ObservationFlag.CONTAMINATED}),
        )
        arguments = digest_arguments(problem.arguments, seed=0)  # contents of the usual seed
        asked = problem.ndrange
        found = []
        for one in store.find(selection):
            space = one.launch.ndrange
            if space is not None and one.launch.arguments_digest == arguments:
                is_local = asked.local_size is None or space.local_size == asked.local_size
                if space.global_size == asked.global_size and is_local:
                    found.append(one)
        if not found:
            return None
        devices = {one.launch.device.id for one in found}
        _refuse_several(wanted, "observations", devices)
        history = LaunchHistory()
        for one in sorted(found, key=lambda one: (one.measured_at is not None, one.measured_at)):
            history.add(see(one))
        interval = history.answer(DEFAULT_COVERAGE)
        return None if interval is None else expect(interval, "store", devices.pop())

    return find


def _refuse_several(wanted: Wanted, what: str, devices: Collection[str]) -> None:
    if len(devices) > 1:
        names = ", ".join(sorted(devices))
        msg = f"{wanted.label}: {what} of several devices ({names}); name one by `device`"
        raise InputError(msg)


def read_times(paths: Sequence[Path]) -> TimeSource:
    """Read times of functions that are no OpenCL kernels: measured samples, or plain seconds."""
    times: dict[tuple[str, Worker, frozenset[tuple[str, float]]], ExpectedTime] = {}
    for path in paths:
        for number, one in enumerate(read_list(path, "times")):
            try:
                key = (
                    str(one["codelet"]),
                    parse_worker(str(one["worker"])),
                    _freeze(one["parameters"]),
                )
                if "samples" in one:
                    interval = extrapolate(
                        [
                            (int(s["first"]), int(s["units"]), float(s["seconds"]))
                            for s in one["samples"]
                        ],
                        units=int(one["units"]),
                    )
                    times[key] = expect(interval, "sampled")
                else:
                    times[key] = ExpectedTime(
                        seconds=float(one["seconds"]),
                        deviation_s=float(one.get("deviation_seconds", 0.0)),
                        origin="given",
                    )
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise InputError(
                    f"{path}: object {number} cannot be used ({error!r}); expected codelet, "
                    "worker, parameters, and seconds or units with samples"
                ) from error
    return lambda wanted: times.get((wanted.symbol, wanted.worker, _freeze(wanted.parameters)))


def estimate_now(settings: EstimateSettings, *, timeout_s: float) -> TimeSource:
    """Have a few work-groups of each kernel run on its device."""

    @cache
    def choose(device_id: str) -> list[DeviceDescription]:
        return choose_devices((device_id,) if device_id else ())

    def find(wanted: Wanted) -> ExpectedTime | None:
        if wanted.problem is None:
            return None
        devices = choose(wanted.device_id)
        if len(devices) != 1:
            names = ", ".join(one.id for one in devices)
            raise InputError(
                f"{wanted.label}: several devices could be meant ({names}); name one by "
                "`device` in the codelet file or by --device"
            )
        (found,) = estimate_on_devices(
            wanted.problem, devices, settings=settings, timeout_s=timeout_s
        )
        estimate = found.answer.estimate
        if estimate is None:
            # Exactly one of the two is there, see `DeviceAnswer`.
            raise found.answer.error or InputError(wanted.label)
        return expect(estimate.interval, str(estimate.tier), estimate.device_id)

    return find


def extrapolate(samples: Sequence[tuple[int, int, float]], *, units: int) -> Interval:
    """Predict the time of a loop from first pass, passes and seconds of stretches of it."""
    if not samples or units < 1:
        raise InputError(f"{len(samples)} samples of {units} passes: expected at least one of each")
    for first, count, _ in samples:
        if first < 0 or count < 1 or first + count > units:
            raise InputError(f"sample of passes {first} to {first + count}: the loop has {units}")
    try:
        run = SampleRun(
            kernel_digest="",
            device_id="cpu",
            ndrange=NDRange(global_size=(units,), local_size=(1,)),
            launches=tuple(
                TimedLaunch(
                    box=GroupBox(start=(first,), shape=(count,)),
                    window=number,
                    duration_s=seconds,
                )
                for number, (first, count, seconds) in enumerate(samples)
            ),
            launch_overhead_s=0.0,
            is_even=True,
        )
    except KernelcastError as error:
        raise InputError(f"samples of a loop: {error}") from error
    return make_interval(fit_linear(run), coverage=DEFAULT_COVERAGE)


def expect(interval: Interval, origin: str, device_id: str = "") -> ExpectedTime:
    """Expect the time of an interval, which holds the middle of a normal distribution."""
    width = NormalDist().inv_cdf((1 + interval.coverage) / 2)
    return ExpectedTime(
        seconds=interval.seconds,
        deviation_s=(interval.high - interval.low) / 2 / width,
        origin=origin,
        device_id=device_id,
    )


def read_list(path: Path, what: str) -> list[Mapping[str, Any]]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: the {what} cannot be read: {error}") from error
    if not isinstance(content, list) or not all(isinstance(one, dict) for one in content):
        raise InputError(f"{path}: holds no {what}; expected a JSON list of objects")
    return content


def _freeze(parameters: Mapping[str, Any]) -> frozenset[tuple[str, float]]:
    return frozenset((str(name), float(value)) for name, value in parameters.items())


def fit_power_law(entries: Sequence[Entry]) -> tuple[float, float] | None:
    """Fit ``time = alpha * size ** beta``; None of sizes within 10 %, which StarPU trusts not."""
    points = _list_points(entries)
    if points[0][0] >= _NEAR * points[-1][0]:
        return None
    try:
        return _line(points, 0.0)
    except OverflowError:
        return None


def fit_offset_power_law(entries: Sequence[Entry]) -> tuple[float, float, float] | None:
    """Fit ``time = a * size ** b + c`` in microseconds by the relative error of times; StarPU's own
    fit, by that of ``time - c``, weighs small sizes most."""
    points = sorted(dict(_list_points(entries)).items())
    if len(points) < 3 or points[0][0] >= _NEAR * points[-1][0]:
        return None
    least = min(time for _, time in points)

    def error_of(offset: float) -> float:
        a, b = _line(points, offset)
        return sum((math.log((a * size**b + offset) / time)) ** 2 for size, time in points)

    try:
        found = minimize_scalar(
            error_of, bounds=(0.0, 0.99 * least), method="bounded", options={"xatol": 1e-12 * least}
        )
        offset = min((0.0, float(found.x)), key=error_of)
        return *_line(points, offset), offset
    except (OverflowError, ValueError):  # a or a power of a size leaves the range of numbers
        return None


def _list_points(entries: Sequence[Entry]) -> list[tuple[int, float]]:
    """List sizes in bytes and times in microseconds, smallest sizes first."""
    return sorted((wanted.size_bytes, time.seconds * _MICROSECONDS) for wanted, time in entries)


def _line(points: Sequence[tuple[int, float]], offset: float) -> tuple[float, float]:
    """Give a and b for one c, by least squares over logarithms."""
    b, start = linear_regression(
        [math.log(size) for size, _ in points], [math.log(time - offset) for _, time in points]
    )
    return math.exp(start), b


def write_model(entries: Sequence[Entry], samples: int = LEAST_SAMPLES) -> str:
    """Write a codelet's times, each as so many measurements."""
    by_worker: dict[Worker, list[Entry]] = {}
    for entry in entries:
        by_worker.setdefault(entry[0].worker, []).append(entry)
    kinds = groupby(sorted(by_worker), key=lambda one: (one.kind, one.device))
    by_device = [(kind, device, list(workers)) for (kind, device), workers in kinds]
    lines = [_RULE, "# Performance Model Version", str(FORMAT), "", _RULE, "# COMBs",
             "# number of combinations", str(len(by_device))]  # fmt: skip
    for number, (kind, device, workers) in enumerate(by_device):
        lines += [
            _RULE, f"# COMB_{number}", "# number of types devices", "1",
            _RULE, "# DEV_0", "# device type (CPU - 0, CUDA - 1, OPENCL - 2)", str(int(kind)),
            _RULE, "# DEV_0", "# device id", str(device),
            _RULE, "# DEV_0", "# number of cores", "1",
        ]  # fmt: skip
        # Every implementation up to the last one that has times; those between have none.
        count = 1 + max(one.implementation for one in workers)
        lines += ["#" * 10, "# number of implementations", str(count)]
        for implementation in range(count):
            worker = Worker(kind=kind, device=device, implementation=implementation)
            lines += ["#####", f"# Model for {worker} (Comb{number})"]
            lines += _write_entries(by_worker.get(worker, ()), samples)
    return "\n".join(lines) + "\n"


def _write_entries(entries: Sequence[Entry], samples: int) -> list[str]:
    lines = ["# number of entries", str(len(entries))]
    lines.append("# sumlnx\tsumlnx2\t\tsumlny\t\tsumlnxlny\talpha\t\tbeta\t\tn\tminx\t\tmaxx")
    reals, counts, curve = [*(0.0,) * 4, *(math.nan,) * 2], (0, 0, 0), None
    if entries:
        points = _list_points(entries)
        logs = [(math.log(size), math.log(time)) for size, time in points]
        # Sums over samples of x, x², y and xy, x the logarithm of the size and y of the time.
        products = zip(*((x, x * x, y, x * y) for x, y in logs), strict=True)
        sums = [samples * math.fsum(one) for one in products]
        reals = [*sums, *(fit_power_law(entries) or (math.nan, math.nan))]
        counts = (samples * len(entries), points[0][0], points[-1][0])
        curve = fit_offset_power_law(entries)
    lines.append("\t".join([*map(_real, reals), str(counts[0]), *(f"{n:<15}" for n in counts[1:])]))
    lines += ["# a\t\tb\t\tc", "\t".join(map(_real, curve or (math.nan,) * 3))]
    lines += ["# not multiple-regression-base", "0"]
    lines.append("# hash\t\tsize\t\tflops\t\tmean (us)\tdev (us)\tsum\t\tsum2\t\tn")
    for wanted, time in entries:  # their sums are those that give its mean and deviation
        mean = time.seconds * _MICROSECONDS
        deviation = time.deviation_s * _MICROSECONDS
        squares = samples * (deviation**2 + mean**2)
        columns = "\t".join(map(_real, (wanted.flops, mean, deviation, mean * samples, squares)))
        lines.append(f"{wanted.footprint:08x}\t{wanted.size_bytes:<15}\t{columns}\t{samples}")
    return [*lines, ""]


def _real(value: float) -> str:
    """Write a number as StarPU does, which reads nan apart."""
    return "nan" if math.isnan(value) else f"{value:<15e}"


def save_model(
    entries: Sequence[Entry],
    folder: Path | None = None,
    *,
    host: str | None = None,
    samples: int = LEAST_SAMPLES,
) -> Path:
    """Write a codelet's file into StarPU's folder of measurements, which the environment names
    unless it is given, as is the name that this machine's files have."""
    if folder is None:
        named = os.environ.get("STARPU_PERF_MODEL_DIR")
        home = next(filter(None, map(os.environ.get, _HOMES)), None)
        if not named and home is None:
            given = ", ".join(("STARPU_PERF_MODEL_DIR", *_HOMES))
            raise InputError(f"StarPU's folder is not known: none of {given} is set")
        folder = Path(named) if named else Path(home or "") / ".starpu" / "sampling"
    if not host:
        host = os.environ.get("STARPU_HOSTNAME") or socket.gethostname().partition(".")[0]
    path = folder / "codelets" / str(FORMAT) / f"{entries[0][0].symbol}.{host}"
    if len(str(path.absolute())) > _LONGEST_PATH:
        msg = f"{path}: StarPU reads paths of up to {_LONGEST_PATH} letters; shorten the folder"
        raise InputError(msg)
    with writing(path, "the performance model"):
        path.parent.mkdir(parents=True, exist_ok=True)
        # In one step: a StarPU program that starts meanwhile finds the old file or the new one.
        with written_whole(path) as partial:
            partial.write_text(write_model(entries, samples), encoding="ascii")
    return path
