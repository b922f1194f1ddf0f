"""Calibrates a device: each microbenchmark in a process of its own, kept until all are done."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import partial, reduce
from importlib.metadata import version
from pathlib import Path
from statistics import mean
from typing import Any

from kernelcast.launches.data_folder import data_folder
from kernelcast.launches.machines import machine_path, read_machine, write_machine
from kernelcast.records.device import DeviceDescription, Progress, Trait, TraitSource
from kernelcast.records.errors import (
    BrokenDeviceError,
    InputError,
    KernelcastError,
    KernelRunError,
    MachineFileError,
)
from kernelcast.records.machine import (
    INSTRUCTIONS,
    SPACES,
    CacheFacts,
    Curve,
    InstructionFacts,
    MachineDescription,
    MemoryFacts,
)
from kernelcast.records.plain import pick
from kernelcast.records.private_files import write_private
from kernelcast.sampling.microbenchmarks import memories, operations
from kernelcast.sampling.microbenchmarks.bench import Bench, BenchmarkResult
from kernelcast.sampling.microbenchmarks.bench import Effort as Effort  # for callers
from kernelcast.sampling.session import open_device
from kernelcast.workers import Task, run_isolated
from kernelcast.workers.wire import encode, structure

SUITE: Mapping[str, tuple[str, Callable[[Bench, BenchmarkResult], None]]] = {
    **{
        f"instructions-{kind.name}": (
            f"occupancy roofline, peak and latencies of {kind.name}",
            partial(operations.measure_instruction, kind=kind),
        )
        for kind in operations.INSTRUCTIONS
    },
    "clock": ("clock, by instructions or by the device's cycles", operations.measure_clock),
    "divergence": ("branches that neighbours do not share", operations.measure_divergence),
    "atomics": ("atomic additions", operations.measure_atomics),
    "barrier": ("barriers", operations.measure_barriers),
    "dispatch": ("starting work-groups", operations.measure_dispatch),
    "launch": ("launching kernels", operations.measure_launch),
    "caches": ("cache sizes, latencies and bandwidths", memories.measure_caches),
    "latency": ("local, constant and private memory", memories.measure_spaces),
    "gathers": ("loads at unrelated addresses", operations.measure_gathers),
    "bandwidth": ("global memory, loads and copies", memories.measure_bandwidth),
    "transfers": ("between host and device", memories.measure_transfers),
}
"""Titles of all microbenchmarks and what runs them, by their stable names, in their order; a number
that cannot be vouched for goes into `not_obtained`."""
# A number of a higher rank is kept when one of a lower rank arrives later.
_RANKS = {
    TraitSource.ASSUMED: 0,
    TraitSource.COMPUTED: 1,
    TraitSource.REPORTED: 2,
    TraitSource.PUBLISHED: 2,
    TraitSource.MEASURED: 3,
}


_IDENTITY = ("id", "name", "kind", "platform", "driver")


def merge_machines(known: MachineDescription, added: MachineDescription) -> MachineDescription:
    # The names under which a microbenchmark would list what is there now as missing.
    obtained = {*added.costs, *(curve.name for curve in added.curves)}
    for instruction in added.instructions:
        obtained |= {instruction.name, f"instructions/{instruction.name}"}
        if instruction.peak_per_s is not None:
            obtained.add(f"peak/{instruction.name}")
    for section, facts in (("caches", added.caches), ("memories", added.memories)):
        for fact in facts:
            name = _name(fact)
            told = (member.name for member in fields(fact) if getattr(fact, member.name))
            obtained |= {name, f"{section}/{name}"} | {f"{section}/{name}/{one}" for one in told}
    missing = {name: why for name, why in known.not_obtained.items() if name not in obtained}
    joined: MachineDescription = _merge(known, added)
    return replace(
        joined,
        **pick(known, *_IDENTITY),
        instructions=tuple(
            sorted(joined.instructions, key=lambda one: INSTRUCTIONS.index(one.name))
        ),
        caches=tuple(sorted(joined.caches, key=_name)),
        memories=tuple(sorted(joined.memories, key=lambda one: SPACES.index(one.space))),
        not_obtained={**missing, **added.not_obtained},
    )


def _merge(old: Any, new: Any) -> Any:  # noqa: ANN401 - of any field
    """Join values: facts of a name and mappings entry by entry; the new one of others, unless it
    is a number that is less certain."""
    if new is None or new == "":
        return old
    if old is None:
        return new
    if isinstance(new, Trait):
        return new if _RANKS[new.source] >= _RANKS[old.source] else old
    if isinstance(new, Mapping):
        return {**old, **{key: _merge(old.get(key), value) for key, value in new.items()}}
    if isinstance(new, tuple):
        by_name = {_name(one): one for one in old}
        by_name |= {_name(one): _merge(by_name.get(_name(one)), one) for one in new}
        return tuple(by_name.values())
    if isinstance(new, MachineDescription | InstructionFacts | CacheFacts | MemoryFacts):
        pairs = ((one.name, getattr(old, one.name), getattr(new, one.name)) for one in fields(new))
        return replace(new, **{name: _merge(*values) for name, *values in pairs})
    return new


def _name(fact: InstructionFacts | CacheFacts | MemoryFacts | Curve) -> str:
    return fact.space if isinstance(fact, MemoryFacts) else fact.name


class _Kept:
    """What an unfinished calibration has measured: a machine description per microbenchmark."""

    def __init__(self, device: DeviceDescription, effort: Effort, *, is_fresh: bool) -> None:
        self._folder = data_folder() / "calibrations" / device.id / str(effort)
        self._of = {"driver": device.driver, "kernelcast": version("kernelcast")}
        self.parts: dict[str, MachineDescription] = {}
        self.durations_s: dict[str, float] = {}
        """Of the last time that each ran, also of calibrations that were finished."""
        # What is damaged is measured again.
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, MachineFileError):
            known = json.loads((self._folder / "state.json").read_text(encoding="utf-8"))
            self.durations_s = {str(name): float(x) for name, x in known["durations_s"].items()}
            if known["of"] == self._of and not is_fresh:
                self.parts = {one.stem: read_machine(one) for one in self._folder.glob("*.yaml")}
        self.forget([one.stem for one in self._folder.glob("*.yaml") if one.stem not in self.parts])
        self._save()

    def add(self, name: str, part: MachineDescription, duration_s: float) -> None:
        """Keep what a microbenchmark has found, unless no file may hold it."""
        path = self._folder / f"{name}.yaml"
        write_machine(path, part)
        self.parts[name], self.durations_s[name] = read_machine(path), duration_s
        self._save()

    def forget(self, names: Sequence[str]) -> None:
        for name in names:
            self.parts.pop(name, None)
            (self._folder / f"{name}.yaml").unlink(missing_ok=True)

    def _save(self) -> None:
        path = self._folder / "state.json"
        content = {"of": self._of, "durations_s": self.durations_s}
        try:
            write_private(path, json.dumps(content, indent=1).encode())
        except OSError as error:
            raise InputError(
                f"{path}: the calibration cannot be kept: {error.strerror or error}; "
                "name another folder by KERNELCAST_DATA"
            ) from error


def run_benchmark(task: tuple[str, str, Effort], report: Callable[[str], None]) -> BenchmarkResult:
    name, device_id, effort = task
    report("opening the device")
    session = open_device(device_id)
    report("measuring")
    result = BenchmarkResult(name=name)
    with session.lock:
        SUITE[name][1](Bench(session, effort), result)
    return result


_BENCHMARK = Task(entry="kernelcast.calibration.calibration:run_benchmark", returns=BenchmarkResult)
# A microbenchmark that takes so long hangs, in seconds.
_TIMEOUTS_S = {Effort.QUICK: 120.0, Effort.NORMAL: 300.0, Effort.FULL: 900.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSettings:
    effort: Effort = Effort.NORMAL
    only: tuple[str, ...] = ()
    is_fresh: bool = False
    """Whether to measure again what an interrupted calibration has measured."""
    output: Path | None = None

    def __post_init__(self) -> None:
        for name in self.only:
            if name not in SUITE:
                msg = f"there is no microbenchmark {name!r}; there are: {', '.join(SUITE)}"
                raise InputError(msg)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in SUITE if not self.only or name in self.only)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    machine: MachineDescription
    path: Path
    durations_s: Mapping[str, float]
    resumed: tuple[str, ...]
    """Those that an earlier, interrupted calibration had run."""
    failed: Mapping[str, str]
    """Those that crashed, hung or gave up, and why."""


def list_benchmarks() -> dict[str, str]:
    return {name: title for name, (title, _) in SUITE.items()}


def calibrate_device(
    device: DeviceDescription,
    settings: CalibrationSettings,
    *,
    report: Callable[[Progress], None] = lambda _: None,
) -> Calibration:
    """Measure a device and write its machine description."""
    path, effort = settings.output or machine_path(device.id), settings.effort
    kept = _Kept(device, effort, is_fresh=settings.is_fresh)
    told = ("compute_units", "max_work_group_size", "local_memory_bytes")
    reported = {
        name: Trait(value=value, source=TraitSource.REPORTED, origin="the OpenCL driver")
        for name in told
        if (value := getattr(device, name)) > 0
    }
    machine = _describe(device, **reported)
    if settings.only and path.is_file():
        known = read_machine(path)
        if (known.id, known.driver) == (device.id, device.driver):
            # Why a microbenchmark failed then is told no more if it works now.
            others = {name: why for name, why in known.not_obtained.items()
                      if name not in settings.only}  # fmt: skip
            machine = merge_machines(replace(known, not_obtained=others), machine)
    waiting = [name for name in settings.names if name not in kept.parts]
    resumed = tuple(name for name in settings.names if name in kept.parts)
    durations_s: dict[str, float] = {}
    for done, name in enumerate(waiting):
        # As long as last time is expected; for those that never ran, as long as the others.
        usual_s = mean(kept.durations_s.values()) if kept.durations_s else None
        remaining_s = usual_s and sum(kept.durations_s.get(one, usual_s) for one in waiting[done:])
        progress = Progress(
            device_id=device.id, done=len(resumed) + done, total=len(settings.names),
            title=SUITE[name][0], remaining_s=remaining_s,
        )  # fmt: skip
        report(progress)
        begin_s = time.monotonic()
        part = _measure(device, name, effort, progress, report)
        durations_s[name] = time.monotonic() - begin_s
        try:
            kept.add(name, part, durations_s[name])
        except MachineFileError as error:
            kept.add(name, _describe(device, not_obtained={name: str(error)}), durations_s[name])
    parts = {name: kept.parts[name] for name in settings.names}
    failed = {
        name: one.not_obtained[name] for name, one in parts.items() if name in one.not_obtained
    }
    if failed.keys() == parts.keys():
        kept.forget(settings.names)
        reason = next(iter(failed.values()))
        raise KernelRunError(f"{device.id}: no microbenchmark succeeded; the first said: {reason}")
    machine = reduce(merge_machines, parts.values(), machine)
    machine = replace(machine, calibrated_on=datetime.now(UTC).date().isoformat())
    write_machine(path, machine)
    kept.forget(settings.names)
    return Calibration(
        machine=machine, path=path, durations_s=durations_s, resumed=resumed, failed=failed
    )


def _measure(
    device: DeviceDescription, name: str, effort: Effort, progress: Progress,
    report: Callable[[Progress], None],
) -> MachineDescription:  # fmt: skip
    try:
        result = run_isolated(
            _BENCHMARK,
            (name, device.id, effort),
            timeout_s=_TIMEOUTS_S[effort],
            subject=device.id,
            report=lambda stage: report(replace(progress, stage=stage)),
        )
    except BrokenDeviceError:
        raise  # every other microbenchmark would say the same
    except KernelcastError as error:
        return _describe(device, not_obtained={name: str(error)})
    # Readable numbers: no measurement is more exact than six digits.
    plain = json.loads(encode(result), parse_float=lambda text: float(f"{float(text):.6g}"))
    rounded = structure(plain, BenchmarkResult)
    facts = (one.name for one in fields(result) if one.name != "name")
    return _describe(device, **{name: getattr(rounded, name) for name in facts})


def _describe(device: DeviceDescription, **found: Any) -> MachineDescription:  # noqa: ANN401 - fields
    return MachineDescription(**pick(device, *_IDENTITY), **found)
