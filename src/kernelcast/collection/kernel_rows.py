"""Collects the rows of one kernel on one device into a store, whatever its driver does."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from kernelcast.collection.kernel_task import KernelTask, make_failure
from kernelcast.collection.progress import (
    DeviceOutcome,
    Message,
    RowFailed,
    RowMeasured,
    RowSkipped,
    RowStarted,
    SizesChosen,
)
from kernelcast.collection.settings import CollectionSettings
from kernelcast.collection.sizes import SizePlans
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import KernelcastError
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.observation import ObservationFlag, read_sampler
from kernelcast.sampling.plan import SAMPLER
from kernelcast.training_data.applications import CorpusKernel
from kernelcast.training_data.store import Selection, Store, StoreError
from kernelcast.training_data.store.schema import load_mapping
from kernelcast.workers import MessageKind, Task, stream_isolated

_COLLECT: Task[None] = Task(entry="kernelcast.collection.kernel_task:collect_kernel", gives=Message)


class OutOfTimeError(KernelcastError):
    """The time budget of a collection is spent; what was measured is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStorage:
    """Where rows go, and where what they need is kept."""

    store: Store
    """Of observations."""
    plans: SizePlans
    """Chosen sizes."""
    cache_folder: Path
    """Generated inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelJob:
    """One kernel on one device."""

    kernel: CorpusKernel
    device: DeviceDescription
    settings: CollectionSettings
    retries_failures: bool = False
    """Whether launches that failed before are tried again."""
    sizes_of: str | None = None
    """The device of the store whose sizes are taken; None: sizes chosen for this one."""
    ends_s: float | None = None
    """`time.time` after which no further row is begun."""


def collect_rows(
    job: KernelJob,
    storage: RowStorage,
    outcome: DeviceOutcome,
    *,
    report: Callable[[str], None] = lambda _: None,
) -> None:
    """Measure what is missing of a kernel on a device; each row is stored at once."""
    keeper = _Keeper(job, storage, outcome, report)
    wanted = Selection(
        kernels=(job.kernel.stem,),
        applications=(job.kernel.application,),
        devices=(job.device.id,),
        drivers=(job.device.driver,),
    )
    sound = replace(wanted, without_flags=frozenset({ObservationFlag.CONTAMINATED}))
    keys = {
        row.launch_key
        for rows in storage.store.read_rows(sound, columns=("launch_key", "versions"))
        for row in rows
        if read_sampler(load_mapping(row.versions)) >= SAMPLER
    }
    if not job.retries_failures:
        keys |= {one.launch.key for one in storage.store.failures(wanted)}
    keeper.finished = frozenset(keys)
    while True:
        sizes = _find_sizes(job, storage)
        if job.sizes_of is not None and not sizes:
            outcome.skipped[job.kernel.name] = f"the store has no rows of it on {job.sizes_of}"
            return
        try:
            _run_child(job, storage, keeper, sizes)
        except (OutOfTimeError, StoreError):
            raise
        except KernelcastError as error:
            if keeper.current is None:
                outcome.errors[job.kernel.name] = str(error)
                return
            # The driver died or hung at this launch; the others get a fresh process.
            keeper.keep(RowFailed(failure=make_failure(keeper.current, error)))
            continue
        outcome.kernels += 1
        return


class _Keeper:
    """Stores what a child process hands over."""

    def __init__(
        self,
        job: KernelJob,
        storage: RowStorage,
        outcome: DeviceOutcome,
        report: Callable[[str], None],
    ) -> None:
        self._job = job
        self._storage = storage
        self._outcome = outcome
        self.report = report
        self.current: LaunchIdentity | None = None
        self.finished: frozenset[str] = frozenset()
        self._present: set[str] = set()
        self._measured: set[str] = set()

    def keep(self, message: Message) -> None:
        """Store a message's content, and count it."""
        match message:
            case SizesChosen(sizes=sizes):
                job = self._job
                self._storage.plans.write(job.device, job.kernel, job.settings, sizes)
            case RowStarted(launch=launch, number=number, total=total):
                self.current = launch
                self.report(f"row {number} of {total}")
            case RowSkipped(reason="", launch_key=key):
                # A fresh process passes those that were measured by the one that died.
                self._outcome.present += key not in self._measured and key not in self._present
                self._present.add(key)
            case RowSkipped(reason=reason):
                self._outcome.skipped[self._job.kernel.name] = reason
                self.current = None
            case RowMeasured() | RowFailed():
                self._store(message)
        self._check_time()

    def _store(self, message: RowMeasured | RowFailed) -> None:
        store, outcome = self._storage.store, self._outcome
        if isinstance(message, RowMeasured):
            observation = message.observation
            store.add(observation, replace=True)  # a disturbed one may be there
            store.clear_failures(observation.launch.key)
            outcome.measured += 1
            outcome.disturbed += ObservationFlag.CONTAMINATED in observation.flags
            key = observation.launch.key
        else:
            store.add_failures([message.failure])
            outcome.failures.append(message.failure)
            key = message.failure.launch.key
        self.finished |= {key}
        self._measured.add(key)
        self.current = None

    def _check_time(self) -> None:
        ends_s = self._job.ends_s
        if self.current is None and ends_s is not None and time.time() > ends_s:
            msg = "the time budget is spent; the same command goes on where this one ended"
            raise OutOfTimeError(msg)


def _find_sizes(job: KernelJob, storage: RowStorage) -> tuple[int, ...]:
    """Give the sizes that are known: another device's rows', or those chosen before."""
    if job.kernel.sizes:
        return job.kernel.sizes
    if job.sizes_of is None:
        return storage.plans.read(job.device, job.kernel, job.settings)
    wanted = Selection(
        kernels=(job.kernel.stem,),
        applications=(job.kernel.application,),
        devices=(job.sizes_of,),
    )
    parameter = job.kernel.size.parameter
    found = {one.launch.parameters[parameter] for one in storage.store.find(wanted)}
    return tuple(sorted(int(size) for size in found))


def _run_child(
    job: KernelJob, storage: RowStorage, keeper: _Keeper, sizes: tuple[int, ...]
) -> None:
    task = KernelTask(
        kernel=job.kernel,
        device_id=job.device.id,
        settings=job.settings,
        cache_folder=storage.cache_folder,
        sizes=sizes,
        done=keeper.finished,
    )
    messages = stream_isolated(
        _COLLECT, task, timeout_s=job.settings.row_timeout_s, subject=job.device.id
    )
    for message in messages:
        if message.kind is MessageKind.ITEM:
            keeper.keep(message.content)
        elif message.kind is MessageKind.PROGRESS:
            keeper.report(message.content)
