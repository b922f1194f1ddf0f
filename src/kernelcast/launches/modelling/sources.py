"""Kernels to be modelled from files, and what a device records of their accesses.

They come from a problem file, or an access file: YAML with arrays, an index space and what a
work-item touches.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, TypeAlias

from kernelcast.expressions.accesses import AccessKind, MemoryAccess
from kernelcast.features.written_accesses import (
    WrittenArray,
    WrittenKernel,
    make_array,
    read_access,
    read_array,
)
from kernelcast.launches.modelling.launches import (
    ModelledKernel,
    model_kernel,
    model_written,
    parse_fold,
)
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.errors import InputError, ProblemFileError
from kernelcast.records.yaml_files import (
    Located,
    Number,
    Sizes,
    combine_parameters,
    list_keys,
    load,
    make_ndrange,
)


def record_accesses(
    source: ModelledKernel,
    device_id: str | None = None,
    *,
    report: Callable[[str], None] = lambda _: None,
) -> ModelledKernel:
    """Run a few instrumented work-groups and add their addresses and counts."""
    # Drivers take a moment to load; most models need none.
    from kernelcast.features.counting.summary import summarise
    from kernelcast.launches.counting import count_launch
    from kernelcast.launches.preparing import prepared_launch
    from kernelcast.sampling.discovery import choose_device, find_devices
    from kernelcast.sampling.session import open_session

    problem = source.problem
    if problem is None:
        msg = f"{source.name}: no device can run accesses that were written down; give a problem"
        raise InputError(msg)
    devices = find_devices()
    wanted = device_id or devices[0][0].id
    session = open_session(*choose_device(wanted, devices))
    problem = problem.on(session.description)
    with prepared_launch(session, problem, seed=0) as launch:
        sample, addresses = count_launch(launch, problem.kernel, report=report)
    counters = summarise(source.facts, sample)
    return replace(source, ndrange=launch.ndrange, counters=counters, recorded=addresses)


_Fold: TypeAlias = Annotated[tuple[int, int], lambda one: parse_fold(one.text())]
_Several: TypeAlias = Annotated[Sequence[Located], Located.list_some]
_SPACES = ("global", "constant", "local")
_Signed: TypeAlias = Annotated[int, lambda one: one.integer(minimum=-(2**63))]


@dataclass(frozen=True, slots=True, kw_only=True)
class _AccessFile:
    kernel: str
    parameters: Located | None = None
    scalars: Mapping[str, _Signed] = field(default_factory=dict)
    arrays: dict[str, Located]
    global_size: Sizes
    local_size: Located | None = None
    global_offset: Located | None = None
    fold: _Several = ()
    loads: _Several = ()
    stores: _Several = ()
    atomics: _Several = ()
    operations: Mapping[str, float] = field(default_factory=dict)
    registers: int | None = None


def read_launch_source(
    path: Path, *, parameters: Mapping[str, Number] | None = None
) -> ModelledKernel:
    """Read an access file, or else a problem file."""
    if not {"arrays", "loads", "stores", "atomics"} & list_keys(path):
        return model_kernel(read_problem(path, parameters=parameters))
    needs = "an access file needs arrays, global_size, and loads or stores"
    root = load(path, "access file", needs, ProblemFileError)
    section = root.list_arguments(_AccessFile).get("parameters")
    root = replace(root, names=next(combine_parameters(root, section, parameters or {})))
    file = root.call(_AccessFile, {"kernel": path.stem})
    with root.pointing_here():
        scalars = tuple(file.scalars)
        arrays = {}
        for name, entry in file.arrays.items():
            with entry.pointing_here():
                arrays[name] = (
                    read_array(f"{name}:{entry.text()}", scalars) if entry.is_text
                    else entry.call(_make_array, name=name, scalars=scalars)
                )  # fmt: skip
        kinds = ((AccessKind.LOAD, file.loads), (AccessKind.STORE, file.stores),
                 (AccessKind.ATOMIC, file.atomics))  # fmt: skip
        accesses: list[MemoryAccess] = []
        for kind, item in ((kind, item) for kind, items in kinds for item in items):
            with item.pointing_here():
                site = len(accesses)
                found = read_access(item.text(), arrays, kind=kind, scalars=scalars, site=site)
            accesses.append(replace(found, line=item.node.start_mark.line + 1))
        kernel = WrittenKernel(
            name=file.kernel, arrays=tuple(arrays.values()), accesses=tuple(accesses),
            scalars=file.scalars, operations=file.operations,
        )  # fmt: skip
        made = model_written(
            kernel, make_ndrange(file.global_size, file.local_size, file.global_offset)
        )
        made.folds = tuple(one.read(_Fold) for one in file.fold)
        made.registers = file.registers
        return made


def _make_array(
    *,
    name: str,
    scalars: tuple[str, ...],
    type: str,  # noqa: A002 - the key of the file
    extents: _Several = (),
    space: Annotated[str, lambda one: one.choice(_SPACES)] = _SPACES[0],
    shift_bytes: Annotated[int, lambda one: one.integer(minimum=0)] = 0,
) -> WrittenArray:
    sizes = []
    for one in extents:
        try:
            sizes.append(str(one.number()))
        except ProblemFileError:  # no arithmetic over parameters; it stays as it stands
            sizes.append(one.text())
    array = make_array(name, f"{space} {type}", sizes, scalars)
    return replace(array, shift_bytes=shift_bytes)
