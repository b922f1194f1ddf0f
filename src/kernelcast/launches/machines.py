"""Finds machine descriptions (calibrated here, shipped, or in a file), and asks models by them."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from kernelcast.launches.data_folder import data_folder
from kernelcast.launches.machine_file import read_machine
from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.errors import KernelcastError, UnknownMachineError
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.software_counters import RecordedAddresses, SoftwareCounters

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
    begin = _plain(text)
    for matching in (
        [one for one in known if _plain(one.name) == begin],
        [one for one in known if begin and _plain(one.name).startswith(begin)],
    ):
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
    # Compute units may differ by a tenth: an MI250X has 110 on each die, an MI210 104.
    is_like = any(
        abs(count - units) <= 0.1 * units
        for count in (device.compute_units, 2 * device.compute_units)
    )
    return machine if is_like else None


def find_own_machine(device_id: str, *, stand_in: str = "") -> MachineDescription | None:
    """Read the description of a device that was calibrated here, else the shipped `stand_in`."""
    path = machine_path(device_id)
    try:
        changed_ns = path.stat().st_mtime_ns
    except OSError:
        return find_machine(stand_in) if stand_in else None
    return _read_once(path, changed_ns)


def find_sound_machine(device_id: str) -> MachineDescription | None:
    """Give the same; None where it cannot be read, too: answers do without."""
    try:
        return find_own_machine(device_id)
    except (KernelcastError, OSError):
        return None


@lru_cache(maxsize=16)
def _read_once(path: Path, changed_ns: int) -> MachineDescription:
    """Read a file, unless it is as it was: that takes longer than to estimate a launch."""
    del changed_ns
    return read_machine(path)


def model_own_launch(
    problem: Problem,
    ndrange: NDRange,
    device_id: str,
    *,
    counters: SoftwareCounters | None = None,
    recorded: RecordedAddresses | None = None,
    with_rivals: bool = False,
    stand_in: str = "",
) -> AnalyticEstimate | None:
    """Estimate a launch by the analytic model of its device. Rivals are for validations only."""
    machine = find_own_machine(device_id, stand_in=stand_in)
    if machine is None:
        return None
    # The models take longer to import than a file to read.
    from kernelcast.launches.modelling.estimating import estimate_analytically
    from kernelcast.launches.modelling.launches import model_launch

    launch = model_launch(problem, ndrange, counters=counters, recorded=recorded)
    found = estimate_analytically(launch, machine)
    if with_rivals:
        from kernelcast.launches.modelling.mwp_cwp import add_mwp_cwp

        found = add_mwp_cwp(found, launch, machine, counters)
    if machine.id != stand_in:
        return found
    note = f"{device_id} was not calibrated: the shipped description of {machine.name} stands in"
    return replace(found, notes=(*found.notes, note))
