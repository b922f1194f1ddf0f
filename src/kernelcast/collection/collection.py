"""Collects the corpus on devices: kernel by kernel, each on every device, one at a time."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

from kernelcast.collection.kernel_rows import (
    KernelJob,
    OutOfTimeError,
    RowStorage,
    collect_rows,
)
from kernelcast.collection.progress import (
    CollectionOutcome,
    CollectionProgress,
    DeviceOutcome,
)
from kernelcast.collection.settings import CollectionSettings
from kernelcast.records.device import DeviceDescription
from kernelcast.training_data.applications import CorpusKernel

_NO_FP64 = "the device has no double precision"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionOrder:
    """What to collect."""

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


def collect(
    order: CollectionOrder,
    storage: RowStorage,
    *,
    report: Callable[[CollectionProgress], None] = lambda _: None,
) -> CollectionOutcome:
    """Measure what is missing in a store."""
    outcome = CollectionOutcome()
    by_device = {one.id: DeviceOutcome(device_id=one.id) for one in order.devices}
    watch = _Watch(order, report)
    try:
        for job in list_jobs(order):
            on_device = by_device[job.device.id]
            if on_device not in outcome.devices:
                outcome.devices.append(on_device)
            watch.begin(job, on_device)
            outcome.is_out_of_time = run_job(job, storage, on_device, watch.tell)
            watch.end(on_device)
            if outcome.is_out_of_time:
                break
    except KeyboardInterrupt:
        outcome.is_interrupted = True
    return outcome


def list_jobs(order: CollectionOrder) -> list[KernelJob]:
    """List every kernel on every device, device by device."""
    ends_s = None if order.budget_s is None else time.time() + order.budget_s
    return [
        KernelJob(
            kernel=kernel,
            device=device,
            settings=order.settings,
            retries_failures=order.retries_failures,
            sizes_of=order.sizes_of,
            ends_s=ends_s,
        )
        for device in order.devices
        for kernel in order.kernels
    ]


def run_job(
    job: KernelJob,
    storage: RowStorage,
    outcome: DeviceOutcome,
    report: Callable[[str], None] = lambda _: None,
) -> bool:
    """Collect a kernel on a device; tell whether the time budget ended it."""
    if job.kernel.uses_fp64 and not job.device.has_fp64:
        outcome.skipped[job.kernel.name] = _NO_FP64
        return False
    try:
        collect_rows(job, storage, outcome, report=report)
    except OutOfTimeError:
        return True
    return False


class _Watch:
    """Tells where a collection stands and what the rest will take."""

    def __init__(
        self, order: CollectionOrder, report: Callable[[CollectionProgress], None]
    ) -> None:
        self._report = report
        self._total = len(order.kernels) * len(order.devices)
        self._foretold_s = order.settings.foretell_s(order.kernels) / max(len(order.kernels), 1)
        self._done = 0
        self._rows_before = 0
        self._durations_s: list[float] = []
        self._begin_s = time.monotonic()
        self._now = ("", "", DeviceOutcome(device_id=""))

    def begin(self, job: KernelJob, outcome: DeviceOutcome) -> None:
        """Note that a kernel begins."""
        self._now = (job.device.id, job.kernel.name, outcome)
        self._begin_s = time.monotonic()
        self._rows_before = outcome.measured
        self.tell("starting")

    def end(self, outcome: DeviceOutcome) -> None:
        """Note that it has ended; those that were there already say nothing about the rest."""
        self._done += 1
        if outcome.measured > self._rows_before:
            self._durations_s.append(time.monotonic() - self._begin_s)

    def tell(self, stage: str) -> None:
        """Tell which stage begins."""
        device_id, kernel, outcome = self._now
        left = self._total - self._done
        self._report(
            CollectionProgress(
                device_id=device_id,
                kernel=kernel,
                stage=stage,
                done=self._done,
                total=self._total,
                rows=outcome.measured,
                remaining_s=left
                * (fmean(self._durations_s) if self._durations_s else self._foretold_s),
            )
        )
