"""Performance models of StarPU: what it calls what we predict, where times come from, their text.

Codelet files are described in docs/how-to/starpu.md. StarPU files a task's time under a number, a
CRC over the sizes of its data: `src/common/hash.c` and `src/datawizard/footprint.c` of StarPU
1.3.10 and 1.4. Vectors and variables are told apart by their lengths alone there: two of different
element sizes may share an entry, as they do in StarPU's own files. The text of a model is as
`src/core/perfmodel/perfmodel_history.c` of StarPU 1.3.10 has it (`dump_model_file` writes format
45, `parse_model_file` reads it; alpha and beta of the power law are from sums over logarithms), and
`regression.c` (a, b, c). Times are in microseconds there, sizes in bytes.
"""

import json
import math
import os
import re
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache
from itertools import groupby
from pathlib import Path
from statistics import NormalDist, linear_regression
from typing import Any

from scipy.optimize import minimize_scalar

from kernelcast.launches.devices import choose_devices
from kernelcast.launches.problem_file import read_problem
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
from kernelcast.records.problem import Problem, digest_arguments
from kernelcast.records.samples import SampleRun, TimedLaunch
from kernelcast.records.yaml_files import Located, Number, load
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
_LARGEST_COUNT = 2**32 - 1
_MOST_IMPLEMENTATIONS = 4
"""``STARPU_MAXIMPLEMENTATIONS`` of Debian's build."""
_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORKER = re.compile(r"(?P<kind>cpu|cuda|opencl)(?P<device>\d*)(?:_impl(?P<implementation>\d))?")
_KEYS = ("data", "size_base", "footprint", "flops", "sizes", "workers")


class WorkerKind(IntEnum):
    """``enum starpu_worker_archtype``."""

    CPU = 0
    CUDA = 1
    OPENCL = 2


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Worker:
    kind: WorkerKind
    device: int = 0
    """StarPU's number of the device; 0 for every CPU core, which count as equal."""
    implementation: int = 0
    """Which of the codelet's functions for this kind."""

    def __str__(self) -> str:
        return f"{self.kind.name.lower()}{self.device}_impl{self.implementation}"


def parse_worker(text: str) -> Worker:
    match = _WORKER.fullmatch(text.strip().lower())
    if match is None:
        msg = f"worker {text!r}: expected cpu, openclN or cudaN, for example opencl0 or cpu0_impl1"
        raise InputError(msg)
    worker = Worker(
        kind=WorkerKind[match["kind"].upper()],
        device=int(match["device"] or 0),
        implementation=int(match["implementation"] or 0),
    )
    if worker.kind is WorkerKind.CPU and worker.device:
        raise InputError(f"worker {text!r}: StarPU has one model for all CPU cores; write cpu")
    if worker.implementation >= _MOST_IMPLEMENTATIONS:
        msg = f"worker {text!r}: StarPU numbers implementations 0 to {_MOST_IMPLEMENTATIONS - 1}"
        raise InputError(msg)
    return worker


# Numbers of dimensions, and of the interface, of data whose footprint depends on sizes alone.
_INTERFACES = {"vector": (1, 2), "matrix": (2, 0), "block": (3, 1), "variable": (0, 5)}


def hash_bytes(content: bytes, crc: int = 0) -> int:
    """Compute ``starpu_hash_crc32c_be_n``: CRC-32C, highest bit first, nothing inverted."""
    for byte in content:
        crc ^= byte << 24
        for _ in range(8):
            crc = ((crc << 1) & 0xFFFF_FFFF) ^ (0x1EDC6F41 if crc & 0x8000_0000 else 0)
    return crc


def hash_word(word: int, crc: int = 0) -> int:
    """Compute ``starpu_hash_crc32c_be`` of a 32-bit number, on little-endian machines."""
    return hash_bytes(word.to_bytes(4, "little"), crc)


def footprint_of_data(kind: str, counts: Sequence[int], element_bytes: int) -> int:
    """Compute what StarPU's handle of a piece of data has as its footprint: of elements per
    dimension, nx first, or of a variable's bytes."""
    if kind == "matrix":
        inner = hash_word(counts[0], counts[1])
    else:
        inner = 0
        for count in counts or (element_bytes,):
            inner = hash_word(count, inner)
    return hash_word(inner, _INTERFACES[kind][1])


def footprint_of_size_base(size: int) -> int:
    """Compute a task's footprint where the performance model has a ``size_base`` function."""
    return hash_bytes(size.to_bytes(8, "little"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSize:
    """Tasks of a codelet of one size on one worker, and how long they take once that is known."""

    symbol: str
    worker: Worker
    parameters: Mapping[str, Number]
    """What the size is called."""
    footprint: int
    size_bytes: int
    """Under what StarPU files it, and what its regressions are over."""
    flops: float
    """Operations of the task, 0 where the program does not tell StarPU."""
    device_id: str = ""
    """OpenCL device's id or its beginning, empty if any will do; of a time, whose it is."""
    problem: Problem | None = None
    """The kernel's launch; None for a function that is not OpenCL C."""
    seconds: float = 0.0
    deviation_s: float = 0.0
    """Standard deviation, in seconds; 0 where it is not known."""
    origin: str = ""
    """Where the time comes from: an estimate's tier, ``store``, ``sampled``, ``given``; empty where
    there is none yet."""

    def __post_init__(self) -> None:
        if self.origin and not (0 < self.seconds < math.inf and 0 <= self.deviation_s < math.inf):
            raise InputError(
                f"{self.label}: {self.seconds} s, deviation {self.deviation_s} s: expected a time "
                "above 0, and no negative deviation"
            )

    @property
    def size(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.parameters.items())

    @property
    def label(self) -> str:
        return f"{self.symbol} on {self.worker} at {self.size}"


def read_codelets(path: Path) -> dict[str, tuple[TaskSize, ...]]:
    """Read which times each codelet of a file needs, worker by worker."""
    whole = load(path, "codelet file", "it needs `codelets:`")
    root = whole.mapping(("codelets",), required=("codelets",))
    codelets = {name: _read_codelet(name, one) for name, one in root["codelets"].mapping().items()}
    if not codelets:
        root["codelets"].fail("names no codelet")
    return codelets


def _read_codelet(symbol: str, entry: Located) -> tuple[TaskSize, ...]:
    if not _SYMBOL.fullmatch(symbol):
        entry.fail(f"codelet {symbol!r}: expected letters, digits and underscores")
    fields = entry.mapping(_KEYS, required=("sizes", "workers"))
    parameters = [
        {name: value.number() for name, value in one.mapping().items()}
        for one in fields["sizes"].items()
    ]
    if not parameters:
        fields["sizes"].fail("expected at least one size, such as `- {N: 4096}`")
    found: list[TaskSize] = []
    for name, place in fields["workers"].mapping().items():
        with place.pointing_here():
            worker = parse_worker(name)
        path, device_id = None, ""
        if not place.is_null:
            keys = place.mapping(("problem", "device"), required=("problem",))
            path = keys["problem"].file()
            device_id = keys["device"].text() if "device" in keys else ""
        for one in parameters:
            problem = None if path is None else read_problem(path, parameters=one)
            footprint, size_bytes, flops = _read_size(entry, fields, one)
            found.append(TaskSize(
                symbol=symbol, worker=worker, parameters=one, footprint=footprint,
                size_bytes=size_bytes, flops=flops, device_id=device_id, problem=problem,
            ))  # fmt: skip
    if not found:
        fields["workers"].fail("expected at least one worker, such as `opencl0:`")
    if len({(one.worker, one.footprint) for one in found}) < len(found):
        entry.fail(
            "two sizes on a worker have one footprint; StarPU cannot tell them apart either, give "
            "the codelet a `size_base` or `footprint`"
        )
    return tuple(found)


def _read_size(
    entry: Located, fields: Mapping[str, Located], parameters: Mapping[str, Number]
) -> tuple[int, int, float]:
    """Read footprint, bytes and operations of a codelet's tasks of one size."""
    known = {key: replace(value, names=parameters) for key, value in fields.items()}
    data = [_read_data(one) for one in known["data"].items()] if "data" in known else []
    base = known["size_base"].integer(minimum=1) if "size_base" in known else None
    if not data and base is None:
        entry.fail("give `data`, the task's vectors and matrices, or `size_base`")
    if "footprint" in known:
        footprint = known["footprint"].integer(minimum=0)
        if footprint > _LARGEST_COUNT:
            known["footprint"].fail(f"expected 32 bits, found {footprint}")
    elif base is not None:
        footprint = footprint_of_size_base(base)
    else:  # StarPU's default
        footprint = 0
        for one, _ in data:
            footprint = hash_word(one, footprint)
    flops = float(known["flops"].number()) if "flops" in known else 0.0
    if not 0 <= flops < math.inf:
        known["flops"].fail(f"expected a number of at least 0, found {flops}")
    return footprint, sum(size for _, size in data) if base is None else base, flops


def _read_data(entry: Located) -> tuple[int, int]:
    fields = entry.mapping((*_INTERFACES, "element_bytes"))
    found = [one for one in _INTERFACES if one in fields]
    if len(found) != 1:
        entry.fail(f"expected one of {', '.join(_INTERFACES)}, found {len(found)}")
    kind, (wanted, _) = found[0], _INTERFACES[found[0]]
    counts = [one.integer(minimum=1) for one in fields[kind].list_some()]
    if len(counts) != max(1, wanted):
        entry.fail(f"a {kind} of {len(counts)} sizes: expected {max(1, wanted)}")
    if not wanted:  # the size of a variable is its bytes
        element_bytes = counts.pop()
    elif "element_bytes" in fields:
        element_bytes = fields["element_bytes"].integer(minimum=1)
    else:
        entry.fail("the key `element_bytes` is missing")
    if max(*counts, element_bytes, 1) > _LARGEST_COUNT:
        msg = f"a {kind} of sizes {(*counts, element_bytes)}: expected 1 to {_LARGEST_COUNT}"
        entry.fail(f"{msg} (32 bits)")
    return footprint_of_data(kind, counts, element_bytes), math.prod(counts) * element_bytes


Told = Mapping[str, Any]
"""Fields of a `TaskSize` that tell its time."""
TimeSource = Callable[[TaskSize], Told | None]
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

    def find(wanted: TaskSize) -> Told | None:
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
        return _expect(Interval(**numbers), str(answer["tier"]), str(answer["device_id"]))

    return find


def recall_observed(store: Store) -> TimeSource:
    """Have what is believed of observations of the very launch, whatever the driver's version."""

    def find(wanted: TaskSize) -> Told | None:
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
        return None if interval is None else _expect(interval, "store", devices.pop())

    return find


def _refuse_several(wanted: TaskSize, what: str, devices: Collection[str]) -> None:
    if len(devices) > 1:
        names = ", ".join(sorted(devices))
        msg = f"{wanted.label}: {what} of several devices ({names}); name one by `device`"
        raise InputError(msg)


def read_times(paths: Sequence[Path]) -> TimeSource:
    """Read times of functions that are no OpenCL kernels: measured samples, or plain seconds."""
    times: dict[tuple[str, Worker, frozenset[tuple[str, float]]], Told] = {}
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
                    times[key] = _expect(interval, "sampled")
                else:
                    times[key] = {
                        "seconds": float(one["seconds"]),
                        "deviation_s": float(one.get("deviation_seconds", 0.0)),
                        "origin": "given", "device_id": "",
                    }  # fmt: skip
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

    def find(wanted: TaskSize) -> Told | None:
        if wanted.problem is None:
            return None
        devices = choose(wanted.device_id)
        if len(devices) != 1:
            names = ", ".join(one.id for one in devices)
            raise InputError(
                f"{wanted.label}: several devices could be meant ({names}); name one by "
                "`device` in the codelet file or by --device"
            )
        [(answer, _)] = estimate_on_devices(
            wanted.problem, devices, settings=settings, timeout_s=timeout_s
        )
        estimate = answer.estimate
        if estimate is None:
            # Exactly one of the two is there, see `DeviceAnswer`.
            raise answer.error or InputError(wanted.label)
        return _expect(estimate.interval, str(estimate.tier), estimate.device_id)

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


def _expect(interval: Interval, origin: str, device_id: str = "") -> Told:
    """Tell the time of an interval, the middle of a normal distribution."""
    width = NormalDist().inv_cdf((1 + interval.coverage) / 2)
    return {
        "seconds": interval.seconds, "deviation_s": (interval.high - interval.low) / 2 / width,
        "origin": origin, "device_id": device_id,
    }  # fmt: skip


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


def fit_power_law(entries: Sequence[TaskSize]) -> tuple[float, float] | None:
    """Fit ``time = alpha * size ** beta``; None of sizes within 10 %, which StarPU trusts not."""
    points = _list_points(entries)
    if points[0][0] >= _NEAR * points[-1][0]:
        return None
    try:
        return _line(points, 0.0)
    except OverflowError:
        return None


def fit_offset_power_law(entries: Sequence[TaskSize]) -> tuple[float, float, float] | None:
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


def _list_points(entries: Sequence[TaskSize]) -> list[tuple[int, float]]:
    """List sizes in bytes and times in microseconds, smallest sizes first."""
    return sorted((one.size_bytes, one.seconds * _MICROSECONDS) for one in entries)


def _line(points: Sequence[tuple[int, float]], offset: float) -> tuple[float, float]:
    """Give a and b for one c, by least squares over logarithms."""
    b, start = linear_regression(
        [math.log(size) for size, _ in points], [math.log(time - offset) for _, time in points]
    )
    return math.exp(start), b


def write_model(entries: Sequence[TaskSize], samples: int = LEAST_SAMPLES) -> str:
    """Write a codelet's times, each as so many measurements."""
    by_worker: dict[Worker, list[TaskSize]] = {}
    for entry in entries:
        by_worker.setdefault(entry.worker, []).append(entry)
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


def _write_entries(entries: Sequence[TaskSize], samples: int) -> list[str]:
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
    for one in entries:  # their sums are those that give its mean and deviation
        mean = one.seconds * _MICROSECONDS
        deviation = one.deviation_s * _MICROSECONDS
        squares = samples * (deviation**2 + mean**2)
        columns = "\t".join(map(_real, (one.flops, mean, deviation, mean * samples, squares)))
        lines.append(f"{one.footprint:08x}\t{one.size_bytes:<15}\t{columns}\t{samples}")
    return [*lines, ""]


def _real(value: float) -> str:
    """Write a number as StarPU does, which reads nan apart."""
    return "nan" if math.isnan(value) else f"{value:<15e}"


def save_model(
    entries: Sequence[TaskSize],
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
    path = folder / "codelets" / str(FORMAT) / f"{entries[0].symbol}.{host}"
    if len(str(path.absolute())) > _LONGEST_PATH:
        msg = f"{path}: StarPU reads paths of up to {_LONGEST_PATH} letters; shorten the folder"
        raise InputError(msg)
    with writing(path, "the performance model"):
        path.parent.mkdir(parents=True, exist_ok=True)
        # In one step: a StarPU program that starts meanwhile finds the old file or the new one.
        with written_whole(path) as partial:
            partial.write_text(write_model(entries, samples), encoding="ascii")
    return path
