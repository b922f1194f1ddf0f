"""What a child process is asked about devices: which there are, and whether they work."""

from kernelcast.records.device import DeviceDescription, TimerCheck
from kernelcast.sampling.discovery import choose_device, find_devices, find_devices_once
from kernelcast.workers.task import Reporter


def look(_: str) -> None:
    """Find the devices before they are asked for."""
    find_devices_once()


def list_devices(_: None, report: Reporter) -> tuple[DeviceDescription, ...]:
    report("asking the drivers")
    return tuple(description for description, _ in find_devices_once())


def check_device(device_id: str, report: Reporter) -> TimerCheck:
    from kernelcast.sampling.device_check import try_device

    report("trial kernel")
    return try_device(*choose_device(device_id, find_devices())).timer
