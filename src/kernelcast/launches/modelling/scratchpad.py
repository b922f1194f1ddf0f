"""Scratchpad kernels from files or from OpenCL C, processors from files, and answers as JSON."""

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np

from kernelcast.analytic.scratchpad import (
    Copy,
    Direction,
    Request,
    ScratchpadKernel,
    ScratchpadMachine,
    ScratchpadTerms,
    Variant,
)
from kernelcast.expressions import EvaluationError
from kernelcast.expressions.accesses import AccessKind, MemoryAccess, ModelledLaunch
from kernelcast.expressions.axes import bind_ids, bind_names
from kernelcast.features.counting.static import (
    Points,
    choose_work_groups,
    run_guarded,
    widen,
)
from kernelcast.launches.modelling.launches import model_kernel
from kernelcast.records.errors import (
    InputError,
    MachineFileError,
    ProblemFileError,
    UnknownMachineError,
)
from kernelcast.records.operations import MemorySpace, NumberClass, OperationKind
from kernelcast.records.plain import pick
from kernelcast.records.problem import Problem
from kernelcast.records.yaml_files import (
    Number,
    combine_parameters,
    list_keys,
    load,
    read_described,
)

CPES = "active_cpes"
"""The parameter that every description of a kernel has."""
SCHEMA = "kernelcast-scratchpad-1"
"""Of descriptions of processors."""
_COMMENT = re.compile(r"(^|\s)#.*")


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
    path = Path(path)
    needs = "a scratchpad kernel needs dma, gload or compute"
    root = load(path, "scratchpad kernel", needs, ProblemFileError)
    elsewhere = (CPES, "parameters")
    entries = root.list_arguments(_make_kernel, "cpes", also=elsewhere)
    if active_cpes is None:
        active_cpes = entries[CPES].integer(minimum=1) if CPES in entries else 64
    root = replace(root, names={CPES: active_cpes})
    names = next(combine_parameters(root, entries.get("parameters"), parameters or {}))
    if names[CPES] != active_cpes:
        root.fail(f"{CPES} is no parameter; write it as a key of the file")
    root = replace(root, names=names)
    return root.call(_make_kernel, {"name": path.stem}, elsewhere, cpes=active_cpes)


def depends_on_cpes(path: Path) -> bool:
    """Tell whether a file's numbers change with the number of active CPEs."""
    text = _COMMENT.sub("", path.read_text(encoding="utf-8"))
    return "{" + CPES + "}" in text.replace(" ", "")


def _make_dma(
    *,
    name: str,
    direction: Direction,
    count: float = 1.0,
    bytes: float | None = None,  # noqa: A002 - the key of the file
    chunk_bytes: float | None = None,
    copies: tuple[Copy, ...] = (),
) -> Request:
    if bool(copies) == (bytes is not None):
        raise InputError("give either `bytes`, or `copies` with the bytes of each array")
    if bytes is not None:
        copies = (Copy(bytes=bytes, chunk_bytes=chunk_bytes),)
    return Request(name=name, direction=direction, copies=copies, count=count)


def _make_gload(*, name: str, bytes: float, count: float) -> Request:  # noqa: A002 - as above
    return Request(name=name, copies=(Copy(bytes=bytes),), count=count)


_Dma: TypeAlias = Annotated[Request, lambda one: one.call(_make_dma, {"name": one.key})]
_Gload: TypeAlias = Annotated[Request, lambda one: one.call(_make_gload, {"name": one.key})]


def _make_kernel(
    *,
    cpes: int,
    name: str,
    dma: tuple[_Dma, ...] = (),
    gload: tuple[_Gload, ...] = (),
    compute: Mapping[str, float] = MappingProxyType({}),
    average_ilp: float = 1.0,
) -> ScratchpadKernel:
    return ScratchpadKernel(
        name=name, active_cpes=cpes, dma=dma, gloads=gload, compute=compute,
        average_ilp=average_ilp,
    )  # fmt: skip


def find_scratchpad(wanted: str | Path) -> ScratchpadMachine:
    """Find and read a scratchpad processor: a shipped one by its name, or a file (.yaml)."""
    folder = Path(str(files("kernelcast"))) / "data" / "scratchpads"
    shipped = {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    path = shipped.get(str(wanted).lower(), Path(wanted))
    if isinstance(wanted, str) and path.suffix.lower() not in {".yaml", ".yml"}:
        raise UnknownMachineError(
            f"there is no scratchpad machine {wanted!r}; shipped: {', '.join(shipped)}. A file "
            "(.yaml) will do as well: examples/scratchpad/machines/template.yaml has its keys"
        )
    needs = f"a scratchpad machine needs `schema: {SCHEMA}` and all of Table I"
    root = load(path, "scratchpad machine", needs, MachineFileError)
    return read_described(ScratchpadMachine, root, SCHEMA)


def terms_to_json(terms: ScratchpadTerms, machine: ScratchpadMachine) -> dict[str, object]:
    kernel = terms.kernel
    return {
        **pick(kernel, "active_cpes", "compute", "average_ilp", "notes", kernel="name"),
        "machine": machine.id,
        **_times(terms),
        **pick(terms, "copy_in_s", "is_fully_overlapped"),
        "dma": asdict(terms.dma),
        "gload": asdict(terms.gload),
    }


def variants_to_json(
    found: Sequence[Variant], number: str, equation: str
) -> list[dict[str, object]]:
    """Give each variant: what varies by its name, savings, the equation's by its name, times."""
    names = {number: "number", "saving_s": "saving_s", equation: "equation_s"}
    return [pick(one, **names) | _times(one.terms) for one in found]


def _times(terms: ScratchpadTerms) -> dict[str, object]:
    names = ("t_total_s", "t_mem_s", "t_comp_s", "t_overlap_s")
    return pick(terms, *names, t_dma_s="dma.time_s", t_g_s="gload.time_s")


_FAR = frozenset({MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.GENERIC})
_SLOW = frozenset({OperationKind.DIVIDE, OperationKind.SPECIAL, OperationKind.SPECIAL_NATIVE})
_FIXED = (
    OperationKind.ADD, OperationKind.MULTIPLY, OperationKind.FUSED, OperationKind.LOGIC,
    OperationKind.COMPARE, OperationKind.SELECT,
)  # fmt: skip
_COUNTED_AS = {
    **{(kind, number): "div_sqrt" for kind in _SLOW for number in NumberClass},
    **{(kind, NumberClass.FLOAT): "floating" for kind in (*_FIXED, OperationKind.CONVERT)},
    **{(kind, NumberClass.INTEGER): "fixed" for kind in _FIXED},
}
"""What operations are to a CPE; others, such as jumps, take no time of their own."""
_ROOTS = frozenset({"sqrt", "rsqrt", "native_sqrt", "native_rsqrt", "half_sqrt", "half_rsqrt"})


_OPPOSITE = {AccessKind.LOAD: AccessKind.STORE, AccessKind.STORE: AccessKind.LOAD}


class GroupRequests(NamedTuple):
    """What a work-group's executions of one access amount to, mean of some work-groups."""

    executions: float
    """By all its work-items."""
    requests: float
    """Executions that at least one work-item takes part in, all together."""
    bytes: float
    chunks: float
    """Of a request: distinct bytes, and contiguous pieces of memory that they lie in. 0 where the
    address is not known."""


def derive_scratchpad_kernel(
    problem: Problem,
    machine: ScratchpadMachine,
    *,
    active_cpes: int | None = None,
    average_ilp: float | None = None,
) -> ScratchpadKernel:
    """Derive a scratchpad kernel from a problem with OpenCL C.

    A work-group runs on one CPE, work-item after work-item, and a CPE runs as many work-groups as
    its share. A statement that moves data between global and local memory is a copy of the whole
    work-group by DMA; copies of one direction in the same block make one request, for the barrier
    behind them waits for all. Every other access to global or constant memory is a Gload. The
    analysis does not say where a value goes: a load of global memory beside a store to local memory
    in the same line, block and loops is taken for a copy, and the other way round.
    """
    model = model_kernel(problem)
    launch = model.launch()
    if launch.local_bytes > machine.spm_bytes:
        raise InputError(
            f"{launch.kernel}: a work-group has {launch.local_bytes:,} bytes of local memory; a "
            f"scratchpad of {machine.name} holds {machine.spm_bytes:,}; give smaller tiles"
        )
    groups = launch.ndrange.work_group_count
    cpes = min(groups, machine.cpes_per_group if active_cpes is None else active_cpes)
    share = math.ceil(groups / cpes)
    near = {
        (one.line, one.block, _loops(one), one.kind)
        for one in launch.accesses
        if one.space is MemorySpace.LOCAL and one.line
    }
    copies: dict[tuple[object, ...], list[tuple[MemoryAccess, GroupRequests]]] = {}
    gloads: list[Request] = []
    by_dma = 0.0
    far = [one for one in launch.accesses if one.space in _FAR]
    for access in far:
        counted = count_group_requests(access, launch)
        other = (access.line, access.block, _loops(access), _OPPOSITE.get(access.kind))
        if other in near and counted.bytes:
            key = access.kind, access.block, _loops(access)
            copies.setdefault(key, []).append((access, counted))
            by_dma += counted.executions * share
        elif counted.executions and access.bytes:
            pieces = math.ceil(access.bytes / machine.gload_bytes)
            # An atomic operation loads and stores.
            moves = 2 if access.kind is AccessKind.ATOMIC else 1
            name = f"{access.text} (line {access.line})"
            count = counted.executions * share * pieces * moves
            copy = Copy(bytes=access.bytes / pieces)
            gloads.append(Request(name=name, copies=(copy,), count=count))
    dma = []
    for parts in copies.values():
        accesses, requests = zip(*parts, strict=True)
        lines = ", ".join(dict.fromkeys(str(one.line) for one in accesses))
        names = ", ".join(dict.fromkeys(one.buffer or "?" for one in accesses))
        dma.append(
            Request(
                name=f"{names} (line {lines})",
                direction=Direction.IN if accesses[0].kind is AccessKind.LOAD else Direction.OUT,
                copies=tuple(
                    Copy(bytes=one.bytes, chunk_bytes=one.bytes / one.chunks) for one in requests
                ),
                count=max(one.requests for one in requests) * share,
            )
        )
    work_items = launch.ndrange.work_group_size * share
    counts = {"floating": 0.0, "fixed": 0.0, "spm": 0.0, "div_sqrt": 0.0}
    for operation, times in launch.executed.operations.items():
        if kind := _COUNTED_AS.get((operation.kind, operation.number)):
            counts[kind] += times * operation.lanes * work_items
    touched = sum(
        launch.executed.count_memory(MemorySpace.LOCAL, is_store=is_store)
        for is_store in (True, False)
    )
    counts["spm"] = max(0.0, touched * work_items - by_dma)
    gaps = [f"line {one.line}: {one.reason}" for one in model.facts.gaps]
    notes = _note(launch, far, sum(map(len, copies.values())), average_ilp)
    return ScratchpadKernel(
        name=problem.name,
        active_cpes=cpes,
        dma=tuple(dma),
        gloads=tuple(gloads),
        compute=counts,
        average_ilp=1.0 if average_ilp is None else average_ilp,
        notes=(*notes, *gaps),
    )


def _loops(access: MemoryAccess) -> tuple[str, ...]:
    return tuple(one.name for one in access.loops)


def _note(
    launch: ModelledLaunch, far: Sequence[MemoryAccess], copies: int, average_ilp: float | None
) -> list[str]:
    told = {
        "average ILP: no source tells it, 1 is taken, the slowest; give --ilp": average_ilp is None,
        "special functions count as one division or root each, which is too little": any(
            one.kind in _SLOW - {OperationKind.DIVIDE} and one.name not in _ROOTS
            for one in launch.executed.operations
        ),
        f"{copies} accesses beside local memory are taken for DMA copies of the work-group": copies,
        "atomic operations count as two Gload requests; waiting is left out": any(
            one.kind is AccessKind.ATOMIC for one in far
        ),
        "accesses under conditions on data count as executed half the time": any(
            not one.guard.is_exact for one in far
        ),
    }
    return [
        *(one for one in launch.notes if "recorded addresses" not in one),
        *(note for note, holds in told.items() if holds),
    ]


def count_group_requests(access: MemoryAccess, launch: ModelledLaunch) -> GroupRequests:
    """Count an access's requests per work-group; conditions on data count as met half the time."""
    chosen = choose_work_groups(launch.ndrange)
    ids, is_present = bind_ids(launch.ndrange, chosen)
    start = Points.start(ids | bind_names(launch.scalars), is_present)
    offset = access.offset_bytes
    own = frozenset(loop.symbol for loop in access.loops)
    if offset is not None and not offset.symbols() - own <= start.bindings.keys():
        offset = None
    wanted = frozenset() if offset is None else offset.symbols()
    # Iterations are rows, work-items columns.
    # Of more addresses of an access, some iterations stand for all.
    points, share = run_guarded(start, access.guard, access.loops, wanted, 65_536)
    weights, groups = points.weights, float(len(chosen))
    requests = float((weights * share.max(axis=1, initial=0.0)).sum()) / groups
    sizes, chunks = np.zeros(weights.size), np.zeros(weights.size)
    if offset is not None and requests:
        with suppress(EvaluationError):
            addresses = widen(offset.evaluate_where(share > 0, points.bindings), share.shape)
            for row, (offsets, active) in enumerate(zip(addresses, share, strict=True)):
                steps = np.diff(np.unique(offsets[active > 0]))
                sizes[row] = access.bytes + np.minimum(steps, access.bytes).sum()
                chunks[row] = 1 + np.count_nonzero(steps > access.bytes)
    total = float(weights.sum()) or 1.0
    return GroupRequests(
        executions=float((weights[:, None] * share).sum()) / groups,
        requests=requests,
        bytes=float((weights * sizes).sum()) / total,
        chunks=float((weights * chunks).sum()) / total,
    )
