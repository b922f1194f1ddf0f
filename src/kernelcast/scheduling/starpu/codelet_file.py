"""Reads a file of codelets (format: docs/how-to/starpu.md): what StarPU calls what we predict."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.problem_file.located import Located, Number, load
from kernelcast.launches.problem_file.parts import read_text
from kernelcast.records.errors import InputError
from kernelcast.records.problem import Problem
from kernelcast.scheduling.starpu.footprints import (
    DataKind,
    TaskData,
    footprint_of_data,
    footprint_of_size_base,
)
from kernelcast.scheduling.starpu.records import Worker, check_symbol, parse_worker

_KEYS = ("data", "size_base", "footprint", "flops", "sizes", "workers")
_LARGEST_FOOTPRINT = 2**32 - 1


class _CodeletEntry(Located):
    """A value of a codelet file."""

    error: ClassVar[type[InputError]] = InputError
    whole: ClassVar[str] = "it needs `codelets:`"
    deepest: ClassVar[str] = "codelets need lists in mappings in mappings, no more"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSize:
    """One size of a codelet's tasks."""

    parameters: Mapping[str, Number]
    """What the size is called."""
    footprint: int
    size_bytes: int
    """Under what StarPU files it, and what its regressions are over."""
    flops: float
    """Operations of the task, 0 where the program does not tell StarPU."""

    @property
    def label(self) -> str:
        """The parameters as a text."""
        return ", ".join(f"{name}={value}" for name, value in self.parameters.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeletWorker:
    """Where a codelet can run, and what is known of its time there."""

    worker: Worker
    """The kind of worker."""
    device_id: str
    """The OpenCL device's id or its beginning; empty if any will do."""
    problems: tuple[Problem, ...]
    """The kernel's launch at each size; empty for a function that is not OpenCL C."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Codelet:
    """A codelet with the sizes and workers that times are wanted for."""

    symbol: str
    sizes: tuple[TaskSize, ...]
    workers: tuple[CodeletWorker, ...]


def read_codelets(path: Path) -> tuple[Codelet, ...]:
    """Read a file of codelets."""
    text = read_text(path, "codelet file", InputError)
    root = load(path, text, _CodeletEntry).mapping(("codelets",), required=("codelets",))
    codelets = tuple(_read_codelet(name, one) for name, one in root["codelets"].pairs().items())
    if not codelets:
        root["codelets"].fail("names no codelet")
    return codelets


def _read_codelet(symbol: str, entry: _CodeletEntry) -> Codelet:
    try:
        check_symbol(symbol)
    except InputError as error:
        entry.fail(str(error))
    fields = entry.mapping(_KEYS, required=("sizes", "workers"))
    parameters = [
        {name: value.number() for name, value in one.pairs().items()}
        for one in fields["sizes"].items()
    ]
    if not parameters:
        fields["sizes"].fail("expected at least one size, such as `- {N: 4096}`")
    workers = tuple(
        _read_worker(name, one, parameters) for name, one in fields["workers"].pairs().items()
    )
    if not workers:
        fields["workers"].fail("expected at least one worker, such as `opencl0:`")
    return Codelet(
        symbol=symbol,
        sizes=tuple(_read_size(entry, fields, one) for one in parameters),
        workers=workers,
    )


def _read_size(
    entry: _CodeletEntry, fields: Mapping[str, _CodeletEntry], parameters: Mapping[str, Number]
) -> TaskSize:
    known = {
        key: _CodeletEntry(value.node, value.path, value.key, parameters)
        for key, value in fields.items()
    }
    data = tuple(_read_data(one) for one in known["data"].items()) if "data" in known else ()
    base = known["size_base"].integer(minimum=1) if "size_base" in known else None
    if not data and base is None:
        entry.fail("give `data`, the task's vectors and matrices, or `size_base`")
    if "footprint" in known:
        footprint = known["footprint"].integer(minimum=0)
        if footprint > _LARGEST_FOOTPRINT:
            known["footprint"].fail(f"expected 32 bits, found {footprint}")
    elif base is not None:
        footprint = footprint_of_size_base(base)
    else:
        footprint = footprint_of_data(data)
    return TaskSize(
        parameters=parameters,
        footprint=footprint,
        size_bytes=base if base is not None else sum(one.bytes for one in data),
        flops=float(known["flops"].number()) if "flops" in known else 0.0,
    )


def _read_data(entry: _CodeletEntry) -> TaskData:
    kinds = tuple(one.value for one in DataKind)
    fields = entry.mapping((*kinds, "element_bytes"))
    found = [one for one in kinds if one in fields]
    if len(found) != 1:
        entry.fail(f"expected one of {', '.join(kinds)}, found {len(found)}")
    value = fields[found[0]]
    sizes = value.items() if value.is_list else [value]
    counts = tuple(one.integer(minimum=1) for one in sizes)
    kind = DataKind(found[0])
    try:
        if kind is DataKind.VARIABLE:  # its size is its bytes
            return TaskData(kind=kind, counts=counts[1:], element_bytes=counts[0])
        if "element_bytes" not in fields:
            entry.fail("the key `element_bytes` is missing")
        return TaskData(
            kind=kind, counts=counts, element_bytes=fields["element_bytes"].integer(minimum=1)
        )
    except InputError as error:
        if str(error).startswith(str(entry.path)):
            raise
        entry.fail(str(error))


def _read_worker(name: str, entry: _CodeletEntry, sizes: list[dict[str, Number]]) -> CodeletWorker:
    try:
        worker = parse_worker(name)
    except InputError as error:
        entry.fail(str(error))
    if entry.is_null:
        return CodeletWorker(worker=worker, device_id="", problems=())
    fields = entry.mapping(("problem", "device"), required=("problem",))
    path = fields["problem"].file(entry.path.parent)
    return CodeletWorker(
        worker=worker,
        device_id=fields["device"].text() if "device" in fields else "",
        problems=tuple(read_problem(path, parameters=one) for one in sizes),
    )
