"""Finds and reads descriptions of scratchpad processors."""

from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

import yaml

from kernelcast.analytic.scratchpad.kernel import ScratchpadMachine
from kernelcast.launches.machine_file.reader import MachineEntry
from kernelcast.launches.problem_file.located import load
from kernelcast.launches.problem_file.parts import read_text
from kernelcast.records.errors import MachineFileError, UnknownMachineError

SCHEMA = "kernelcast-scratchpad-1"
_WHOLE = ("transaction_bytes", "cpes_per_group", "core_groups", "spm_bytes", "gload_bytes")
_REAL = ("clock_hz", "bandwidth_bytes_per_s", "delay_cycles", "base_latency_cycles")
KEYS = ("schema", "id", "name", *_REAL, *_WHOLE, "latencies_cycles")
"""Keys of a file, all required."""
_ROOT = "scratchpad machine"


class ScratchpadMachineEntry(MachineEntry):
    """A value in a description of a scratchpad processor."""

    __slots__ = ()
    whole: ClassVar[str] = f"a scratchpad machine needs `schema: {SCHEMA}` and all of Table I"
    deepest: ClassVar[str] = "a scratchpad machine nests three levels, no more"
    root: ClassVar[str] = _ROOT


def list_scratchpads() -> dict[str, Path]:
    """List the shipped scratchpad processors by their names."""
    folder = Path(str(files("kernelcast"))) / "data" / "scratchpads"
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def find_scratchpad(wanted: str | Path) -> ScratchpadMachine:
    """Find and read a scratchpad processor.

    Parameters
    ----------
    wanted : str or Path
        Name of a shipped one, or a file (.yaml).

    Raises
    ------
    UnknownMachineError
        If there is none of that name; lists those there are.
    MachineFileError
        If the file cannot be read or used.

    Examples
    --------
    >>> find_scratchpad("sw26010").base_latency_cycles
    220.0
    """
    text = str(wanted)
    shipped = list_scratchpads()
    if text.lower() in shipped:
        return read_scratchpad(shipped[text.lower()])
    if isinstance(wanted, Path) or Path(text).suffix.lower() in {".yaml", ".yml"}:
        return read_scratchpad(Path(text))
    msg = (
        f"there is no scratchpad machine {text!r}; shipped: {', '.join(shipped)}. A file (.yaml) "
        "will do as well: examples/scratchpad/machines/template.yaml has its keys"
    )
    raise UnknownMachineError(msg)


def read_scratchpad(path: Path) -> ScratchpadMachine:
    """Read a description of a scratchpad processor.

    Raises
    ------
    MachineFileError
        If it cannot be read or says something that cannot be used.
    """
    text = read_text(path, _ROOT, MachineFileError)
    root = replace(load(path, text, ScratchpadMachineEntry), key=_ROOT)
    entries = root.mapping(KEYS, required=KEYS)
    if entries["schema"].raw_text() != SCHEMA:
        entries["schema"].fail(f"expected {SCHEMA}, found {entries['schema'].raw_text()!r}")
    values: dict[str, Any] = {name: _read_number(entries[name]) for name in _REAL}
    values |= {name: _read_whole(entries[name]) for name in _WHOLE}
    latencies = entries["latencies_cycles"].pairs()
    with root.pointing_here():
        return ScratchpadMachine(
            id=entries["id"].text(),
            name=entries["name"].text(),
            latencies_cycles={kind: _read_number(value) for kind, value in latencies.items()},
            **values,
        )


def _read_number(entry: ScratchpadMachineEntry) -> float:
    """Read a number, or one that says where it comes from."""
    if isinstance(entry.node, yaml.MappingNode):
        entry = entry.mapping(("value", "origin"), required=("value",))["value"]
    return float(entry.number())


def _read_whole(entry: ScratchpadMachineEntry) -> int:
    number = _read_number(entry)
    if not number.is_integer():
        entry.fail(f"expected a whole number, found {number}")
    return int(number)
