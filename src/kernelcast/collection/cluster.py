"""Collects over the machines of a Dask cluster: a job per kernel and device, one per machine.

Workers are started by the user, one per machine (``dask worker tcp://...``). A worker that
declares devices as resources (``--resources "pocl-...=1"``) measures those, any other measures
all devices that it finds. Rows go from the workers to a store that all of them reach.
"""

import time
from collections.abc import Callable
from typing import Any

from kernelcast.collection.collection import (
    CollectionOrder,
    CollectionOutcome,
    DeviceOutcome,
    run_job,
)
from kernelcast.launches.devices import list_descriptions
from kernelcast.records.device import DeviceDescription, match_device_id
from kernelcast.records.errors import KernelcastError, NoDeviceError
from kernelcast.records.progress import Progress
from kernelcast.training_data.applications import CorpusKernel
from kernelcast.training_data.store import Store

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
    by_device = {one.id: DeviceOutcome(device_id=one.id) for one in order.devices}
    outcome = CollectionOutcome(devices=list(by_device.values()))
    waiting = {
        client.submit(
            run_on_worker, kernel, device, order, store,
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
                    found, is_out_of_time = future.result()
                except KernelcastError as error:
                    on_device.errors[name] = str(error)
                except Exception as error:  # noqa: BLE001 - a killed worker, a lost connection, whatever it was
                    on_device.errors[name] = f"the worker failed: {error!r}"
                else:
                    on_device.absorb(found)
                    outcome.is_out_of_time |= is_out_of_time
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


def run_on_worker(
    kernel: CorpusKernel, device: DeviceDescription, order: CollectionOrder, store: Store
) -> tuple[DeviceOutcome, bool]:
    """Do a job on a worker, in folders of its machine; tell whether the time budget ended it."""
    outcome = DeviceOutcome(device_id=device.id)
    return outcome, run_job(kernel, device, order, store, outcome)


def _list_devices() -> list[DeviceDescription]:
    try:
        return list_descriptions()
    except NoDeviceError:
        return []


async def _declare(resources: dict[str, float], dask_worker: Any) -> None:  # noqa: ANN401
    await dask_worker.set_resources(**resources)
