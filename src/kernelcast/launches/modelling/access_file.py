"""Reads access files: YAML with arrays, an index space and what a work-item touches."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import yaml

from kernelcast.expressions.accesses import AccessKind, MemoryAccess
from kernelcast.features.written_accesses import (
    WrittenArray,
    WrittenKernel,
    make_array,
    read_access,
    read_array,
)
from kernelcast.launches.modelling.folding import parse_fold
from kernelcast.launches.problem_file.located import (
    Located,
    Number,
    items_of,
    list_keys,
    load,
    pairs_of,
    read_ndrange,
    read_numbers,
    read_text,
)
from kernelcast.records.errors import ProblemFileError
from kernelcast.records.ndrange import NDRange

KEYS = (
    "kernel", "parameters", "scalars", "arrays", "global_size", "local_size", "global_offset",
    "fold", "loads", "stores", "atomics", "operations", "registers",
)  # fmt: skip
_ARRAY_KEYS = ("type", "extents", "space", "shift_bytes")
_SPACES = ("global", "constant", "local")
_KINDS = {
    "loads": AccessKind.LOAD,
    "stores": AccessKind.STORE,
    "atomics": AccessKind.ATOMIC,
}


class AccessEntry(Located):
    """A value of an access file."""

    __slots__ = ()
    whole: ClassVar[str] = "an access file needs arrays, global_size, and loads or stores"
    deepest: ClassVar[str] = "an access file needs lists in mappings in one mapping, no more"

    @property
    def is_text(self) -> bool:
        """Whether the value is a text."""
        return isinstance(self.node, yaml.ScalarNode) and not self.is_null

    def formula(self) -> str:
        """Read arithmetic over parameters as its value, anything else as it stands."""
        try:
            return str(self.number())
        except ProblemFileError:
            return self.text()


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLaunch:
    """A kernel that was written down, with its index space."""

    kernel: WrittenKernel
    """What a work-item touches and executes; each global id is one update."""
    ndrange: NDRange
    """One work-item per update."""
    folds: tuple[tuple[int, int], ...] = ()
    """Axes and updates per work-item, see `kernelcast.launches.modelling.folding`."""
    registers: int | None = None
    """32-bit registers per work-item."""


def is_access_file(path: Path) -> bool:
    """Tell whether a YAML file lists accesses; one that cannot be read does not."""
    return bool({"arrays", *_KINDS} & list_keys(path))


def read_access_file(
    path: Path | str, *, parameters: Mapping[str, Number] | None = None
) -> WrittenLaunch:
    """Read an access file."""
    path = Path(path)
    bare = load(path, read_text(path, "access file"), AccessEntry)
    section = pairs_of(bare.mapping(KEYS).get("parameters"))
    root = replace(bare, key="access file", names=read_numbers(bare, section, parameters or {}))
    entries = root.mapping(KEYS, required=("arrays", "global_size"))
    with root.pointing_here():
        kernel = _read_kernel(entries, path)
    return WrittenLaunch(
        kernel=kernel,
        ndrange=read_ndrange(entries),
        folds=tuple(_read_folds(entries.get("fold"))),
        registers=entries["registers"].integer(minimum=1) if "registers" in entries else None,
    )


def _read_kernel(entries: Mapping[str, AccessEntry], path: Path) -> WrittenKernel:
    scalars = {
        name: value.integer(minimum=-(2**63))
        for name, value in pairs_of(entries.get("scalars")).items()
    }
    arrays = {
        name: _read_array(name, value, tuple(scalars))
        for name, value in pairs_of(entries["arrays"]).items()
    }
    accesses: list[MemoryAccess] = []
    for key, kind in _KINDS.items():
        for item in items_of(entries.get(key)):
            accesses.append(_read_access(item, arrays, kind, tuple(scalars), len(accesses)))
    return WrittenKernel(
        name=entries["kernel"].text() if "kernel" in entries else path.stem,
        arrays=tuple(arrays.values()),
        accesses=tuple(accesses),
        scalars=scalars,
        operations={
            name: float(value.number())
            for name, value in pairs_of(entries.get("operations")).items()
        },
    )


def _read_array(name: str, entry: AccessEntry, scalars: tuple[str, ...]) -> WrittenArray:
    with entry.pointing_here():
        if entry.is_text:
            return read_array(f"{name}:{entry.text()}", scalars)
        parts = entry.mapping(_ARRAY_KEYS, required=("type",))
        space = parts["space"].text() if "space" in parts else _SPACES[0]
        if space not in _SPACES:
            parts["space"].fail(f"expected one of {', '.join(_SPACES)}; found {space!r}")
        extents = [one.formula() for one in items_of(parts.get("extents"))]
        array = make_array(name, f"{space} {parts['type'].text()}", extents, scalars)
        shift = parts["shift_bytes"].integer(minimum=0) if "shift_bytes" in parts else 0
        return replace(array, shift_bytes=shift)


def _read_access(
    item: AccessEntry,
    arrays: Mapping[str, WrittenArray],
    kind: AccessKind,
    scalars: tuple[str, ...],
    site: int,
) -> MemoryAccess:
    text = item.text()
    with item.pointing_here():
        found = read_access(text, arrays, kind=kind, scalars=scalars, site=site)
    return replace(found, line=item.node.start_mark.line + 1)


def _read_folds(entry: AccessEntry | None) -> list[tuple[int, int]]:
    folds = []
    for item in items_of(entry):
        with item.pointing_here():
            folds.append(parse_fold(item.text()))
    return folds
