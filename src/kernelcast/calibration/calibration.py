"""Calibrates a device: each microbenchmark in a process of its own, kept until all are done."""

import json
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from kernelcast.launches.data_folder import data_folder
from kernelcast.launches.machine_file import read_machine, write_machine
from kernelcast.launches.machine_parts import (
    describe_failure,
    describe_reported,
    describe_result,
)
from kernelcast.launches.machines import machine_path
from kernelcast.records.device import DeviceDescription
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
    InstructionFacts,
    MachineDescription,
    MemoryFacts,
)
from kernelcast.records.private_files import write_private
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.microbenchmarks.bench import Bench, BenchmarkResult, Effort
from kernelcast.sampling.microbenchmarks.suite import suite
from kernelcast.sampling.session import open_session
from kernelcast.workers import Task, run_isolated

Facts = TypeVar("Facts", InstructionFacts, CacheFacts, MemoryFacts)
Record = TypeVar("Record", InstructionFacts, CacheFacts, MemoryFacts, MachineDescription)
Key = TypeVar("Key", bound=Hashable)

# A number of a higher rank is kept when one of a lower rank arrives later.
_RANKS = {
    TraitSource.ASSUMED: 0,
    TraitSource.COMPUTED: 1,
    TraitSource.REPORTED: 2,
    TraitSource.PUBLISHED: 2,
    TraitSource.MEASURED: 3,
}


def merge_machines(known: MachineDescription, added: MachineDescription) -> MachineDescription:
    """Add what a second description says to a first."""
    joined = _merge_fields(known, added, skip=("id", "name", "kind", "platform", "driver"))
    missing = {**_still_missing(known.not_obtained, added), **added.not_obtained}
    return replace(
        joined,
        instructions=_merge_facts(
            known.instructions, added.instructions, lambda one: INSTRUCTIONS.index(one.name)
        ),
        caches=_merge_facts(known.caches, added.caches, lambda one: one.name),
        memories=_merge_facts(known.memories, added.memories, lambda one: SPACES.index(one.space)),
        curves=tuple({one.name: one for one in (*known.curves, *added.curves)}.values()),
        not_obtained=missing,
    )


def _merge_facts(
    known: Iterable[Facts], added: Iterable[Facts], order: Callable[[Facts], Any]
) -> tuple[Facts, ...]:
    """Join facts of the same name, in a fixed order."""
    by_place = {order(one): one for one in known}
    for one in added:
        place = order(one)
        old = by_place.get(place)
        by_place[place] = one if old is None else _merge_fields(old, one)
    return tuple(by_place[place] for place in sorted(by_place))


def _merge_fields(known: Record, added: Record, *, skip: tuple[str, ...] = ()) -> Record:
    changes: dict[str, Any] = {}
    for one in fields(known):
        old, new = getattr(known, one.name), getattr(added, one.name)
        if one.name in skip or isinstance(new, tuple):
            continue
        if isinstance(new, Mapping):
            changes[one.name] = _merge_mapping(old, new)
        elif new not in {None, ""} and _is_at_least_as_good(new, old):
            changes[one.name] = new
    return replace(known, **changes)


def _merge_mapping(known: Mapping[Key, Any], added: Mapping[Key, Any]) -> dict[Key, Any]:
    better = {
        key: value for key, value in added.items() if _is_at_least_as_good(value, known.get(key))
    }
    return {**known, **better}


def _is_at_least_as_good(new: object, old: object) -> bool:
    if not (isinstance(new, Trait) and isinstance(old, Trait)):
        return True
    return _RANKS[new.source] >= _RANKS[old.source]


def _still_missing(missing: Mapping[str, str], added: MachineDescription) -> Mapping[str, str]:
    obtained = {*_list_obtained(added)}
    return {name: reason for name, reason in missing.items() if name not in obtained}


def _list_obtained(machine: MachineDescription) -> Iterator[str]:
    """List the names under which a microbenchmark would list what is there as missing."""
    yield from machine.costs
    yield from (curve.name for curve in machine.curves)
    for instruction in machine.instructions:
        yield from (instruction.name, f"instructions/{instruction.name}")
        if instruction.peak_per_s is not None:
            yield f"peak/{instruction.name}"
    for section, facts in (("caches", machine.caches), ("memories", machine.memories)):
        for fact in facts:
            name = fact.name if isinstance(fact, CacheFacts) else fact.space
            yield from (name, f"{section}/{name}")
            told = (member.name for member in fields(fact) if getattr(fact, member.name))
            yield from (f"{section}/{name}/{member}" for member in told)


_STATE = "state.json"


@dataclass(slots=True, kw_only=True)
class CalibrationStore:
    """A folder with one machine description per microbenchmark that is done."""

    folder: Path
    driver: str
    kernelcast: str
    durations_s: dict[str, float] = field(default_factory=dict)

    def read(self, name: str) -> MachineDescription | None:
        """Give what a microbenchmark has found already; None if it has not run."""
        path = self._part(name)
        if not path.is_file():
            return None
        try:
            return read_machine(path)
        except MachineFileError:  # damaged: it is measured again
            return None

    def write(self, name: str, part: MachineDescription, duration_s: float) -> None:
        """Keep what a microbenchmark has found."""
        path = self._part(name)
        write_machine(path, part)
        try:
            read_machine(path)
        except MachineFileError:
            path.unlink()
            raise
        self.durations_s[name] = duration_s
        self.save_state()

    def clear(self, names: Iterable[str] | None = None) -> None:
        """Forget the parts of those names, or all."""
        paths = self.folder.glob("*.yaml") if names is None else map(self._part, names)
        for path in list(paths):
            path.unlink(missing_ok=True)

    def save_state(self) -> None:
        """Write versions and durations."""
        state = {
            "driver": self.driver,
            "kernelcast": self.kernelcast,
            "durations_s": self.durations_s,
        }
        path = self.folder / _STATE
        try:
            write_private(path, json.dumps(state, indent=1).encode())
        except OSError as error:
            msg = (
                f"{path}: the calibration cannot be kept: {error.strerror or error}; "
                "name another folder by KERNELCAST_DATA"
            )
            raise InputError(msg) from error

    def _part(self, name: str) -> Path:
        return self.folder / f"{name}.yaml"


def open_store(
    device: DeviceDescription, effort: Effort, *, is_fresh: bool = False
) -> CalibrationStore:
    """Open the store of a device and effort."""
    folder = data_folder() / "calibrations" / device.id / str(effort)
    state = _read_state(folder / _STATE)
    store = CalibrationStore(folder=folder, driver=device.driver, kernelcast=version("kernelcast"))
    store.durations_s = _read_durations(state)
    is_same = (state.get("driver"), state.get("kernelcast")) == (store.driver, store.kernelcast)
    if is_fresh or not is_same:
        store.clear()
    store.save_state()
    return store


def _read_state(path: Path) -> dict[str, object]:
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def _read_durations(state: dict[str, object]) -> dict[str, float]:
    found = state.get("durations_s")
    pairs = found.items() if isinstance(found, dict) else ()
    return {str(name): float(value) for name, value in pairs if isinstance(value, int | float)}


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkTask:
    """A microbenchmark to be run in a child process."""

    name: str
    device_id: str
    effort: Effort


def run_benchmark(task: BenchmarkTask, report: Callable[[str], None]) -> BenchmarkResult:
    """Run one microbenchmark on one device."""
    report("opening the device")
    session = open_session(*choose_device(task.device_id, find_devices()))
    benchmark = next(one for one in suite() if one.name == task.name)
    report("measuring")
    with session.lock:
        return benchmark.run(Bench(session, task.effort))


__all__ = [
    "Calibration", "CalibrationSettings", "Effort", "Progress", "calibrate_device",
    "list_benchmarks",
]  # fmt: skip

_BENCHMARK = Task(entry="kernelcast.calibration.calibration:run_benchmark", returns=BenchmarkResult)
# A microbenchmark that takes so long hangs, in seconds.
_TIMEOUTS_S = {Effort.QUICK: 120.0, Effort.NORMAL: 300.0, Effort.FULL: 900.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSettings:
    """How a calibration is made."""

    effort: Effort = Effort.NORMAL
    only: tuple[str, ...] = ()
    is_fresh: bool = False
    """Whether to measure again what an interrupted calibration has measured."""
    output: Path | None = None

    def __post_init__(self) -> None:
        titles = list_benchmarks()
        for name in self.only:
            if name not in titles:
                msg = f"there is no microbenchmark {name!r}; there are: {', '.join(titles)}"
                raise InputError(msg)

    @property
    def names(self) -> tuple[str, ...]:
        """Microbenchmarks to run, in the suite's order."""
        return tuple(name for name in list_benchmarks() if not self.only or name in self.only)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a calibration stands."""

    device_id: str
    done: int
    total: int
    title: str
    stage: str = ""
    remaining_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Outcome of a calibration."""

    machine: MachineDescription
    path: Path
    durations_s: Mapping[str, float]
    resumed: tuple[str, ...]
    """Those that an earlier, interrupted calibration had run."""
    failed: Mapping[str, str]
    """Those that crashed, hung or gave up, and why."""


def list_benchmarks() -> dict[str, str]:
    """Give each microbenchmark's title by its name, in the order in which they run."""
    return {one.name: one.title for one in suite()}


def calibrate_device(
    device: DeviceDescription,
    settings: CalibrationSettings,
    *,
    report: Callable[[Progress], None] = lambda _: None,
) -> Calibration:
    """Measure a device and write its machine description."""
    path = settings.output or machine_path(device.id)
    store = open_store(device, settings.effort, is_fresh=settings.is_fresh)
    run = _Run(device, settings, store, report)
    machine = _known_machine(device, path) if settings.only else describe_reported(device)
    for part in run.parts():
        machine = merge_machines(machine, part)
    if run.failed.keys() == set(settings.names):
        store.clear(settings.names)
        reason = next(iter(run.failed.values()))
        msg = f"{device.id}: no microbenchmark succeeded; the first said: {reason}"
        raise KernelRunError(msg)
    machine = replace(machine, calibrated_on=datetime.now(UTC).date().isoformat())
    write_machine(path, machine)
    store.clear(settings.names)
    return Calibration(
        machine=machine,
        path=path,
        durations_s=run.durations_s,
        resumed=tuple(run.resumed),
        failed=run.failed,
    )


class _Run:
    """A calibration at work."""

    def __init__(
        self,
        device: DeviceDescription,
        settings: CalibrationSettings,
        store: CalibrationStore,
        report: Callable[[Progress], None],
    ) -> None:
        self.device = device
        self.settings = settings
        self.store = store
        self.report = report
        self.durations_s: dict[str, float] = {}
        self.resumed: list[str] = []
        self.failed: dict[str, str] = {}

    def parts(self) -> Iterator[MachineDescription]:
        """Give what each microbenchmark found, now or before an interrupt."""
        known = {name: self.store.read(name) for name in self.settings.names}
        self.resumed = [name for name, part in known.items() if part is not None]
        waiting = [name for name, part in known.items() if part is None]
        titles = list_benchmarks()
        for name, part in known.items():
            if part is not None:
                if name in part.not_obtained:
                    self.failed[name] = part.not_obtained[name]
                yield part
                continue
            progress = Progress(
                device_id=self.device.id,
                done=len(known) - len(waiting),
                total=len(known),
                title=titles[name],
                remaining_s=self._expect(waiting),
            )
            yield self._measure(name, progress)
            waiting.remove(name)

    def _measure(self, name: str, progress: Progress) -> MachineDescription:
        """Run one microbenchmark and keep what it found, or why it found nothing."""
        started_s = time.monotonic()
        self.report(progress)
        try:
            part = self._ask(name, progress)
        except BrokenDeviceError:
            raise  # every other microbenchmark would say the same
        except KernelcastError as error:
            part = self._give_up(name, error)
        self.durations_s[name] = time.monotonic() - started_s
        try:
            self.store.write(name, part, self.durations_s[name])
        except MachineFileError as error:
            part = self._give_up(name, error)
            self.store.write(name, part, self.durations_s[name])
        return part

    def _ask(self, name: str, progress: Progress) -> MachineDescription:
        effort = self.settings.effort
        result = run_isolated(
            _BENCHMARK,
            BenchmarkTask(name=name, device_id=self.device.id, effort=effort),
            timeout_s=_TIMEOUTS_S[effort],
            subject=self.device.id,
            report=lambda stage: self.report(replace(progress, stage=stage)),
        )
        return describe_result(self.device, result)

    def _give_up(self, name: str, error: KernelcastError) -> MachineDescription:
        self.failed[name] = str(error)
        return describe_failure(self.device, name, str(error))

    def _expect(self, waiting: Sequence[str]) -> float | None:
        """Expect as long as last time; for those that never ran, as long as the others."""
        known_s = self.store.durations_s
        if not known_s:
            return None
        usual_s = sum(known_s.values()) / len(known_s)
        return sum(known_s.get(name, usual_s) for name in waiting)


def _known_machine(device: DeviceDescription, path: Path) -> MachineDescription:
    """Give the description that is there already, if this driver made it."""
    reported = describe_reported(device)
    if not path.is_file():
        return reported
    known = read_machine(path)
    is_same = (known.id, known.driver) == (device.id, device.driver)
    return merge_machines(known, reported) if is_same else reported
