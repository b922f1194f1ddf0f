"""Where launches to be modelled come from, and the same launch folded or with other local sizes.

Launches come from a problem file, or an access file: YAML with arrays, an index space and what a
work-item touches. Folded, each work-item computes several updates along an axis.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, TypeAlias

from kernelcast.analytic.gpu.hit_rates import HitRates
from kernelcast.expressions import (
    TRUE,
    And,
    Comparison,
    Condition,
    Expr,
    Relation,
    Symbol,
    SymbolKind,
    conjunction,
    disjunction,
    less,
)
from kernelcast.expressions.accesses import AccessKind, MemoryAccess
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.features.written_accesses import (
    WrittenArray,
    WrittenKernel,
    make_array,
    read_access,
    read_array,
)
from kernelcast.launches.modelling.launches import (
    OF_WORK_GROUPS,
    ModelledKernel,
    choose_local_size,
    model_kernel,
    model_written,
)
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.errors import InputError, ProblemFileError
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import (
    MemoryOperation,
    MemorySpace,
    OperationCounts,
    add_weighted,
)
from kernelcast.records.problem import Problem
from kernelcast.records.software_counters import RecordedAddresses, SoftwareCounters
from kernelcast.records.yaml_files import (
    Located,
    Number,
    Sizes,
    combine_parameters,
    list_keys,
    load,
    make_ndrange,
)

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
    counters: SoftwareCounters | None = None
    """What a work-item executes; counted from the source where it is None."""
    recorded: RecordedAddresses | None = None
    """Addresses of sampled work-groups; of the local size of `ndrange` only."""
    hit_rates: HitRates | None = None

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
            if self.kernel.problem is None and len(local_size) == len(sizes):
                # A written kernel may take a larger one than the index space has.
                fitting = tuple(min(pair) for pair in zip(local_size, sizes, strict=True))
            ndrange = replace(ndrange, local_size=fitting)
        is_own = ndrange.local_size in {None, given.local_size}
        launch = self.kernel.launch(
            ndrange,
            self._count(ndrange),
            registers=self.registers,
            recorded=self.recorded if is_own else None,
        )
        if local_size is not None and local_size != ndrange.local_size:
            launch = pad(launch, local_size)
        for axis, times in self.folds if folds is None else folds:
            launch = fold(launch, axis, times)
        return launch

    def _count(self, ndrange: NDRange) -> SoftwareCounters:
        """Count what is executed, once for all local sizes where they do not matter."""
        if self.counters is not None:
            return self.counters
        counters = self.kernel.count(choose_local_size(ndrange, self.kernel.facts)[0])
        if not self.kernel.counts_by_work_group:
            self.counters = counters
        return counters


def read_launch_source(
    path: Path, *, parameters: Mapping[str, Number] | None = None
) -> LaunchSource:
    """Read a problem file or an access file."""
    if is_access_file(path):
        return read_access_file(path, parameters=parameters)
    return use_problem(read_problem(path, parameters=parameters))


def use_problem(problem: Problem) -> LaunchSource:
    return LaunchSource(name=problem.name, kernel=model_kernel(problem), ndrange=problem.ndrange)


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

    problem = source.kernel.problem
    if problem is None:
        msg = f"{source.name}: no device can run accesses that were written down; give a problem"
        raise InputError(msg)
    devices = find_devices()
    wanted = device_id or devices[0][0].id
    session = open_session(*choose_device(wanted, devices))
    problem = problem.on(session.description)
    with prepared_launch(session, problem, CountingLaunch, seed=0) as launch:
        counted = count_launch(launch, problem.kernel, report=report)
    counters = summarise(source.kernel.facts, counted.sample)
    return replace(source, ndrange=counted.ndrange, counters=counters, recorded=counted.addresses)


def is_access_file(path: Path) -> bool:
    """Tell whether a YAML file lists accesses; one that cannot be read does not."""
    return bool({"arrays", "loads", "stores", "atomics"} & list_keys(path))


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


def read_access_file(
    path: Path | str, *, parameters: Mapping[str, Number] | None = None
) -> LaunchSource:
    path = Path(path)
    needs = "an access file needs arrays, global_size, and loads or stores"
    root = load(path, "access file", needs, ProblemFileError)
    section = root.list_arguments(_AccessFile).get("parameters")
    root = replace(root, names=next(combine_parameters(root, section, parameters or {})))
    file = root.call(_AccessFile, {"kernel": path.stem})
    with root.pointing_here():
        scalars = tuple(file.scalars)
        arrays = {name: _read_array(name, one, scalars) for name, one in file.arrays.items()}
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
        return use_written(
            kernel,
            make_ndrange(file.global_size, file.local_size, file.global_offset),
            folds=tuple(one.read(_Fold) for one in file.fold),
            registers=file.registers,
        )


def _read_array(name: str, entry: Located, scalars: tuple[str, ...]) -> WrittenArray:
    with entry.pointing_here():
        if entry.is_text:
            return read_array(f"{name}:{entry.text()}", scalars)
        return entry.call(_make_array, name=name, scalars=scalars)


def _make_array(
    *,
    name: str,
    scalars: tuple[str, ...],
    type: str,  # noqa: A002 - the key of the file
    extents: _Several = (),
    space: Annotated[str, lambda one: one.choice(_SPACES)] = _SPACES[0],
    shift_bytes: Annotated[int, lambda one: one.integer(minimum=0)] = 0,
) -> WrittenArray:
    sizes = [_read_formula(one) for one in extents]
    array = make_array(name, f"{space} {type}", sizes, scalars)
    return replace(array, shift_bytes=shift_bytes)


def _read_formula(entry: Located) -> str:
    """Read arithmetic over parameters as its value, anything else as it stands."""
    try:
        return str(entry.number())
    except ProblemFileError:
        return entry.text()


AXES = "xyz"


def parse_fold(text: str) -> tuple[int, int]:
    """Read a folding such as ``2z``: axis and number of updates."""
    times, axis = text[:-1], text[-1:]
    if not times.isascii() or not times.isdigit() or axis not in AXES or not axis:
        raise InputError(f"folding {text!r}: expected updates and axis, such as 2z")
    return AXES.index(axis), int(times)


def fold(launch: ModelledLaunch, axis: int, times: int) -> ModelledLaunch:
    """Let each work-item compute neighbouring updates, one after the other."""
    ndrange = launch.ndrange
    _check(launch, axis, times)
    if times == 1:
        return launch
    size = ndrange.global_size[axis]
    own, offset = Symbol(SymbolKind.GLOBAL_ID, axis=axis), ndrange.global_offset[axis]
    is_guarded = size % times > 0
    turns: list[list[MemoryAccess]] = []
    for turn in range(times):
        replaced = {
            own: times * Expr.symbol(own) + (turn - (times - 1) * offset),
            Symbol(SymbolKind.GLOBAL_SIZE, axis=axis): Expr.constant(size),
        }
        inside = less(replaced[own], offset + size) if is_guarded and turn else None
        turns.append([_move(access, replaced, inside) for access in launch.accesses])
    # Each access has a site of its own.
    found = tuple(replace(one, site=site) for site, one in enumerate(_share(turns)))
    sizes = list(ndrange.global_size)
    sizes[axis] = -(-size // times)
    is_known = all(one.offset_bytes is not None for one in launch.accesses)
    note = f"folded {times}{AXES[axis]}: accesses that depend on data are left out of the volumes"
    # Loads that updates share count once.
    before, after = _count_kinds(launch.accesses), _count_kinds(found)
    executed = launch.executed
    return replace(
        launch,
        ndrange=replace(ndrange, global_size=tuple(sizes)),
        accesses=found,
        executed=OperationCounts(
            operations={one: count * times for one, count in executed.operations.items()},
            memory={
                one: count * (after[one] / before[one] if before[one] else times)
                for one, count in executed.memory.items()
            },
        ),
        updates_per_work_item=launch.updates_per_work_item * times,
        recorded=None,
        problem=None,
        notes=launch.notes if is_known else (*launch.notes, note),
    )


def _check(launch: ModelledLaunch, axis: int, times: int) -> None:
    ndrange = launch.ndrange
    if not 0 <= axis < ndrange.dimensions:
        msg = f"folding along {AXES[axis]}: the index space has {ndrange.dimensions} dimensions"
        raise InputError(msg)
    most = min(64, ndrange.global_size[axis])
    if not 1 <= times <= most:
        raise InputError(f"folding {times}{AXES[axis]}: give 1 to {most} updates per work-item")
    if times == 1:
        return
    for access in launch.accesses:
        if access.space is MemorySpace.LOCAL:
            raise InputError(
                f"{access.text}: work-items that share local memory cannot be folded; model the "
                "folded kernel's own source"
            )
        used = access.guard.symbols().union(
            *(loop.condition.symbols() for loop in access.loops),
            () if access.offset_bytes is None else access.offset_bytes.symbols(),
        )
        named = next((s for s in used if s.kind in OF_WORK_GROUPS and s.axis == axis), None)
        if named is not None:
            raise InputError(
                f"{access.text}: names {named}, so that work-items cannot be folded along "
                f"{AXES[axis]}; write it with get_global_id only, or fold along another axis"
            )


def _move(
    access: MemoryAccess, replaced: Mapping[Symbol, Expr], inside: Condition | None
) -> MemoryAccess:
    offset = access.offset_bytes
    guard = access.guard.substitute(replaced)
    return replace(
        access,
        offset_bytes=None if offset is None else offset.substitute(replaced),
        guard=guard if inside is None else conjunction(inside, guard),
        loops=tuple(
            replace(
                loop,
                condition=loop.condition.substitute(replaced),
                trip_count=loop.trip_count and loop.trip_count.substitute(replaced),
            )
            for loop in access.loops
        ),
    )


def _share(turns: Sequence[Sequence[MemoryAccess]]) -> list[MemoryAccess]:
    """Keep one of the accesses by which several turns load the same address."""
    kept: dict[tuple[object, ...], MemoryAccess] = {}
    for turn, accesses in enumerate(turns):
        seen: Counter[tuple[object, ...]] = Counter()
        for access in accesses:
            key: tuple[object, ...] = (access.site, turn)
            if access.offset_bytes is not None and access.kind is not AccessKind.ATOMIC:
                key = access.kind, access.buffer, access.bytes, access.offset_bytes, access.loops
            seen[key] += 1  # what one update loads twice, it loads twice folded as well
            key = (*key, seen[key])
            first = kept.get(key)
            if first is not None:
                access = replace(first, guard=_weaken(first.guard, access.guard))
            kept[key] = access
    return list(kept.values())


def _weaken(one: Condition, other: Condition) -> Condition:
    """Find a condition that holds where one of two neighbouring updates is computed."""
    # Bounds that differ by a constant become the weaker bound: the updates of a work-item are
    # neighbours, so that what lies between a lower and an upper bound has no gaps.
    bounds, others = (each.parts if isinstance(each, And) else (each,) for each in (one, other))
    weaker: list[Condition] = []
    for bound, beside in zip(bounds, others, strict=False):
        if bound == beside or TRUE in {bound, beside}:
            weaker.append(bound if bound == beside else TRUE)
        elif (
            isinstance(bound, Comparison)
            and isinstance(beside, Comparison)
            and {bound.relation, beside.relation} == {Relation.NOT_NEGATIVE}
            and (gap := (bound.expr - beside.expr).constant_value) is not None
        ):
            weaker.append(bound if gap > 0 else beside)
    if len(weaker) == len(bounds) == len(others):
        return conjunction(*weaker)
    return disjunction(one, other)


def _count_kinds(accesses: tuple[MemoryAccess, ...]) -> Counter[MemoryOperation]:
    return Counter(
        MemoryOperation(space=one.space, is_store=one.kind is AccessKind.STORE, bytes=one.bytes)
        for one in accesses
        if one.kind is not AccessKind.ATOMIC
    )
