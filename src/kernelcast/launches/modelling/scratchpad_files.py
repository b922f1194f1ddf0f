"""Reads scratchpad kernels and processors, and writes answers of their model as JSON."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib.resources import files
from pathlib import Path
from typing import ClassVar

from kernelcast.analytic.scratchpad.kernel import (
    Copy,
    Direction,
    DmaRequest,
    GloadRequest,
    ScratchpadKernel,
    ScratchpadMachine,
)
from kernelcast.analytic.scratchpad.model import (
    CpeSweep,
    DoubleBuffering,
    GranularityStep,
    ScratchpadTerms,
)
from kernelcast.launches.machine_file import MachineEntry, read_described, read_record
from kernelcast.launches.problem_file.located import (
    Located,
    Number,
    list_keys,
    list_of,
    load,
    pairs_of,
    read_numbers,
    read_text,
)
from kernelcast.records.errors import MachineFileError, UnknownMachineError

KEYS = ("name", "active_cpes", "parameters", "dma", "gload", "compute", "average_ilp")
CPES = "active_cpes"
"""The parameter that every description of a kernel has."""
SCHEMA = "kernelcast-scratchpad-1"
"""Of descriptions of processors."""
_DMA_KEYS = ("name", "direction", "count", "bytes", "chunk_bytes", "copies")
_COMMENT = re.compile(r"(^|\s)#.*")
_ROOT = "scratchpad machine"


class ScratchpadEntry(Located):
    """A value of a scratchpad kernel file."""

    __slots__ = ()
    whole: ClassVar[str] = "a scratchpad kernel needs dma, gload or compute"
    deepest: ClassVar[str] = "a scratchpad kernel needs mappings in lists in lists, no more"


class ScratchpadMachineEntry(MachineEntry):
    """A value in a description of a scratchpad processor."""

    __slots__ = ()
    whole: ClassVar[str] = f"a scratchpad machine needs `schema: {SCHEMA}` and all of Table I"
    deepest: ClassVar[str] = "a scratchpad machine nests three levels, no more"
    root: ClassVar[str] = _ROOT

    def number(self) -> Number:
        """Read a number, or one that says where it comes from."""
        if self.is_mapping:
            return self.mapping(("value", "origin"), required=("value",))["value"].number()
        return super().number()


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
    """Read a scratchpad kernel file."""
    path = Path(path)
    what = "scratchpad kernel"
    bare = replace(load(path, read_text(path, what), ScratchpadEntry), key=what)
    given = parameters or {}
    entries = bare.mapping(KEYS)
    names: dict[str, Number] = {CPES: 64}
    if CPES in entries:
        names[CPES] = entries[CPES].integer(minimum=1)
    if active_cpes is not None:
        names[CPES] = active_cpes
    found = pairs_of(entries.get("parameters"))
    if CPES in found:
        found[CPES].fail("is no parameter; write it as a key of the file")
    names = read_numbers(bare, found, given, names)
    root = replace(bare, names=names)
    entries = root.mapping(KEYS)
    compute = pairs_of(entries.get("compute"))
    with root.pointing_here():
        return ScratchpadKernel(
            name=entries["name"].text() if "name" in entries else path.stem,
            active_cpes=int(names[CPES]),
            dma=tuple(_read_dma(one) for one in list_of(entries.get("dma"))),
            gloads=tuple(_read_gload(one) for one in list_of(entries.get("gload"))),
            compute={kind: float(value.number()) for kind, value in compute.items()},
            average_ilp=float(entries["average_ilp"].number()) if "average_ilp" in entries else 1.0,
        )


def depends_on_cpes(path: Path) -> bool:
    """Tell whether a file's numbers change with the number of active CPEs."""
    text = _COMMENT.sub("", path.read_text(encoding="utf-8"))
    return "{" + CPES + "}" in text.replace(" ", "")


def _read_dma(entry: ScratchpadEntry) -> DmaRequest:
    parts = entry.mapping(_DMA_KEYS, required=("direction",))
    if ("copies" in parts) == ("bytes" in parts):
        entry.fail("give either `bytes`, or `copies` with the bytes of each array")
    keys = ("bytes", "chunk_bytes")
    copies = [(entry, {key: parts[key] for key in keys if key in parts})]
    if "copies" in parts:
        copies = [(one, one.mapping(keys, required=("bytes",))) for one in list_of(parts["copies"])]
    with entry.pointing_here():
        return DmaRequest(
            name=parts["name"].text() if "name" in parts else entry.key,
            direction=Direction(parts["direction"].choice(Direction)),
            copies=tuple(read_record(Copy, one, values) for one, values in copies),
            count=float(parts["count"].number()) if "count" in parts else 1.0,
        )


def _read_gload(entry: ScratchpadEntry) -> GloadRequest:
    parts = entry.mapping(("name", "bytes", "count"))
    name = parts.pop("name").text() if "name" in parts else entry.key
    return read_record(GloadRequest, entry, parts, name=name)


def list_scratchpads() -> dict[str, Path]:
    """List the shipped scratchpad processors by their names."""
    folder = Path(str(files("kernelcast"))) / "data" / "scratchpads"
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def find_scratchpad(wanted: str | Path) -> ScratchpadMachine:
    """Find and read a scratchpad processor: a shipped one by its name, or a file (.yaml)."""
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
    """Read a description of a scratchpad processor."""
    text = read_text(path, _ROOT, MachineFileError)
    return read_described(ScratchpadMachine, load(path, text, ScratchpadMachineEntry), SCHEMA)


def terms_to_json(terms: ScratchpadTerms, machine: ScratchpadMachine) -> dict[str, object]:
    """Give every term of a kernel."""
    kernel = terms.kernel
    return {
        "kernel": kernel.name,
        "machine": machine.id,
        **_pick(kernel, "active_cpes", "compute", "average_ilp", "notes"),
        **_times(terms),
        **_pick(terms, "copy_in_s", "is_fully_overlapped"),
        "dma": asdict(terms.dma),
        "gload": asdict(terms.gload),
    }


def granularity_to_json(steps: Sequence[GranularityStep]) -> list[dict[str, object]]:
    """Give a kernel with smaller and smaller DMA requests."""
    return [
        {
            **_pick(one, "parts", "smallest_bytes", "saving_s", "equation_13_s"),
            "dma_requests": one.terms.dma.requests,
            **_times(one.terms),
        }
        for one in steps
    ]


def double_buffering_to_json(found: DoubleBuffering) -> dict[str, object]:
    """Give what double buffering would save."""
    names = ("saving_s", "equation_14_s", "t_total_s", "needed_bytes", "fits")
    return {"groups": found.terms.dma.groups, **_pick(found, *names)}


def cpes_to_json(sweep: CpeSweep) -> dict[str, object]:
    """Give a kernel on several numbers of CPEs."""
    own = sweep.best_of_one_group
    return {
        "best_active_cpes": sweep.best.active_cpes,
        "best_of_one_group": None if own is None else own.active_cpes,
        "cpes": [
            _pick(one, "active_cpes", "saving_s", "equation_15_s") | _times(one.terms)
            for one in sweep.points
        ],
        "refused": [{"active_cpes": count, "reason": reason} for count, reason in sweep.refused],
    }


def _pick(record: object, *names: str) -> dict[str, object]:
    return {name: getattr(record, name) for name in names}


def _times(terms: ScratchpadTerms) -> dict[str, object]:
    return {
        **_pick(terms, "t_total_s", "t_mem_s", "t_comp_s", "t_overlap_s"),
        "t_dma_s": terms.dma.time_s,
        "t_g_s": terms.gload.time_s,
    }
