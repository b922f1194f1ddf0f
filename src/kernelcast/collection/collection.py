"""Collects rows: kernel by kernel, each on every device, one at a time, each in a child process.

What the child hands over is stored at once, whatever the device's driver does afterwards.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import fmean

from kernelcast.collection.settings import CollectionSettings
from kernelcast.collection.sizes import SizePlans
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import KernelcastError
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.observation import FailureRecord, Observation, ObservationFlag, read_sampler
from kernelcast.sampling.plan import SAMPLER
from kernelcast.training_data.applications import CorpusKernel
from kernelcast.training_data.store import Selection, Store, StoreError
from kernelcast.training_data.store.schema import load_mapping
from kernelcast.workers import MessageKind, Task, stream_isolated


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionProgress:
    device_id: str
    kernel: str
    stage: str
    done: int
    total: int
    rows: int
    remaining_s: float | None = None
    """About what the rest will take, in seconds; None as long as nobody knows."""


@dataclass(slots=True, kw_only=True)
class DeviceOutcome:
    device_id: str
    kernels: int = 0
    measured: int = 0
    present: int = 0
    disturbed: int = 0
    """Measured rows that stay contaminated."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Kernels, or rows of kernels, that were left out, with the reason."""
    failures: list[FailureRecord] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    """Kernels that could not even be begun, with the reason."""

    def absorb(self, other: "DeviceOutcome") -> None:
        """Add what another part of the collection has come to on the same device."""
        self.kernels += other.kernels
        self.measured += other.measured
        self.present += other.present
        self.disturbed += other.disturbed
        self.skipped.update(other.skipped)
        self.failures += other.failures
        self.errors.update(other.errors)


@dataclass(slots=True, kw_only=True)
class CollectionOutcome:
    devices: list[DeviceOutcome] = field(default_factory=list)
    is_interrupted: bool = False
    is_out_of_time: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SizesChosen:
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStarted:
    """A launch is about to be measured; if the process dies, it was this one."""

    launch: LaunchIdentity
    number: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSkipped:
    """A row that is not measured: it is there already, or too small or long for the collection."""

    launch_key: str
    reason: str = ""
    """Why; empty if it is there already."""


Message = SizesChosen | RowStarted | RowSkipped | Observation | FailureRecord


def make_failure(launch: LaunchIdentity, error: KernelcastError) -> FailureRecord:
    return FailureRecord(
        launch=launch,
        kind=type(error).__name__,
        message=str(error),
        failed_at=datetime.now(UTC),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTask:
    kernel: CorpusKernel
    device_id: str
    settings: CollectionSettings
    cache_folder: Path
    sizes: tuple[int, ...] = ()
    """Values of the size parameter; empty: find them."""
    done: frozenset[str] = frozenset()
    """Keys of launches that need no row any more (`LaunchIdentity.key`)."""


_COLLECT: Task[None] = Task(entry="kernelcast.collection.kernel_task:collect_kernel", gives=Message)


class OutOfTimeError(KernelcastError):
    """The time budget of a collection is spent; what was measured is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStorage:
    store: Store
    plans: SizePlans
    cache_folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionOrder:
    kernels: tuple[CorpusKernel, ...]
    devices: tuple[DeviceDescription, ...]
    """One after the other: two at once would time each other."""
    settings: CollectionSettings
    retries_failures: bool = False
    """Whether launches that failed before are tried again."""
    sizes_of: str | None = None
    """A device of the store: kernels are collected at the sizes of its rows, so that both have the
    same launches. None: at sizes chosen for each device."""
    budget_s: float | None = None
    """No further row is begun after so many seconds."""
    begun_s: float = field(default_factory=time.time)

    def list_jobs(self) -> list["KernelJob"]:
        return [
            KernelJob(kernel=kernel, device=device, order=self)
            for device in self.devices
            for kernel in self.kernels
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelJob:
    kernel: CorpusKernel
    device: DeviceDescription
    order: CollectionOrder

    def check_time(self) -> None:
        budget_s = self.order.budget_s
        if budget_s is not None and time.time() > self.order.begun_s + budget_s:
            msg = "the time budget is spent; the same command goes on where this one ended"
            raise OutOfTimeError(msg)


def run_job(
    job: KernelJob,
    storage: RowStorage,
    outcome: DeviceOutcome,
    report: Callable[[str], None] = lambda _: None,
) -> bool:
    """Collect a kernel on a device; tell whether the time budget ended it."""
    if job.kernel.uses_fp64 and not job.device.has_fp64:
        outcome.skipped[job.kernel.name] = "the device has no double precision"
        return False
    try:
        collect_rows(job, storage, outcome, report)
    except OutOfTimeError:
        return True
    return False


def collect_rows(
    job: KernelJob, storage: RowStorage, outcome: DeviceOutcome, report: Callable[[str], None]
) -> None:
    """Measure what is missing of a kernel on a device; each row is stored at once."""
    keeper = _Keeper(job, storage, outcome, report)
    kernel, settings, sizes_of = job.kernel, job.order.settings, job.order.sizes_of
    of_kernel = Selection(kernels=(kernel.stem,), applications=(kernel.application,))
    wanted = replace(of_kernel, devices=(job.device.id,), drivers=(job.device.driver,))
    sound = replace(wanted, without_flags=frozenset({ObservationFlag.CONTAMINATED}))
    keys = {
        row.launch_key
        for rows in storage.store.read_rows(sound, columns=("launch_key", "versions"))
        for row in rows
        if read_sampler(load_mapping(row.versions)) >= SAMPLER
    }
    if not job.order.retries_failures:
        keys |= {one.launch.key for one in storage.store.failures(wanted)}
    keeper.finished = frozenset(keys)
    elsewhere: tuple[int, ...] = ()
    if sizes_of is not None and not kernel.sizes:
        rows = storage.store.find(replace(of_kernel, devices=(sizes_of,)))
        known = {int(one.launch.parameters[kernel.size.parameter]) for one in rows}
        elsewhere = tuple(sorted(known))
        if not elsewhere:
            outcome.skipped[kernel.name] = f"the store has no rows of it on {sizes_of}"
            return
    while True:
        sizes = kernel.sizes or elsewhere or storage.plans.read(job.device, kernel, settings)
        try:
            task = KernelTask(
                kernel=kernel, device_id=job.device.id, settings=settings,
                cache_folder=storage.cache_folder, sizes=sizes, done=keeper.finished,
            )  # fmt: skip
            for message in stream_isolated(
                _COLLECT, task, timeout_s=settings.row_timeout_s, subject=job.device.id
            ):
                if message.kind is MessageKind.ITEM:
                    keeper.keep(message.content)
                elif message.kind is MessageKind.PROGRESS:
                    report(message.content)
        except (OutOfTimeError, StoreError):
            raise
        except KernelcastError as error:
            if keeper.current is None:
                outcome.errors[kernel.name] = str(error)
                return
            # The driver died or hung at this launch; the others get a fresh process.
            keeper.keep(make_failure(keeper.current, error))
            continue
        outcome.kernels += 1
        return


@dataclass(slots=True)
class _Keeper:
    """Stores what a child process hands over."""

    job: KernelJob
    storage: RowStorage
    outcome: DeviceOutcome
    report: Callable[[str], None]
    current: LaunchIdentity | None = None
    finished: frozenset[str] = frozenset()
    present: set[str] = field(default_factory=set)
    measured: set[str] = field(default_factory=set)

    def keep(self, message: Message) -> None:
        """Store a message's content, and count it."""
        job, store, outcome = self.job, self.storage.store, self.outcome
        match message:
            case SizesChosen(sizes=sizes):
                self.storage.plans.write(job.device, job.kernel, job.order.settings, sizes)
            case RowStarted(launch=launch, number=number, total=total):
                self.current = launch
                self.report(f"row {number} of {total}")
            case RowSkipped(reason="", launch_key=key):
                # A fresh process passes those that were measured by the one that died.
                outcome.present += key not in self.measured and key not in self.present
                self.present.add(key)
            case RowSkipped(reason=reason):
                outcome.skipped[job.kernel.name] = reason
                self.current = None
            case Observation() as observation:
                store.add(observation, replace=True)  # a disturbed one may be there
                store.clear_failures(observation.launch.key)
                outcome.measured += 1
                outcome.disturbed += ObservationFlag.CONTAMINATED in observation.flags
                self._finish(observation.launch.key)
            case FailureRecord() as failure:
                store.add_failures([failure])
                outcome.failures.append(failure)
                self._finish(failure.launch.key)
        if self.current is None:
            job.check_time()

    def _finish(self, key: str) -> None:
        self.finished |= {key}
        self.measured.add(key)
        self.current = None


def collect(
    order: CollectionOrder,
    storage: RowStorage,
    *,
    report: Callable[[CollectionProgress], None] = lambda _: None,
) -> CollectionOutcome:
    """Measure what is missing in a store."""
    outcome = CollectionOutcome()
    by_device = {one.id: DeviceOutcome(device_id=one.id) for one in order.devices}
    jobs = order.list_jobs()
    foretold_s = order.settings.foretell_s(order.kernels) / max(len(order.kernels), 1)
    durations_s: list[float] = []  # kernels that were there already say nothing about the rest

    def tell(job: KernelJob, done: int, stage: str) -> None:
        usual_s = fmean(durations_s) if durations_s else foretold_s
        report(
            CollectionProgress(
                device_id=job.device.id,
                kernel=job.kernel.name,
                stage=stage,
                done=done,
                total=len(jobs),
                rows=by_device[job.device.id].measured,
                remaining_s=(len(jobs) - done) * usual_s,
            )
        )

    try:
        for done, job in enumerate(jobs):
            on_device = by_device[job.device.id]
            if on_device not in outcome.devices:
                outcome.devices.append(on_device)
            rows_before, begin_s = on_device.measured, time.monotonic()
            tell(job, done, "starting")
            outcome.is_out_of_time = run_job(job, storage, on_device, partial(tell, job, done))
            if on_device.measured > rows_before:
                durations_s.append(time.monotonic() - begin_s)
            if outcome.is_out_of_time:
                break
    except KeyboardInterrupt:
        outcome.is_interrupted = True
    return outcome
