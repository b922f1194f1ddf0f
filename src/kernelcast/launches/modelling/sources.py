"""Where launches to be modelled come from, and the same launch with other local sizes.

A problem file, or an access file: YAML with arrays, an index space and what a work-item touches.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import yaml

from kernelcast.analytic.gpu.hit_rates import HitRates
from kernelcast.expressions import Symbol, SymbolKind, conjunction, less
from kernelcast.expressions.accesses import AccessKind, MemoryAccess
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.features.written_accesses import (
    WrittenArray,
    WrittenKernel,
    make_array,
    read_access,
    read_array,
)
from kernelcast.launches.modelling.folding import fold, parse_fold
from kernelcast.launches.modelling.launches import (
    ModelledKernel,
    choose_local_size,
    model_kernel,
    model_written,
)
from kernelcast.launches.problem_file import read_problem
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
from kernelcast.records.errors import InputError, ProblemFileError
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import OperationCounts, add_weighted
from kernelcast.records.problem import Problem
from kernelcast.records.software_counters import RecordedAddresses, WarpCounters

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

    @property
    def is_text(self) -> bool:
        return isinstance(self.node, yaml.ScalarNode) and not self.is_null

    def formula(self) -> str:
        """Read arithmetic over parameters as its value, anything else as it stands."""
        try:
            return str(self.number())
        except ProblemFileError:
            return self.text()


Folds = tuple[tuple[int, int], ...]


@dataclass(slots=True, kw_only=True, eq=False)
class LaunchSource:
    """A kernel with its updates, to be launched in many ways."""

    name: str
    kernel: ModelledKernel
    ndrange: NDRange
    """One work-item per update."""
    folds: Folds = ()
    """Axes and updates per work-item, unless another folding is asked for."""
    registers: int | None = None
    executed: OperationCounts | None = None
    """What a work-item executes on average; counted from the source where it is None."""
    recorded: RecordedAddresses | None = None
    """Addresses of sampled work-groups; of the local size of `ndrange` only."""
    warps: tuple[WarpCounters, ...] = ()
    hit_rates: HitRates | None = None
    problem: Problem | None = None

    def launch(
        self, local_size: tuple[int, ...] | None = None, folds: Folds | None = None
    ) -> ModelledLaunch:
        """Give the launch with a local size and a folding; the source's own when left out."""
        given, _ = choose_local_size(self.ndrange, self.kernel.facts)
        ndrange = self.ndrange
        if local_size is not None:
            own, sizes = ndrange.local_size, ndrange.global_size
            if self.kernel.is_cooperative and own is not None and local_size != own:
                raise InputError(
                    f"{self.name}: the kernel shares local memory that is laid out for local size "
                    f"{own}, not for {local_size}; change the problem's parameters instead"
                )
            fitting = local_size
            if self.problem is None and len(local_size) == len(sizes):
                # A written kernel may take a larger one than the index space has.
                fitting = tuple(min(pair) for pair in zip(local_size, sizes, strict=True))
            ndrange = replace(ndrange, local_size=fitting)
        is_own = ndrange.local_size in {None, given.local_size}
        launch = self.kernel.launch(
            ndrange,
            self._count(ndrange),
            warps=self.warps,
            registers=self.registers,
            recorded=self.recorded if is_own else None,
        )
        if local_size is not None and local_size != ndrange.local_size:
            launch = pad(launch, local_size)
        for axis, times in self.folds if folds is None else folds:
            launch = fold(launch, axis, times)
        return launch

    def _count(self, ndrange: NDRange) -> OperationCounts:
        """Count what is executed, once for all local sizes where they do not matter."""
        if self.executed is not None:
            return self.executed
        chosen, _ = choose_local_size(ndrange, self.kernel.facts)
        counters = self.kernel.count(chosen)
        self.warps = counters.warps
        if not self.kernel.counts_by_work_group:
            self.executed = counters.executed
        return counters.executed


def read_launch_source(
    path: Path, *, parameters: Mapping[str, Number] | None = None
) -> LaunchSource:
    """Read a problem file or an access file."""
    if is_access_file(path):
        return read_access_file(path, parameters=parameters)
    problem = read_problem(path, parameters=parameters)
    return use_problem(problem)


def use_problem(problem: Problem) -> LaunchSource:
    return LaunchSource(
        name=problem.name, kernel=model_kernel(problem), ndrange=problem.ndrange, problem=problem
    )


def use_written(
    kernel: WrittenKernel, ndrange: NDRange, *, folds: Folds = (), registers: int | None = None
) -> LaunchSource:
    """Take a kernel that was written down for a source of launches; each global id is an update."""
    return LaunchSource(
        name=kernel.name,
        kernel=model_written(kernel),
        ndrange=ndrange,
        folds=folds,
        registers=registers,
    )


def pad(launch: ModelledLaunch, local_size: tuple[int, ...]) -> ModelledLaunch:
    """Enlarge the index space to at least one work-group; what is added does nothing."""
    ndrange = launch.ndrange
    sizes = tuple(max(pair) for pair in zip(ndrange.global_size, local_size, strict=True))
    guard = conjunction(
        *(
            less(Symbol(SymbolKind.GLOBAL_ID, axis=axis), offset + size)
            for axis, (offset, size, enlarged) in enumerate(
                zip(ndrange.global_offset, ndrange.global_size, sizes, strict=True)
            )
            if enlarged > size
        )
    )
    return replace(
        launch,
        ndrange=replace(ndrange, global_size=sizes, local_size=local_size),
        accesses=tuple(
            replace(one, guard=conjunction(guard, one.guard)) for one in launch.accesses
        ),
        executed=add_weighted([(launch.executed, ndrange.work_item_count / math.prod(sizes))]),
    )


def record_accesses(
    source: LaunchSource,
    device_id: str | None = None,
    *,
    report: Callable[[str], None] = lambda _: None,
) -> LaunchSource:
    """Run a few instrumented work-groups and add their addresses and counts."""
    # Drivers take a moment to load; most models need none.
    from kernelcast.features.counting.summary import summarise
    from kernelcast.launches.counting import count_launch
    from kernelcast.launches.preparing import prepared_launch
    from kernelcast.sampling.counting import CountingLaunch
    from kernelcast.sampling.discovery import choose_device, find_devices
    from kernelcast.sampling.session import open_session

    if source.problem is None:
        msg = f"{source.name}: no device can run accesses that were written down; give a problem"
        raise InputError(msg)
    devices = find_devices()
    wanted = device_id or devices[0][0].id
    session = open_session(*choose_device(wanted, devices))
    problem = source.problem.on(session.description)
    with prepared_launch(session, problem, CountingLaunch, seed=0) as launch:
        counted = count_launch(launch, problem.kernel, report=report)
    counters = summarise(source.kernel.facts, counted.sample)
    return replace(
        source,
        ndrange=counted.ndrange,
        executed=counters.executed,
        recorded=counted.addresses,
        warps=counters.warps,
    )


def is_access_file(path: Path) -> bool:
    """Tell whether a YAML file lists accesses; one that cannot be read does not."""
    return bool({"arrays", *_KINDS} & list_keys(path))


def read_access_file(
    path: Path | str, *, parameters: Mapping[str, Number] | None = None
) -> LaunchSource:
    path = Path(path)
    bare = load(path, read_text(path, "access file"), AccessEntry)
    section = pairs_of(bare.mapping(KEYS).get("parameters"))
    root = replace(bare, key="access file", names=read_numbers(bare, section, parameters or {}))
    entries = root.mapping(KEYS, required=("arrays", "global_size"))
    with root.pointing_here():
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
                text = item.text()
                with item.pointing_here():
                    found = read_access(
                        text, arrays, kind=kind, scalars=tuple(scalars), site=len(accesses)
                    )
                accesses.append(replace(found, line=item.node.start_mark.line + 1))
        kernel = WrittenKernel(
            name=entries["kernel"].text() if "kernel" in entries else path.stem,
            arrays=tuple(arrays.values()),
            accesses=tuple(accesses),
            scalars=scalars,
            operations={
                name: float(value.number())
                for name, value in pairs_of(entries.get("operations")).items()
            },
        )
    folds = []
    for item in items_of(entries.get("fold")):
        with item.pointing_here():
            folds.append(parse_fold(item.text()))
    return use_written(
        kernel,
        read_ndrange(entries),
        folds=tuple(folds),
        registers=entries["registers"].integer(minimum=1) if "registers" in entries else None,
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
