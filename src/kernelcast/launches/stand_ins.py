"""Which shipped description stands in for a GPU of this machine that was not calibrated."""

import re

from kernelcast.launches.machines import find_machine
from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.machine import MachineDescription

# Words of a device's name, and the description. Several boards have one chip: clocks and memory
# differ by less than from those of any other description (an H100 with HBM3 has a GH200's 132
# compute units and, by its data sheet, 0.84 to 0.98 of its memory's rate).
_BOARDS: tuple[tuple[frozenset[str], str], ...] = tuple(
    (frozenset(words.split()), name)
    for words, name in (
        ("v100", "v100"), ("a100 40gb", "a100"), ("a100 80gb", "a100-80gb"), ("a40", "a40"),
        ("l40", "l40"), ("l40s", "l40"), ("h100 pcie", "h100-pcie"), ("h100", "gh200"),
        ("h200", "h200"), ("gh200 480gb", "gh200"), ("mi100", "mi100"), ("mi210", "mi210"),
        ("mi250", "mi210"),
        ("mi250x", "mi210"), ("mi300a", "mi300a"), ("mi300x", "mi300x"),
        ("rx 6900 xt", "rx-6900-xt"),
    )
)  # fmt: skip
_LIKE_UNITS = 0.1
"""Compute units may differ by this part: an MI250X has 110 on each die, an MI210 104."""


def find_stand_in(device: DeviceDescription) -> MachineDescription | None:
    """Find the shipped description of a GPU by its name.

    Parameters
    ----------
    device : DeviceDescription
        As its driver describes it; AMD's name boards in the id only.

    Returns
    -------
    MachineDescription or None
        None for a GPU that none is of, for a part of one (its compute units tell), and for devices
        of other kinds.
    """
    if device.kind is not DeviceKind.GPU:
        return None
    words = set(re.findall(r"[a-z0-9]+", f"{device.id} {device.name}".lower()))
    names = (name for board, name in _BOARDS if board <= words)
    machine = next(map(find_machine, names), None)
    if machine is None or machine.compute_units is None:
        return None
    units = machine.compute_units.value
    # Drivers count RDNA's compute units in pairs.
    is_like = any(
        abs(count - units) <= _LIKE_UNITS * units
        for count in (device.compute_units, 2 * device.compute_units)
    )
    return machine if is_like else None
