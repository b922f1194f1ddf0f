"""The tasks of a child process that has a device of a balanced launch: they follow each other."""

from typing import TYPE_CHECKING

from kernelcast.balancing.messages import Command, OpenDevice, Opened, Reply
from kernelcast.records.errors import KernelcastError
from kernelcast.sampling.partial_launch_cores import bind_to_cores
from kernelcast.workers.task import Reporter

if TYPE_CHECKING:
    from kernelcast.balancing.device_worker import DeviceWorker

_opened: "list[DeviceWorker]" = []


def open_device(order: OpenDevice, _: Reporter) -> Opened:
    """Open a device on its cores: runtimes start their threads when they are loaded."""
    bind_to_cores(order.cores)
    from kernelcast.balancing.device_worker import DeviceWorker

    worker = DeviceWorker.open(order)
    _opened.append(worker)
    return worker.opened


def answer(command: Command, _: Reporter) -> Reply:
    """Do what a command says on the device that was opened before."""
    if not _opened:
        msg = "the device is not open"
        raise KernelcastError(msg)
    return _opened[0].answer(command)
