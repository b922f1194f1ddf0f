"""Finds machine descriptions: calibrated here, shipped with kernelcast, or in a file."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from kernelcast.launches.data_folder import data_folder
from kernelcast.launches.machine_file import read_machine
from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.errors import UnknownMachineError
from kernelcast.records.machine import MachineDescription

_SUFFIXES = frozenset({".yaml", ".yml"})


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownMachine:
    name: str
    """A device's id, or the name of a shipped description."""
    path: Path
    is_shipped: bool
    """Whether it came with kernelcast; else it was calibrated here."""


def machine_path(device_id: str) -> Path:
    return data_folder() / "machines" / f"{device_id}.yaml"


def list_machines() -> list[KnownMachine]:
    """List all descriptions, those calibrated here first."""
    shipped = Path(str(files("kernelcast"))) / "data" / "machines"
    return [
        *_list_folder(data_folder() / "machines", is_shipped=False),
        *_list_folder(shipped, is_shipped=True),
    ]


def find_machine(wanted: str | Path) -> MachineDescription:
    """Read the description of a device's id, a shipped name, a beginning of one, or a file."""
    text = str(wanted)
    if Path(text).suffix.lower() in _SUFFIXES or os.sep in text or isinstance(wanted, Path):
        return read_machine(Path(text))
    known = list_machines()
    for matching in (_exact(text, known), _beginning(text, known)):
        if len(matching) == 1 or (matching and matching[0].name == matching[-1].name):
            return read_machine(matching[0].path)
        if matching:
            raise UnknownMachineError(_explain(text, known, matching))
    raise UnknownMachineError(_explain(text, known, ()))


def _list_folder(folder: Path, *, is_shipped: bool) -> list[KnownMachine]:
    try:
        paths = sorted(folder.glob("*.yaml"))
    except OSError:
        return []
    return [
        KnownMachine(name=path.stem, path=path, is_shipped=is_shipped)
        for path in paths
        if not path.name.startswith(".")
    ]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _exact(text: str, known: Iterable[KnownMachine]) -> list[KnownMachine]:
    return [one for one in known if _plain(one.name) == _plain(text)]


def _beginning(text: str, known: Iterable[KnownMachine]) -> list[KnownMachine]:
    begin = _plain(text)
    return [one for one in known if begin and _plain(one.name).startswith(begin)]


def _explain(text: str, known: list[KnownMachine], matching: Iterable[KnownMachine]) -> str:
    several = ", ".join(one.name for one in matching)
    start = (
        f"machine {text!r} may be {several}; give more of the name"
        if several
        else f"there is no machine description {text!r}"
    )
    shipped = ", ".join(one.name for one in known if one.is_shipped) or "none"
    calibrated = ", ".join(one.name for one in known if not one.is_shipped) or "none"
    return (
        f"{start}. Calibrated here ({data_folder() / 'machines'}): {calibrated}. Shipped: "
        f"{shipped}. `kernelcast calibrate --device ID` makes one of a device of this machine; "
        "a file (.yaml) will do as well"
    )


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
    """Find the shipped description of a whole GPU by the words of its name."""
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
