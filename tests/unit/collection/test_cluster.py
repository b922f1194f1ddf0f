"""Jobs on a cluster whose only worker is this process."""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kernelcast.collection import collection
from kernelcast.collection.collection import CollectionOrder, DeviceOutcome
from kernelcast.collection.settings import CollectionSettings
from kernelcast.records.device import Progress
from kernelcast.records.errors import KernelRunError, UnknownDeviceError
from kernelcast.training_data.applications import CorpusKernel, find_kernels
from kernelcast.training_data.store import open_store
from support.builders import make_description

KERNELS = tuple(find_kernels("image_filters"))[:3]
DEVICE = make_description()


class Client(ThreadPoolExecutor):
    """Has the one worker, a thread, do what it is told."""

    declared: ClassVar[dict[str, float]] = {}

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        """Give the one worker."""
        return {"workers": {"here": {"resources": self.declared}}}

    def run(self, function: Any, *arguments: Any, workers: list[str]) -> dict[str, Any]:  # noqa: ANN401
        """List devices, or note resources."""
        if arguments:
            self.declared = arguments[0]
            return {}
        return {one: function() for one in workers}

    def submit(self, function: Any, *arguments: Any, **_: object) -> Future[Any]:  # noqa: ANN401
        """Do a job; options are the cluster's."""
        return super().submit(function, *arguments)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    """Give a client of a worker with one device, on which each kernel ends in its own way."""

    def run_job(kernel: CorpusKernel, *others: Any) -> bool:  # noqa: ANN401 - device, order, store
        if kernel is KERNELS[1]:
            raise KernelRunError("it died")
        outcome: DeviceOutcome = others[-1]
        outcome.measured += 2
        outcome.kernels += 1
        return kernel is KERNELS[2]

    monkeypatch.setattr(collection, "run_job", run_job)
    monkeypatch.setattr(collection, "list_descriptions", lambda: [DEVICE])
    return Client(1)


def test_what_workers_measure_is_added_up(client: Client, tmp_path: Path) -> None:
    """Adds the jobs' outcomes by device; a job that fails is a kernel that is not collected."""
    devices = collection.find_cluster_devices(client, (DEVICE.id[:4],))
    assert devices == (DEVICE,)
    assert client.declared == {DEVICE.id: 1, collection.MEASUREMENT: 1}
    told: list[Progress] = []
    with open_store(tmp_path / "rows.sqlite") as store:
        order = CollectionOrder(kernels=KERNELS, devices=devices, settings=CollectionSettings())
        outcome = collection.collect_on_cluster(order, store, client, report=told.append)
    (found,) = outcome.devices
    assert (found.kernels, found.measured) == (2, 4)
    assert found.errors == {KERNELS[1].name: "it died"}
    assert outcome.is_out_of_time
    assert [(one.done, one.total) for one in told] == [(1, 3), (2, 3), (3, 3)]
    assert told[-1].rows == 4


def test_a_device_that_no_worker_has_is_unknown(client: Client) -> None:
    """Says so before anything is measured."""
    with pytest.raises(UnknownDeviceError):
        collection.find_cluster_devices(client, ("elsewhere",))
