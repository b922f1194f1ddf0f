"""Codelets: what StarPU calls what we predict (file format: docs/how-to/starpu.md).

StarPU files a task's time under a number, a CRC over the sizes of its data. Source: StarPU 1.3.10
and 1.4, `src/common/hash.c` and `src/datawizard/footprint.c`. Vectors and variables are told apart
by their lengths alone there: two of different element sizes may share an entry, as they do in
StarPU's own files.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path

from kernelcast.launches.problem_file import read_problem
from kernelcast.records.errors import InputError
from kernelcast.records.problem import Problem
from kernelcast.records.yaml_files import Located, Number, load

_LARGEST_COUNT = 2**32 - 1
_MOST_IMPLEMENTATIONS = 4
"""``STARPU_MAXIMPLEMENTATIONS`` of Debian's build."""
_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORKER = re.compile(r"(?P<kind>cpu|cuda|opencl)(?P<device>\d*)(?:_impl(?P<implementation>\d))?")
_KEYS = ("data", "size_base", "footprint", "flops", "sizes", "workers")


class WorkerKind(IntEnum):
    """``enum starpu_worker_archtype``."""

    CPU = 0
    CUDA = 1
    OPENCL = 2


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Worker:
    kind: WorkerKind
    device: int = 0
    """StarPU's number of the device; 0 for every CPU core, which count as equal."""
    implementation: int = 0
    """Which of the codelet's functions for this kind."""

    def __str__(self) -> str:
        return f"{self.kind.name.lower()}{self.device}_impl{self.implementation}"


def parse_worker(text: str) -> Worker:
    match = _WORKER.fullmatch(text.strip().lower())
    if match is None:
        msg = f"worker {text!r}: expected cpu, openclN or cudaN, for example opencl0 or cpu0_impl1"
        raise InputError(msg)
    worker = Worker(
        kind=WorkerKind[match["kind"].upper()],
        device=int(match["device"] or 0),
        implementation=int(match["implementation"] or 0),
    )
    if worker.kind is WorkerKind.CPU and worker.device:
        raise InputError(f"worker {text!r}: StarPU has one model for all CPU cores; write cpu")
    if worker.implementation >= _MOST_IMPLEMENTATIONS:
        msg = f"worker {text!r}: StarPU numbers implementations 0 to {_MOST_IMPLEMENTATIONS - 1}"
        raise InputError(msg)
    return worker


# Numbers of dimensions, and of the interface, of data whose footprint depends on sizes alone.
_INTERFACES = {"vector": (1, 2), "matrix": (2, 0), "block": (3, 1), "variable": (0, 5)}


def hash_bytes(content: bytes, crc: int = 0) -> int:
    """Compute ``starpu_hash_crc32c_be_n``: CRC-32C, highest bit first, nothing inverted."""
    for byte in content:
        crc ^= byte << 24
        for _ in range(8):
            crc = ((crc << 1) & 0xFFFF_FFFF) ^ (0x1EDC6F41 if crc & 0x8000_0000 else 0)
    return crc


def hash_word(word: int, crc: int = 0) -> int:
    """Compute ``starpu_hash_crc32c_be`` of a 32-bit number, on little-endian machines."""
    return hash_bytes(word.to_bytes(4, "little"), crc)


def footprint_of_data(kind: str, counts: Sequence[int], element_bytes: int) -> int:
    """Compute what StarPU's handle of a piece of data has as its footprint: of elements per
    dimension, nx first, or of a variable's bytes."""
    if kind == "matrix":
        inner = hash_word(counts[0], counts[1])
    else:
        inner = 0
        for count in counts or (element_bytes,):
            inner = hash_word(count, inner)
    return hash_word(inner, _INTERFACES[kind][1])


def footprint_of_size_base(size: int) -> int:
    """Compute a task's footprint where the performance model has a ``size_base`` function."""
    return hash_bytes(size.to_bytes(8, "little"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which time is asked for: of a codelet's tasks of one size on one worker."""

    symbol: str
    worker: Worker
    parameters: Mapping[str, Number]
    """What the size is called."""
    footprint: int
    size_bytes: int
    """Under what StarPU files it, and what its regressions are over."""
    flops: float
    """Operations of the task, 0 where the program does not tell StarPU."""
    device_id: str = ""
    """OpenCL device's id or its beginning; empty if any will do."""
    problem: Problem | None = None
    """The kernel's launch; None for a function that is not OpenCL C."""

    @property
    def size(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.parameters.items())

    @property
    def label(self) -> str:
        return f"{self.symbol} on {self.worker} at {self.size}"


def read_codelets(path: Path) -> dict[str, tuple[Wanted, ...]]:
    """Read which times each codelet of a file needs, worker by worker."""
    whole = load(path, "codelet file", "it needs `codelets:`")
    root = whole.mapping(("codelets",), required=("codelets",))
    codelets = {name: _read_codelet(name, one) for name, one in root["codelets"].mapping().items()}
    if not codelets:
        root["codelets"].fail("names no codelet")
    return codelets


def _read_codelet(symbol: str, entry: Located) -> tuple[Wanted, ...]:
    if not _SYMBOL.fullmatch(symbol):
        entry.fail(f"codelet {symbol!r}: expected letters, digits and underscores")
    fields = entry.mapping(_KEYS, required=("sizes", "workers"))
    parameters = [
        {name: value.number() for name, value in one.mapping().items()}
        for one in fields["sizes"].items()
    ]
    if not parameters:
        fields["sizes"].fail("expected at least one size, such as `- {N: 4096}`")
    found: list[Wanted] = []
    for name, place in fields["workers"].mapping().items():
        with place.pointing_here():
            worker = parse_worker(name)
        path, device_id = None, ""
        if not place.is_null:
            keys = place.mapping(("problem", "device"), required=("problem",))
            path = keys["problem"].file()
            device_id = keys["device"].text() if "device" in keys else ""
        for one in parameters:
            problem = None if path is None else read_problem(path, parameters=one)
            footprint, size_bytes, flops = _read_size(entry, fields, one)
            found.append(Wanted(
                symbol=symbol, worker=worker, parameters=one, footprint=footprint,
                size_bytes=size_bytes, flops=flops, device_id=device_id, problem=problem,
            ))  # fmt: skip
    if not found:
        fields["workers"].fail("expected at least one worker, such as `opencl0:`")
    if len({(one.worker, one.footprint) for one in found}) < len(found):
        entry.fail(
            "two sizes on a worker have one footprint; StarPU cannot tell them apart either, give "
            "the codelet a `size_base` or `footprint`"
        )
    return tuple(found)


def _read_size(
    entry: Located, fields: Mapping[str, Located], parameters: Mapping[str, Number]
) -> tuple[int, int, float]:
    """Read footprint, bytes and operations of a codelet's tasks of one size."""
    known = {key: replace(value, names=parameters) for key, value in fields.items()}
    data = [_read_data(one) for one in known["data"].items()] if "data" in known else []
    base = known["size_base"].integer(minimum=1) if "size_base" in known else None
    if not data and base is None:
        entry.fail("give `data`, the task's vectors and matrices, or `size_base`")
    if "footprint" in known:
        footprint = known["footprint"].integer(minimum=0)
        if footprint > _LARGEST_COUNT:
            known["footprint"].fail(f"expected 32 bits, found {footprint}")
    elif base is not None:
        footprint = footprint_of_size_base(base)
    else:  # StarPU's default
        footprint = 0
        for one, _ in data:
            footprint = hash_word(one, footprint)
    flops = float(known["flops"].number()) if "flops" in known else 0.0
    if not 0 <= flops < math.inf:
        known["flops"].fail(f"expected a number of at least 0, found {flops}")
    return footprint, sum(size for _, size in data) if base is None else base, flops


def _read_data(entry: Located) -> tuple[int, int]:
    fields = entry.mapping((*_INTERFACES, "element_bytes"))
    found = [one for one in _INTERFACES if one in fields]
    if len(found) != 1:
        entry.fail(f"expected one of {', '.join(_INTERFACES)}, found {len(found)}")
    kind, (wanted, _) = found[0], _INTERFACES[found[0]]
    counts = [one.integer(minimum=1) for one in fields[kind].list_some()]
    if len(counts) != max(1, wanted):
        entry.fail(f"a {kind} of {len(counts)} sizes: expected {max(1, wanted)}")
    if not wanted:  # the size of a variable is its bytes
        element_bytes = counts.pop()
    elif "element_bytes" in fields:
        element_bytes = fields["element_bytes"].integer(minimum=1)
    else:
        entry.fail("the key `element_bytes` is missing")
    if max(*counts, element_bytes, 1) > _LARGEST_COUNT:
        msg = f"a {kind} of sizes {(*counts, element_bytes)}: expected 1 to {_LARGEST_COUNT}"
        entry.fail(f"{msg} (32 bits)")
    return footprint_of_data(kind, counts, element_bytes), math.prod(counts) * element_bytes
