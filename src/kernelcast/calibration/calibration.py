"""Measures what a device can do: one microbenchmark after the other, each in its own process."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from kernelcast.calibration.machine_merge import merge_machines
from kernelcast.calibration.store import CalibrationStore, open_store
from kernelcast.calibration.task import BenchmarkTask
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
from kernelcast.records.machine import MachineDescription
from kernelcast.sampling.microbenchmarks.bench import BenchmarkResult, Effort
from kernelcast.sampling.microbenchmarks.suite import suite
from kernelcast.workers import Task, run_isolated

__all__ = [
    "Calibration", "CalibrationSettings", "Effort", "Progress", "calibrate_device",
    "list_benchmarks",
]  # fmt: skip

_BENCHMARK = Task(entry="kernelcast.calibration.task:run_benchmark", returns=BenchmarkResult)
# A microbenchmark that takes so long hangs, in seconds.
_TIMEOUTS_S = {Effort.QUICK: 120.0, Effort.NORMAL: 300.0, Effort.FULL: 900.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSettings:
    """How a calibration is made."""

    effort: Effort = Effort.NORMAL
    only: tuple[str, ...] = ()
    """Microbenchmarks to run; all when empty."""
    is_fresh: bool = False
    """Whether to measure again what an interrupted calibration has measured."""
    output: Path | None = None
    """The file to write; None means the user's data folder."""

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
    """Microbenchmarks."""
    total: int
    """Of so many."""
    title: str
    """What is measured now."""
    stage: str = ""
    """What its process does."""
    remaining_s: float | None = None
    """How long the rest will take, by how long it took before, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Outcome of a calibration."""

    machine: MachineDescription
    path: Path
    durations_s: Mapping[str, float]
    """How long each microbenchmark took that ran now, in seconds."""
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
