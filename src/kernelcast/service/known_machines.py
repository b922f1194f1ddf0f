"""Machine descriptions by their names; all of it blocks."""

from dataclasses import dataclass
from pathlib import Path

from kernelcast.launches.machine_file import read_machine
from kernelcast.launches.machines import list_machines
from kernelcast.records.errors import KernelcastError
from kernelcast.records.machine import MachineDescription
from kernelcast.service.errors import message_of, refuse_unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What was measured of a device."""

    machine: MachineDescription | None = None
    error: str = ""


def read_calibration(device_id: str) -> Calibration:
    """Read the description that a calibration of this device has left."""
    known = (one for one in list_machines() if one.name == device_id and not one.is_shipped)
    found = next(known, None)
    if found is None:
        return Calibration()
    try:
        return Calibration(machine=read_machine(found.path))
    except KernelcastError as error:
        return Calibration(error=message_of(error))


def read_named(name: str) -> MachineDescription:
    """Read a description by its name, which is looked up in a list and never becomes a path."""
    path: Path | None = next((one.path for one in list_machines() if one.name == name), None)
    if path is None:
        refuse_unknown("machine", name)
    return read_machine(path)


def list_shipped() -> list[str]:
    """Name the descriptions that came with kernelcast."""
    return [one.name for one in list_machines() if one.is_shipped]


def list_calibrated() -> set[str]:
    """Name the devices that were calibrated here."""
    return {one.name for one in list_machines() if not one.is_shipped}
