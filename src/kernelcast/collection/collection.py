"""Collects rows: kernel by kernel, each on every device, one at a time, each in a child process.

What the child hands over is stored at once, whatever the device's driver does afterwards.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from statistics import fmean
from typing import Any

from kernelcast.collection.settings import CollectionSettings
from kernelcast.launches.devices import list_descriptions
from kernelcast.records.device import DeviceDescription, Progress, match_device_id
from kernelcast.records.errors import KernelcastError, NoDeviceError
from kernelcast.records.observation import FailureRecord, Observation, ObservationFlag, read_sampler
from kernelcast.records.plain import to_plain
from kernelcast.records.problem import LaunchIdentity
from kernelcast.sampling.plan import SAMPLER
from kernelcast.training_data.applications import CorpusKernel
from kernelcast.training_data.store import Selection, Store, StoreError
from kernelcast.training_data.store.schema import load_mapping
from kernelcast.workers import Task, stream_isolated


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

    def keep(self, row: Observation | FailureRecord | str, kernel: str, store: Store) -> None:
        """Store and count what came of a row of a kernel, see `Message`."""
        if isinstance(row, Observation):
            store.add(row, replace=True)  # a disturbed one may be there
            store.clear_failures(row.launch.key)
            self.measured += 1
            self.disturbed += ObservationFlag.CONTAMINATED in row.flags
        elif isinstance(row, FailureRecord):
            store.add_failures([row])
            self.failures.append(row)
        elif row:
            self.skipped[kernel] = row
        else:
            self.present += 1

    def to_dict(self) -> dict[str, Any]:
        failures = [
            {"kernel": one.launch.kernel.label, "kind": one.kind,
             "parameters": dict(one.launch.parameters), "message": one.message}
            for one in self.failures
        ]  # fmt: skip
        return {**to_plain(replace(self, failures=[])), "failures": failures}

    def absorb(self, other: "DeviceOutcome") -> None:
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


Message = LaunchIdentity | Observation | FailureRecord | str
"""What a child process tells of each row: its launch first, as the process may die of it, then what
came of it. A text says why it is not measured, empty if it is there already."""


def make_failure(launch: LaunchIdentity, error: KernelcastError) -> FailureRecord:
    return FailureRecord(
        launch=launch,
        kind=type(error).__name__,
        message=str(error),
        failed_at=datetime.now(UTC),
    )


KernelTask = tuple[CorpusKernel, str, CollectionSettings, frozenset[str]]
"""A kernel, a device's id, how to collect, and keys of launches that need no row any more."""
_COLLECT: Task[None] = Task(entry="kernelcast.collection.kernel_task:collect_kernel", gives=Message)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionOrder:
    kernels: tuple[CorpusKernel, ...]
    devices: tuple[DeviceDescription, ...]
    """One after the other: two at once would time each other."""
    settings: CollectionSettings
    retries_failures: bool = False
    sizes_of: str | None = None
    """A device of the store: kernels are collected at the sizes of its rows, so that both have the
    same launches. None: at sizes chosen for each device."""
    budget_s: float | None = None
    begun_s: float = field(default_factory=time.time)

    @property
    def is_over(self) -> bool:
        return self.budget_s is not None and time.time() > self.begun_s + self.budget_s

    @property
    def jobs(self) -> list[tuple[CorpusKernel, DeviceDescription]]:
        return [(kernel, device) for device in self.devices for kernel in self.kernels]


def run_job(
    kernel: CorpusKernel,
    device: DeviceDescription,
    order: CollectionOrder,
    store: Store,
    outcome: DeviceOutcome,
    report: Callable[[str], None] = lambda _: None,
) -> bool:
    """Measure what is missing of a kernel on a device; tell whether the time budget ended it."""
    if kernel.uses_fp64 and not device.has_fp64:
        outcome.skipped[kernel.name] = "the device has no double precision"
        return False
    of_kernel = Selection(kernels=(kernel.stem,), applications=(kernel.application,))
    wanted = replace(of_kernel, devices=(device.id,), drivers=(device.driver,))
    # What needs no row: failures, and sound rows of today's sampler.
    failed = () if order.retries_failures else store.failures(wanted)
    sound = replace(wanted, without_flags=frozenset({ObservationFlag.CONTAMINATED}))
    known = frozenset(one.launch.key for one in failed) | {
        row.launch_key
        for rows in store.read_rows(sound, columns=("launch_key", "versions"))
        for row in rows
        if read_sampler(load_mapping(row.versions)) >= SAMPLER
    }
    if order.sizes_of is not None and not kernel.sizes:
        found = store.find(replace(of_kernel, devices=(order.sizes_of,)))
        sizes = tuple(sorted({int(one.launch.parameters[kernel.size.parameter]) for one in found}))
        if not sizes:
            outcome.skipped[kernel.name] = f"the store has no rows of it on {order.sizes_of}"
            return False
        kernel = replace(kernel, sizes=sizes)
    passed = set[str]()  # a fresh process comes again to what the one that died has done
    current: LaunchIdentity | None = None

    def keep(launch: LaunchIdentity, row: Observation | FailureRecord | str) -> None:
        if launch.key not in passed:
            outcome.keep(row, kernel.name, store)
        passed.add(launch.key)

    while True:
        task = kernel, device.id, order.settings, known | passed
        try:
            for told in stream_isolated(
                _COLLECT, task, timeout_s=order.settings.row_timeout_s, subject=device.id,
                report=report,
            ):  # fmt: skip
                if isinstance(told, LaunchIdentity):
                    current = told
                    continue
                assert current is not None
                keep(current, told)
                current = None
                if order.is_over:
                    return True
        except StoreError:
            raise
        except KernelcastError as error:
            if current is None:
                outcome.errors[kernel.name] = str(error)
                return False
            # The driver died or hung at this launch; the others get a fresh process.
            keep(current, make_failure(current, error))
            current = None
            if order.is_over:
                return True
        else:
            outcome.kernels += 1
            return False


def collect(
    order: CollectionOrder,
    store: Store,
    *,
    report: Callable[[Progress], None] = lambda _: None,
) -> CollectionOutcome:
    """Measure what is missing in a store."""
    outcome = CollectionOutcome()
    by_device = {one.id: DeviceOutcome(device_id=one.id) for one in order.devices}
    foretold_s = order.settings.foretell_s(order.kernels) / max(len(order.kernels), 1)
    durations_s: list[float] = []  # kernels that were there already say nothing about the rest

    def tell(kernel: CorpusKernel, on_device: DeviceOutcome, done: int, stage: str) -> None:
        usual_s = fmean(durations_s) if durations_s else foretold_s
        report(Progress(
            device_id=on_device.device_id, title=kernel.name, stage=stage, done=done,
            total=len(order.jobs), rows=on_device.measured,
            remaining_s=(len(order.jobs) - done) * usual_s,
        ))  # fmt: skip

    try:
        for done, (kernel, device) in enumerate(order.jobs):
            on_device = by_device[device.id]
            if on_device not in outcome.devices:
                outcome.devices.append(on_device)
            rows_before, begin_s = on_device.measured, time.monotonic()
            say = partial(tell, kernel, on_device, done)
            say("")
            outcome.is_out_of_time = run_job(kernel, device, order, store, on_device, say)
            if on_device.measured > rows_before:
                durations_s.append(time.monotonic() - begin_s)
            if outcome.is_out_of_time:
                break
    except KeyboardInterrupt:
        outcome.is_interrupted = True
    return outcome


MEASUREMENT = "kernelcast-measurement"
"""Resource of which every worker has one: two measurements at once would time each other."""


def find_cluster_devices(client: Any, wanted: tuple[str, ...]) -> tuple[DeviceDescription, ...]:  # noqa: ANN401
    """Describe the devices of all workers, and make each a resource of its worker."""
    found = {one.id: one for one in _prepare_workers(client, frozenset())}
    if not found:
        msg = "no worker of the cluster has an OpenCL device; start workers on machines that have"
        raise NoDeviceError(msg)
    chosen = dict.fromkeys(match_device_id(one, found) for one in wanted)
    return tuple(found[key] for key in (chosen or found))


def _prepare_workers(client: Any, known: frozenset[str]) -> list[DeviceDescription]:  # noqa: ANN401
    """Make devices resources of the workers that are not known yet; describe them."""
    found: list[DeviceDescription] = []
    fresh = [one for one in _list_workers(client) if one not in known]
    for address, devices in (client.run(_list_devices, workers=fresh) if fresh else {}).items():
        declared = _list_workers(client).get(address, {}).get("resources", {})
        own = [one for one in devices if one.id in declared] or devices
        resources = {**dict.fromkeys((one.id for one in own), 1), MEASUREMENT: 1}
        client.run(_declare, resources, workers=[address])
        found += own
    return found


def _list_workers(client: Any) -> dict[str, Any]:  # noqa: ANN401
    workers: dict[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    return workers


def collect_on_cluster(
    order: CollectionOrder,
    store: Store,
    client: Any,  # noqa: ANN401 - the library ships no types
    *,
    report: Callable[[Progress], None] = lambda _: None,
) -> CollectionOutcome:
    """Measure what is missing over the machines of a Dask cluster, a job per kernel and device.

    Workers are started by the user, one per machine (``dask worker tcp://...``). A worker that
    declares devices as resources (``--resources "pocl-...=1"``) measures those, any other measures
    all devices that it finds. Rows go from the workers to a store that all of them reach.
    """
    by_device = {one.id: DeviceOutcome(device_id=one.id) for one in order.devices}
    outcome = CollectionOutcome(devices=list(by_device.values()))
    waiting = {
        client.submit(
            collect, replace(order, kernels=(kernel,), devices=(device,)), store,
            resources={device.id: 1, MEASUREMENT: 1},
            pure=False,
            key=f"kernelcast-{device.id}-{kernel.name}-{time.time_ns()}",
        ): (kernel.name, by_device[device.id])
        for kernel, device in order.jobs
    }  # fmt: skip
    known = frozenset(_list_workers(client))
    try:
        while waiting:
            workers = frozenset(_list_workers(client))
            _prepare_workers(client, known)  # one that came back, or came late, can do jobs too
            known = workers
            for future in [one for one in waiting if one.done()]:
                name, on_device = waiting.pop(future)
                try:
                    found = future.result()
                except KernelcastError as error:
                    on_device.errors[name] = str(error)
                except Exception as error:  # noqa: BLE001 - a killed worker, a lost connection, whatever it was
                    on_device.errors[name] = f"the worker failed: {error!r}"
                else:
                    on_device.absorb(*found.devices)
                    outcome.is_out_of_time |= found.is_out_of_time
                report(Progress(
                    device_id=on_device.device_id, title=name, stage="done",
                    done=len(order.jobs) - len(waiting), total=len(order.jobs),
                    rows=sum(one.measured for one in outcome.devices),
                ))  # fmt: skip
            time.sleep(0.5 if waiting else 0)
    except KeyboardInterrupt:
        client.cancel(list(waiting), force=True)
        outcome.is_interrupted = True
    return outcome


def _list_devices() -> list[DeviceDescription]:
    try:
        return list_descriptions()
    except NoDeviceError:
        return []


async def _declare(resources: dict[str, float], dask_worker: Any) -> None:  # noqa: ANN401
    await dask_worker.set_resources(**resources)
