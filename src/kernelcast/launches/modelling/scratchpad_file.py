"""Reads descriptions of kernels for the scratchpad model: requests and instructions of a CPE."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from kernelcast.analytic.scratchpad.kernel import (
    Copy,
    Direction,
    DmaRequest,
    GloadRequest,
    ScratchpadKernel,
)
from kernelcast.launches.problem_file.located import Located, Number, list_keys, load
from kernelcast.launches.problem_file.parts import list_of, pairs_of, read_numbers, read_text

KEYS = ("name", "active_cpes", "parameters", "dma", "gload", "compute", "average_ilp")
CPES = "active_cpes"
"""The parameter that every description has."""
_DMA_KEYS = ("name", "direction", "count", "bytes", "chunk_bytes", "copies")
_COPY_KEYS = ("bytes", "chunk_bytes")
_GLOAD_KEYS = ("name", "bytes", "count")
_USUAL_CPES = 64
_COMMENT = re.compile(r"(^|\s)#.*")


class ScratchpadEntry(Located):
    """A value of a scratchpad kernel file."""

    __slots__ = ()
    whole: ClassVar[str] = "a scratchpad kernel needs dma, gload or compute"
    deepest: ClassVar[str] = "a scratchpad kernel needs mappings in lists in lists, no more"

    def positive(self) -> float:
        """Read a number above 0."""
        number = self.number()
        if number <= 0:
            self.fail(f"expected a number above 0, found {number:g}")
        return float(number)


def is_scratchpad_file(path: Path) -> bool:
    """Tell whether a YAML file describes a scratchpad kernel; one that cannot be read does not."""
    keys = list_keys(path)
    return bool(keys) and not {"args", "global_size"} & keys


def read_scratchpad_kernel(
    path: Path | str,
    *,
    active_cpes: int | None = None,
    parameters: Mapping[str, Number] | None = None,
) -> ScratchpadKernel:
    """Read a scratchpad kernel file.

    Parameters
    ----------
    path : Path or str
        The file; docs/how-to/model-a-scratchpad.md explains its keys.
    active_cpes : int, optional
        Replaces the file's number. Values may be formulas with ``{active_cpes}``.
    parameters : mapping of str to number, optional
        Values that replace those of the file's `parameters`.

    Raises
    ------
    ProblemFileError
        If it cannot be read or used; the message begins with file and line.
    """
    path = Path(path)
    what = "scratchpad kernel"
    bare = replace(load(path, read_text(path, what), ScratchpadEntry), key=what)
    names = _read_names(bare, active_cpes, parameters or {})
    root = replace(bare, names=names)
    entries = root.mapping(KEYS)
    with root.pointing_here():
        return ScratchpadKernel(
            name=entries["name"].text() if "name" in entries else path.stem,
            active_cpes=int(names[CPES]),
            dma=tuple(_read_dma(one) for one in list_of(entries.get("dma"))),
            gloads=tuple(_read_gload(one) for one in list_of(entries.get("gload"))),
            compute=_read_compute(entries.get("compute")),
            average_ilp=float(entries["average_ilp"].number()) if "average_ilp" in entries else 1.0,
        )


def depends_on_cpes(path: Path) -> bool:
    """Tell whether a file's numbers change with the number of active CPEs."""
    text = _COMMENT.sub("", path.read_text(encoding="utf-8"))
    return "{" + CPES + "}" in text.replace(" ", "")


def _read_names(
    root: ScratchpadEntry, active_cpes: int | None, given: Mapping[str, Number]
) -> dict[str, Number]:
    entries = root.mapping(KEYS)
    names: dict[str, Number] = {CPES: _USUAL_CPES}
    if CPES in entries:
        names[CPES] = entries[CPES].integer(minimum=1)
    if active_cpes is not None:
        names[CPES] = active_cpes
    found = pairs_of(entries.get("parameters"))
    if CPES in found:
        found[CPES].fail("is no parameter; write it as a key of the file")
    return read_numbers(root, found, given, names)


def _read_dma(entry: ScratchpadEntry) -> DmaRequest:
    parts = entry.mapping(_DMA_KEYS, required=("direction",))
    if ("copies" in parts) == ("bytes" in parts):
        entry.fail("give either `bytes`, or `copies` with the bytes of each array")
    copies = list_of(parts["copies"]) if "copies" in parts else [entry]
    with entry.pointing_here():
        return DmaRequest(
            name=parts["name"].text() if "name" in parts else entry.key,
            direction=_read_direction(parts["direction"]),
            copies=tuple(_read_copy(one, is_own=one is entry) for one in copies),
            count=parts["count"].positive() if "count" in parts else 1.0,
        )


def _read_direction(entry: ScratchpadEntry) -> Direction:
    text = entry.text()
    if text not in tuple(Direction):
        entry.fail(f"expected one of {', '.join(Direction)}; found {text!r}")
    return Direction(text)


def _read_copy(entry: ScratchpadEntry, *, is_own: bool) -> Copy:
    parts = entry.mapping(_DMA_KEYS if is_own else _COPY_KEYS, required=("bytes",))
    chunk = parts.get("chunk_bytes")
    with entry.pointing_here():
        return Copy(
            bytes=parts["bytes"].positive(),
            chunk_bytes=None if chunk is None or chunk.is_null else chunk.positive(),
        )


def _read_gload(entry: ScratchpadEntry) -> GloadRequest:
    parts = entry.mapping(_GLOAD_KEYS, required=("bytes", "count"))
    with entry.pointing_here():
        return GloadRequest(
            name=parts["name"].text() if "name" in parts else entry.key,
            bytes=parts["bytes"].positive(),
            count=parts["count"].positive(),
        )


def _read_compute(entry: ScratchpadEntry | None) -> dict[str, float]:
    return {kind: float(value.number()) for kind, value in pairs_of(entry).items()}
