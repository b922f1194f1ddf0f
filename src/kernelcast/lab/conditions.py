"""The layer-condition calculator: what caches keep of loops that somebody typed.

CPUs by the conditions of the Kerncraft paper (section 2.4.2), from cache sizes that are typed or
those of a machine; GPUs by the volumes of the Warpspeed paper, whose overlaps with rows and layers
of work-groups before are the layer conditions.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kernelcast.analytic.cpu.layer_conditions import (
    BlockingAdvice,
    LayerConditions,
    Transition,
    advise_blocking,
    list_transitions,
)
from kernelcast.analytic.cpu.machine import CpuCache, CpuMachine, StreamRates, read_machine
from kernelcast.expressions.loop_nest import LoopNest
from kernelcast.lab.gpu_conditions import WaveShare, model_nest_on_gpu
from kernelcast.lab.written_nest import (
    FieldError,
    WrittenNest,
    WrittenNestTask,
    read_written_nest,
)
from kernelcast.launches.estimation import ReportProgress
from kernelcast.launches.machines import find_machine
from kernelcast.records.cache_volumes import CacheVolumes
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import InputError
from kernelcast.records.machine import MachineDescription
from kernelcast.workers import Task

_CPU_SIZES = 60
_GPU_SIZES = 10
_SMALLEST = 8
_ONE_CYCLE_A_SECOND_HZ = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionsTask:
    """What the calculator is asked."""

    nest: WrittenNestTask
    """Loops and accesses as they were typed."""
    machine: str = ""
    """Name of a machine description; empty for caches that were typed."""
    cache_bytes: tuple[int, ...] = ()
    """Sizes of typed caches, nearest first."""
    line_bytes: int = 64
    """Of typed caches."""
    size: str = ""
    """The constant that is varied; empty for none."""
    local_size: tuple[int, ...] = (256,)
    """Of work-groups, contiguous dimension first; of GPUs only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelReport:
    """Traffic of a level, per iteration of the innermost loop."""

    name: str
    """The cache, or ``MEM``."""
    size_bytes: int | None
    """What one core has of it."""
    hits: float
    misses: float
    evicts: float
    """Lines per cache line of work."""
    boundary: str = ""
    """Between which levels the bytes go; empty for the nearest cache."""
    loaded_bytes: float | None = None
    stored_bytes: float | None = None
    """Over that boundary, per iteration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumePoint:
    """Bytes per iteration over each boundary at one value of the varied constant."""

    value: int
    bytes_by_boundary: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionsReport:
    """What the calculator answers."""

    machine: str
    """Whose caches."""
    is_gpu: bool
    """Whether it is a GPU."""
    levels: tuple[LevelReport, ...] = ()
    """Of CPUs."""
    transitions: tuple[Transition, ...] = ()
    """Conditions with the largest size that meets them; of CPUs."""
    advice: tuple[BlockingAdvice, ...] = ()
    """Of CPUs."""
    shares: tuple[WaveShare, ...] = ()
    """What work-groups share with those before them; of GPUs."""
    volumes: Mapping[str, float]
    """Bytes per iteration over each boundary, loads and stores apart."""
    points: tuple[VolumePoint, ...] = ()
    """The same over the varied constant."""
    size: str = ""
    """The varied constant."""
    notes: tuple[str, ...] = ()
    """What was assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldComplaint:
    """What is wrong with a field; an error that crosses processes."""

    name: str
    message: str


FIND_CONDITIONS: Task[ConditionsReport | FieldComplaint] = Task(
    entry=f"{__name__}:find_layer_conditions",
    returns=ConditionsReport | FieldComplaint,  # type: ignore[arg-type]  # a union is no class
)


def find_layer_conditions(
    task: ConditionsTask, report: ReportProgress
) -> ConditionsReport | FieldComplaint:
    """Find the layer conditions; runs in a child process."""
    report("reading the loops")
    try:
        written = read_written_nest(task.nest)
        _check_size(task, written)
        report("layer conditions")
        if not task.machine:
            return _ask_cpu(task, written, _make_machine(task))
        machine = find_machine(task.machine)
        if machine.kind is DeviceKind.GPU:
            return _ask_gpu(task, written, machine)
        return _ask_cpu(task, written, read_machine(machine))
    except FieldError as error:
        return FieldComplaint(name=error.name, message=error.message)
    except InputError as error:
        return FieldComplaint(name="loads", message=str(error))


def _check_size(task: ConditionsTask, written: WrittenNest) -> None:
    if task.size and task.size not in written.nest.constants:
        names = ", ".join(written.nest.constants) or "none"
        raise FieldError(
            name="size", message=f"there is no constant {task.size!r}; the constants are: {names}"
        )


def _make_machine(task: ConditionsTask) -> CpuMachine:
    """Make a machine of typed caches: fully associative ones, as layer conditions take them."""
    if not task.cache_bytes:
        raise FieldError(name="caches", message="give at least one size, such as 32 KiB")
    caches = []
    for number, size in enumerate(task.cache_bytes, start=1):
        ways = size // task.line_bytes
        if ways < 1:
            raise FieldError(
                name="caches", message=f"{size} bytes hold no line of {task.line_bytes}"
            )
        caches.append(
            CpuCache(
                name=f"L{number}", size_bytes=ways * task.line_bytes,
                line_bytes=task.line_bytes, ways=ways,
            )
        )  # fmt: skip
    try:
        return CpuMachine(
            id="typed", name="typed caches", cores=1, clock_hz=_ONE_CYCLE_A_SECOND_HZ,
            caches=tuple(caches), streams=StreamRates(),
        )  # fmt: skip
    except InputError as error:
        raise FieldError(name="caches", message=str(error)) from error


def _ask_cpu(task: ConditionsTask, written: WrittenNest, machine: CpuMachine) -> ConditionsReport:
    nest = written.nest
    conditions = LayerConditions(nest, machine)
    volumes = conditions.predict({})
    transitions, notes = _solve(nest, machine, task.size)
    return ConditionsReport(
        machine=machine.name,
        is_gpu=False,
        levels=tuple(_list_levels(volumes, conditions.capacities())),
        transitions=transitions,
        advice=advise_blocking(nest, machine, {}),
        volumes=_count_bytes(volumes),
        points=tuple(
            _vary(
                nest.constants,
                task.size,
                _CPU_SIZES,
                lambda constants: _count_bytes(conditions.predict(constants)),
            )
        ),
        size=task.size,
        notes=tuple(dict.fromkeys((*volumes.notes, *conditions.conflicts({}), *notes))),
    )


def _ask_gpu(
    task: ConditionsTask, written: WrittenNest, machine: MachineDescription
) -> ConditionsReport:
    def ask(
        constants: Mapping[str, int],
    ) -> tuple[dict[str, float], tuple[WaveShare, ...], tuple[str, ...]]:
        return model_nest_on_gpu(written, constants, machine, task.local_size)

    volumes, shares, notes = ask(written.nest.constants)
    return ConditionsReport(
        machine=machine.name,
        is_gpu=True,
        shares=shares,
        volumes=volumes,
        points=tuple(
            _vary(
                written.nest.constants, task.size, _GPU_SIZES, lambda constants: ask(constants)[0]
            )
        ),
        size=task.size,
        notes=notes,
    )


def _solve(
    nest: LoopNest, machine: CpuMachine, size: str
) -> tuple[tuple[Transition, ...], tuple[str, ...]]:
    endless = [one.name for one in nest.arrays if not one.dimensions]
    if endless:
        note = (
            f"{', '.join(endless)}: declare arrays with their sizes, such as double a[nz][ny][nx], "
            "for the conditions as formulas"
        )
        return (), (note,)
    try:
        return list_transitions(nest, machine, size=size or None, constants={}), ()
    except InputError as error:
        return (), (str(error),)


def _list_levels(volumes: CacheVolumes, capacities: Sequence[int]) -> Iterator[LevelReport]:
    factor = volumes.line_bytes / volumes.iterations
    transfers = {one.farther: one for one in volumes.transfers()}
    sizes = [*capacities, None]
    for one, size in zip(volumes.levels, sizes, strict=True):
        crossing = transfers.get(one.name)
        yield LevelReport(
            name=one.name,
            size_bytes=size,
            hits=one.hits,
            misses=one.misses,
            evicts=one.evicts,
            boundary="" if crossing is None else f"{crossing.nearer} - {crossing.farther}",
            loaded_bytes=None if crossing is None else crossing.loaded * factor,
            stored_bytes=None if crossing is None else crossing.stored * factor,
        )


def _count_bytes(volumes: CacheVolumes) -> dict[str, float]:
    factor = volumes.line_bytes / volumes.iterations
    return {f"{one.nearer} - {one.farther}": one.lines * factor for one in volumes.transfers()}


def _vary(
    constants: Mapping[str, int],
    size: str,
    count: int,
    ask: Callable[[Mapping[str, int]], Mapping[str, float]],
) -> Iterator[VolumePoint]:
    """Ask for many values of a constant, from few elements to eight times as many as typed."""
    if not size:
        return
    last = max(8 * constants[size], 8 * _SMALLEST)
    ratio = (last / _SMALLEST) ** (1 / (count - 1))
    values = sorted({round(_SMALLEST * ratio**place) for place in range(count)})
    for value in values:
        try:
            found = ask({**constants, size: value})
        except InputError:  # a loop that never runs, for instance
            continue
        yield VolumePoint(value=value, bytes_by_boundary=dict(found))
