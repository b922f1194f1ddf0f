"""Auto-tuners' results in the community's T4 format, with their input in the T1 format.

T1 says what was tuned: kernel, sizes as expressions, arguments. T4 says what came out: one entry
per configuration, with its run times or why it is invalid. Kernel Tuner, KTT and BAT write them;
the schemas are at https://github.com/odgaard/TuningSchema. T4 leaves the unit of run times open.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from kernelcast.records.arithmetic import evaluate_size
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.observation import FailureRecord, Observation, RunTimes, summarise_runs
from kernelcast.training_data.importers.tables import (
    GRID_FEATURES,
    ImportFileError,
    describe_grid,
    make_foreign,
    make_grid,
    number_repeats,
)
from kernelcast.training_data.store.connecting import refuse_database

UNITS: Mapping[str, float] = {
    "s": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "milliseconds": 1e-3, "us": 1e-6,
    "microseconds": 1e-6, "ns": 1e-9, "nanoseconds": 1e-9,
}  # fmt: skip
"""Seconds per unit, by the names in use."""
_NEWEST_MAJOR = 1
_VALID = "correct"
_AXES = "XYZ"
_SCHEMA = FeatureSchema(names=GRID_FEATURES, version=1)
# A mean and a median of the same runs agree within this factor; two units do not.
_SAME_UNIT = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningFiles:
    results: Path
    problem: Path | None = None
    """T1 file; without it sizes are absent and the kernel is called as the file."""
    device: str | None = None
    """Name of the device; needed where T1 does not say it."""
    time_unit: str | None = None
    """Unit of the run times, one of `UNITS`; needed where neither file says it."""


def read_tuning(files: TuningFiles) -> tuple[list[Observation], list[FailureRecord]]:
    """Read a tuner's results: launches that worked, and those that did not."""
    where = str(files.results)
    content = load_json(files.results)
    if not isinstance(content.get("results"), list):
        msg = f"{where}: has no list `results`; expected a tuner's output in the T4 format"
        raise ImportFileError(msg)
    version = str(content.get("schema_version", "1.0.0"))
    major = version.partition(".")[0]
    if not major.isdecimal() or int(major) > _NEWEST_MAJOR:
        msg = f"{where}: is T4 {version}, this kernelcast reads version {_NEWEST_MAJOR}"
        raise ImportFileError(msg)
    kernel, names, unit_s = _read_problem(files)
    observations: list[Observation] = []
    failures: list[FailureRecord] = []
    for number, entry in enumerate(content["results"]):
        try:
            one = _read_entry(entry, kernel, names, unit_s)
            (failures if isinstance(one, FailureRecord) else observations).append(one)  # type: ignore[arg-type]  # the list is chosen by the type
        except (KeyError, TypeError, ValueError, AttributeError, InputError) as error:
            said = str(error) if isinstance(error, InputError) else f"is no entry of T4 ({error!r})"
            raise ImportFileError(f"{where}: result {number}: {said}") from error
    return [*number_repeats(observations)], failures


def find_tuning_files(results: Path) -> TuningFiles:
    """Find the T1 file of a tuner's results: ``NAME.t1.json`` beside ``NAME.json``, if any."""
    problem = results.with_suffix(".t1.json")
    return TuningFiles(results=results, problem=problem if problem.is_file() else None)


def load_json(path: Path) -> dict[str, Any]:
    refuse_database(path, ImportFileError)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        msg = f"{path}: cannot be read as JSON ({error}); is it complete?"
        raise ImportFileError(msg) from error
    if not isinstance(content, dict):
        msg = f"{path}: holds a {type(content).__name__}; expected a JSON object of T1 or T4"
        raise ImportFileError(msg)
    return content


def _read_problem(
    files: TuningFiles,
) -> tuple[Mapping[str, Any], dict[str, str], float | None]:
    """Read what holds for all configurations: T1's kernel, names, and seconds per unit of times."""
    content = {} if files.problem is None else load_json(files.problem)
    kernel = _section(content, "KernelSpecification")
    general = _section(content, "General")
    device = files.device or _section(kernel, "Device").get("Name")
    if not device:
        raise ImportFileError(
            f"{files.results}: does not say on which device it was measured; put a T1 file "
            f"{files.results.with_suffix('.t1.json').name} beside it, or name the device by "
            "`kernelcast data import --measured-on`"
        )
    unit = files.time_unit or general.get("TimeUnit")
    if unit is not None and str(unit).lower() not in UNITS:
        msg = f"{files.problem or files.results}: time unit {unit!r} is unknown"
        raise ImportFileError(f"{msg}; expected one of {', '.join(UNITS)}")
    names = {
        "suite": "t4", "source": "t4 (as the tuner's file)", "device": str(device),
        "kernel": str(kernel.get("KernelName") or files.results.stem),
        "application": str(kernel.get("BenchmarkName") or general.get("BenchmarkName") or ""),
    }  # fmt: skip
    return kernel, names, None if unit is None else UNITS[str(unit).lower()]


def _section(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = content.get(name)
    return found if isinstance(found, Mapping) else {}


def _read_entry(
    entry: Mapping[str, Any], kernel: Mapping[str, Any], names: Mapping[str, str],
    unit_s: float | None,
) -> Observation | FailureRecord:  # fmt: skip
    configuration = dict(entry["configuration"])
    is_valid = entry["invalidity"] == _VALID
    # A failure needs a launch and no time; this one is not kept.
    runs = _read_runs(entry, unit_s) if is_valid else RunTimes(median_s=1.0)
    ndrange = None
    with suppress(InputError):  # sizes are not given, or not understood
        ndrange = make_grid(*count_groups(kernel, configuration))
    found = make_foreign(
        {
            **names, "ndrange": ndrange, "seconds": runs.median_s,
            "parameters": {
                name: one if isinstance(one, int | float | str) else json.dumps(one)
                for name, one in sorted(configuration.items())
            },
        },
        {} if ndrange is None else describe_grid(ndrange),
        _SCHEMA,
    )  # fmt: skip
    found = replace(found, runs=runs)
    moment = None
    with suppress(ValueError):  # there may be none, or no time zone in it
        told = datetime.fromisoformat(str(entry.get("timestamp")))
        moment = told if told.tzinfo else None
    if is_valid:
        return replace(found, measured_at=moment)
    return FailureRecord(
        launch=found.launch,
        kind=str(entry["invalidity"]),
        message=f"the tuner found this configuration invalid: {entry['invalidity']}",
        failed_at=moment,
    )


def _read_runs(entry: Mapping[str, Any], unit_s: float | None) -> RunTimes:
    runtimes = [float(one) for one in entry["times"].get("runtimes") or ()]
    # The measured time that has a unit: the number, and seconds per unit.
    measured: tuple[float, float] | None = None
    for one in entry.get("measurements") or ():
        unit, value = str(one.get("unit", "")).lower(), one.get("value")
        if one.get("name") == "time" and unit in UNITS and isinstance(value, int | float):
            measured = float(value), UNITS[unit]
            break
    if not runtimes:
        if measured is None:
            msg = "has no run times; expected `times.runtimes` or a measurement called time"
            raise ImportFileError(msg)
        return RunTimes(median_s=measured[0] * measured[1])
    if unit_s is None and measured is not None:
        ratio = measured[0] / median(runtimes)
        unit_s = measured[1] if 1 / _SAME_UNIT < ratio < _SAME_UNIT else None
    if unit_s is None:
        msg = f"does not say the unit of its run times; give one of {', '.join(UNITS)}"
        raise ImportFileError(msg)
    return summarise_runs([one * unit_s for one in runtimes])


def read_problem_size(kernel: Mapping[str, Any]) -> list[int]:
    given = kernel.get("ProblemSize", ())
    return [given] if isinstance(given, int) else [int(one) for one in given]


def count_groups(
    kernel: Mapping[str, Any], configuration: Mapping[str, Any]
) -> tuple[list[int], list[int]]:
    """Count work-groups, and the work-items of each, along every axis that T1's kernel names."""
    problem_size = read_problem_size(kernel)
    known = {**configuration, "ProblemSize": problem_size}
    local, whole = kernel.get("LocalSize"), kernel.get("GlobalSize")
    if local is None:
        names = ("block_size_x", "block_size_y", "block_size_z")
        local = {
            axis: known[name] for axis, name in zip(_AXES, names, strict=True) if name in known
        }
    counts_groups = str(kernel.get("GlobalSizeType", "OpenCL")) != "OpenCL"
    if whole is None:
        # Work-groups as Kernel Tuner counts them: the problem over the grid's divisors.
        whole, counts_groups = {}, True
        for at, axis in enumerate(_AXES[: len(problem_size)]):
            divisors = kernel.get(f"GridDiv{axis}")
            if divisors is None:
                divisors = [str(local[axis])] if axis in local else []
            product_text = " * ".join(f"({one})" for one in divisors) or "1"
            whole[axis] = f"ceil(ProblemSize[{at}] / ({product_text}))"
    if not (whole and local):
        raise InputError("no sizes are given; expected GlobalSize or ProblemSize, and LocalSize")
    axes = [axis for axis in _AXES if axis in whole or axis in local]
    sizes = [evaluate_size(local.get(axis, 1), known) for axis in axes]
    counts = [evaluate_size(whole.get(axis, 1), known) for axis in axes]
    if not counts_groups:  # as Kernel Tuner does: the kernel guards what lies beyond
        counts = [-(-count // size) for count, size in zip(counts, sizes, strict=True)]
    return counts, sizes
