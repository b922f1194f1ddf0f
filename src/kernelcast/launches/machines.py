"""Machine descriptions: their files (docs/reference/machine-files.md), and models asked by them.

The keys are the fields of records. Every complaint names file, line and key. People read and edit
the files: one number a line. Descriptions are calibrated here, shipped, or in a file.
"""

import math
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from kernelcast.launches.data_folder import data_folder
from kernelcast.records.device import DeviceDescription, DeviceKind, TraitSource
from kernelcast.records.errors import KernelcastError, MachineFileError, UnknownMachineError
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.machine import SCHEMA, MachineDescription
from kernelcast.records.ndrange import NDRange
from kernelcast.records.private_files import make_private_folder, write_output, writing
from kernelcast.records.problem import Problem
from kernelcast.records.software_counters import RecordedAddresses, SoftwareCounters
from kernelcast.records.yaml_files import load, read_described


def machine_to_plain(machine: MachineDescription) -> dict[str, Any]:
    """Turn a description into dictionaries, lists, texts and numbers; leaves out what is empty."""
    return {"schema": SCHEMA, **_plain(machine)}


def _plain(value: Any) -> Any:  # noqa: ANN401 - of any field
    if is_dataclass(value):
        return {
            one.name: _plain(getattr(value, one.name))
            for one in fields(value)
            if getattr(value, one.name)
            != (one.default if one.default_factory is MISSING else one.default_factory())
        }
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, tuple) and value and is_dataclass(value[0]):
        # The first field is the key.
        named = map(_plain, value)
        return {one.pop(next(iter(one))): one for one in named}
    if isinstance(value, tuple):
        return [*value]
    return str(value) if isinstance(value, str) else value


def read_machine(path: Path) -> MachineDescription:
    needs = f"a machine description needs `schema: {SCHEMA}`, id, name and kind"
    root = load(path, "machine description", needs, MachineFileError)
    return read_described(MachineDescription, root, SCHEMA, "; calibrate anew, or update")


_HEADER = """\
# What kernelcast knows of a device; docs/reference/machine-files.md explains the keys.
# To correct a number, replace its braces by a plain number: that reads as `source: assumed`.
"""
_SPACED = re.compile(
    "^(?=(compute_units|instructions|caches|memories|costs|not_obtained|curves):)", re.MULTILINE
)


def dump_machine(machine: MachineDescription) -> str:
    text = yaml.dump(
        machine_to_plain(machine), Dumper=_Dumper, sort_keys=False, allow_unicode=True,
        width=math.inf,
    )  # fmt: skip
    return _HEADER + _SPACED.sub("\n", text)


def write_machine(path: Path, machine: MachineDescription) -> None:
    what = "the machine description"
    with writing(path, what):
        if not path.parent.exists():  # the data folder above it is closed to others, not this one
            make_private_folder(path.parent)
            # What a device can do is no secret, and confined processes of a service that root has
            # started read it as another user.
            path.parent.chmod(0o755)
    write_output(path, dump_machine(machine), what, mode=0o644)


class _Dumper(yaml.SafeDumper):
    """Writes numbers with their sources, and lists, on one line each."""

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True


def _write_mapping(dumper: _Dumper, value: dict[Any, Any]) -> yaml.Node:
    is_trait = "value" in value
    if is_trait and value == {"value": value["value"], "source": TraitSource.ASSUMED.value}:
        return dumper.represent_data(value["value"])
    return dumper.represent_mapping("tag:yaml.org,2002:map", value.items(), flow_style=is_trait)


def _write_text(dumper: _Dumper, text: str) -> yaml.Node:
    style = None if text.isprintable() else '"'  # one line each
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _write_number(dumper: _Dumper, value: float) -> yaml.Node:
    """Write a number so that it is read back the same, by any reader of YAML 1.1."""
    if not math.isfinite(value):
        msg = f"{value}: machine descriptions hold finite numbers only; leave it out instead"
        raise MachineFileError(msg)
    # Fractions that people read without counting zeros.
    is_short = value == 0 or 1e-3 <= abs(value) < 1e6
    text = repr(value) if is_short else np.format_float_scientific(value, trim="0", exp_digits=2)
    return dumper.represent_scalar("tag:yaml.org,2002:float", text)


_LIST = "tag:yaml.org,2002:seq"
_Dumper.add_representer(dict, _write_mapping)
_Dumper.add_representer(
    list, lambda dumper, values: dumper.represent_sequence(_LIST, values, flow_style=True)
)
_Dumper.add_representer(str, _write_text)
_Dumper.add_representer(float, _write_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownMachine:
    name: str
    """A device's id, or the name of a shipped description."""
    path: Path
    is_shipped: bool


def machine_path(device_id: str) -> Path:
    return data_folder() / "machines" / f"{device_id}.yaml"


def list_machines() -> list[KnownMachine]:
    """List all descriptions, those calibrated here first."""
    shipped = Path(str(files("kernelcast"))) / "data" / "machines"
    found = []
    for folder in (data_folder() / "machines", shipped):
        with suppress(OSError):
            found += [
                KnownMachine(name=path.stem, path=path, is_shipped=folder == shipped)
                for path in sorted(folder.glob("*.yaml"))
                if not path.name.startswith(".")
            ]
    return found


def find_machine(wanted: str | Path) -> MachineDescription:
    """Read the description of a device's id, a shipped name, a beginning of one, or a file."""
    text = str(wanted)
    if Path(text).suffix.lower() in {".yaml", ".yml"} or os.sep in text or isinstance(wanted, Path):
        return read_machine(Path(text))
    known, begin = list_machines(), _fold_name(text)
    matching = [one for one in known if _fold_name(one.name) == begin] or [
        one for one in known if begin and _fold_name(one.name).startswith(begin)
    ]
    if matching and matching[0].name == matching[-1].name:
        return read_machine(matching[0].path)
    several = ", ".join(one.name for one in matching)
    start = (
        f"machine {text!r} may be {several}; give more of the name" if several
        else f"there is no machine description {text!r}"
    )  # fmt: skip
    shipped, calibrated = (
        ", ".join(one.name for one in known if one.is_shipped is is_shipped) or "none"
        for is_shipped in (True, False)
    )
    raise UnknownMachineError(
        f"{start}. Calibrated here ({data_folder() / 'machines'}): {calibrated}. Shipped: "
        f"{shipped}. `kernelcast calibrate --device ID` makes one of a device of this machine; "
        "a file (.yaml) will do as well"
    )


def _fold_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


# Words of a device's name, and the description. Several boards have one chip: clocks and memory
# differ by less than from those of any other description (an H100 with HBM3 has a GH200's 132
# compute units and, by its data sheet, 0.84 to 0.98 of its memory's rate).
_BOARDS = (
    ("v100", "v100"), ("a100 40gb", "a100"), ("a100 80gb", "a100-80gb"), ("a40", "a40"),
    ("l40", "l40"), ("l40s", "l40"), ("h100 pcie", "h100-pcie"), ("h100", "gh200"),
    ("h200", "h200"), ("gh200 480gb", "gh200"), ("mi100", "mi100"), ("mi210", "mi210"),
    ("mi250", "mi210"), ("mi250x", "mi210"), ("mi300a", "mi300a"), ("mi300x", "mi300x"),
    ("rx 6900 xt", "rx-6900-xt"),
)  # fmt: skip


def find_stand_in(device: DeviceDescription) -> MachineDescription | None:
    """Find the shipped description of a whole GPU by the words of its name."""
    if device.kind is not DeviceKind.GPU:
        return None
    words = set(re.findall(r"[a-z0-9]+", f"{device.id} {device.name}".lower()))
    names = (name for board, name in _BOARDS if words.issuperset(board.split()))
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
    from kernelcast.launches.modelling.estimating import estimate_analytically, time_mwp_cwp
    from kernelcast.launches.modelling.launches import model_launch

    launch = model_launch(problem, ndrange, counters=counters, recorded=recorded)
    found = estimate_analytically(launch, machine)
    notes, quantities = [*found.notes], {**found.quantities}
    if with_rivals:
        try:
            quantities["mwp_cwp_s"] = time_mwp_cwp(launch, machine, counters)
        except KernelcastError as error:
            notes.append(f"no MWP-CWP estimate: {error}")
    if machine.id == stand_in:
        notes.append(
            f"{device_id} was not calibrated: the shipped description of {machine.name} stands in"
        )
    return replace(found, notes=tuple(notes), quantities=quantities)
