"""What the Lab asks over many launches: times over local sizes and sizes, and the roofline."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from kernelcast.lab.local_sizes import (
    MODEL_LOCAL_SIZES,
    LocalSizeAnswer,
    LocalSizeTask,
    list_local_sizes,
)
from kernelcast.launches.machines import KnownMachine, list_machines
from kernelcast.launches.modelling.launches import choose_local_size
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.arguments import LocalArgument
from kernelcast.records.errors import CompileError, InputError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.problem import Problem
from kernelcast.reports.charts import Axis, Chart, Figure, Point, Series
from kernelcast.service.authentication import Caller
from kernelcast.service.errors import message_of
from kernelcast.service.estimating import Outcome, Sampling, Wanted
from kernelcast.service.pages.filters import write_digits, write_seconds
from kernelcast.service.pages.lab.fields import FieldError, LabFields, read_parameters
from kernelcast.service.pages.threads import run_in_thread
from kernelcast.service.routes.estimates import list_wanted
from kernelcast.service.schemas.estimates import EstimateRequest
from kernelcast.service.service import Service

MOST_SAMPLED: Final = 16
"""Local sizes that are estimated on a device: each may take samples."""
_LARGEST_SAMPLED: Final = 1024
_USES_LOCAL = re.compile(r"\b(?:__)?local\b|\breqd_work_group_size\b")
_FACTORS: Final = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2)
_MOST_STEPS: Final = 256
_COMPUTING = ("fp32", "fp64", "fp16", "int32")
_MEMORIES = ("DRAM", "MEM", "L2")  # the outermost that the launch meets
_REACH = 64.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSizeTime:
    """A local size and what it takes."""

    local_size: tuple[int, ...]
    seconds: float | None
    detail: str = ""
    reason: str = ""

    @property
    def text(self) -> str:
        """The local size as people write it."""
        return " x ".join(map(str, self.local_size))


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSizes:
    """Times over local sizes."""

    kernel: str
    where: str
    is_modelled: bool
    times: tuple[LocalSizeTime, ...]


async def compare_local_sizes(fields: LabFields, service: Service, caller: Caller) -> LocalSizes:
    """Compare local sizes in the way that was chosen."""
    _, problem = await fields.make_problem(service)
    if fields.method == "estimate":
        return await _estimate(fields, problem, service, caller)
    return await _model(fields, problem, service)


async def _model(fields: LabFields, problem: Problem, service: Service) -> LocalSizes:
    machine = choose_machine(fields.machine, await run_in_thread(list_machines))
    answers = await ask_model(LocalSizeTask(problem=problem, machine=machine), service)
    return LocalSizes(
        kernel=problem.kernel.name,
        where=machine,
        is_modelled=True,
        times=tuple(map(_of_model, answers)),
    )


async def ask_model(task: LocalSizeTask, service: Service) -> tuple[LocalSizeAnswer, ...]:
    """Ask the analytic model; what is wrong is told beside the field that it is about."""
    try:
        return await service.ask(MODEL_LOCAL_SIZES, task, "the model")
    except CompileError as error:
        raise FieldError(name="code", message=message_of(error)) from error
    except InputError as error:
        raise FieldError(name="machine", message=message_of(error)) from error


async def ask_launch(problem: Problem, machine: str, service: Service) -> LocalSizeAnswer:
    """Ask the analytic model about a launch with its own local size, or a usual one."""
    ndrange = choose_local_size(problem.ndrange)[0]
    task = LocalSizeTask(problem=problem, machine=machine, local_sizes=(ndrange.known_local_size,))
    return (await ask_model(task, service))[0]


async def list_asked(
    fields: LabFields, digest: str, service: Service, caller: Caller
) -> Sequence[Wanted]:
    """Give the answers that the fields ask devices for."""
    if not fields.devices:
        raise FieldError(name="device", message="choose at least one device")
    asked = EstimateRequest(
        problem_digest=digest,
        devices=list(fields.devices),
        sampling=Sampling.AUTO if fields.may_sample else Sampling.NEVER,
    )
    return await list_wanted(asked, service, caller)


def _of_model(one: LocalSizeAnswer) -> LocalSizeTime:
    if one.estimate is None:
        return LocalSizeTime(local_size=one.local_size, seconds=None, reason=one.reason)
    return LocalSizeTime(
        local_size=one.local_size, seconds=one.estimate.seconds, detail=one.estimate.limiter
    )


async def _estimate(
    fields: LabFields, problem: Problem, service: Service, caller: Caller
) -> LocalSizes:
    """Ask one device for one local size after the other: they wait for its turn in any case."""
    if len(fields.devices) != 1:
        raise FieldError(
            name="device", message="local sizes are estimated on one device; choose one"
        )
    has_local = any(isinstance(one, LocalArgument) for one in problem.arguments)
    if has_local or _USES_LOCAL.search(problem.kernel.source):
        raise FieldError(
            name="local_size",
            message="the kernel shares local memory or requires its local size: it is written "
            "for one; change its parameters instead",
        )
    device = (await service.devices.choose(fields.devices))[0]
    most = min(_LARGEST_SAMPLED, device.max_work_group_size)
    wanted = _thin(list_local_sizes(problem.ndrange, most))
    times = [await _ask(fields, one, service, caller) for one in wanted]
    return LocalSizes(
        kernel=problem.kernel.name, where=device.id, is_modelled=False, times=tuple(times)
    )


def _thin(sizes: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Keep as many as may be sampled, evenly over the sizes of work-groups."""
    ordered = sorted(sizes, key=lambda one: (math.prod(one), one))
    if len(ordered) <= MOST_SAMPLED:
        return ordered
    step = (len(ordered) - 1) / (MOST_SAMPLED - 1)
    return [ordered[round(step * place)] for place in range(MOST_SAMPLED)]


async def _ask(
    fields: LabFields, local_size: tuple[int, ...], service: Service, caller: Caller
) -> LocalSizeTime:
    digest, _ = await fields.make_problem(service, {"local_size": list(local_size)})
    [wanted] = await list_asked(fields, digest, service, caller)
    return _of_outcome(local_size, await service.estimating.answer(wanted))


def _of_outcome(local_size: tuple[int, ...], outcome: Outcome) -> LocalSizeTime:
    held = json.loads(outcome.content)
    if outcome.error is not None:
        return LocalSizeTime(local_size=local_size, seconds=None, reason=held["error"]["message"])
    return LocalSizeTime(local_size=local_size, seconds=held["seconds"], detail=held["tier"])


def choose_machine(wanted: str, known: list[KnownMachine]) -> str:
    """Give the machine that is meant; its name is looked up and never becomes a path."""
    names = [one.name for one in known]
    if not names:
        raise FieldError(name="machine", message="there is no machine description")
    if wanted and wanted not in names:
        raise FieldError(name="machine", message=f"there is no machine description {wanted!r}")
    return wanted or names[0]


def picture_local_sizes(found: LocalSizes) -> Figure:
    """Picture times over the first dimension; a line for each of the others."""
    lines: dict[tuple[int, ...], list[Point]] = {}
    for one in sorted(found.times, key=lambda each: each.local_size):
        if one.seconds is not None:
            point = Point(x=one.local_size[0], y=one.seconds, label=f"{one.text}: {one.detail}")
            lines.setdefault(one.local_size[1:], []).append(point)
    return Figure(
        name=f"{found.kernel}-local-sizes",
        title=f"Time of {found.kernel} on {found.where} over local sizes",
        caption="Work-items along dimension 0; a line for each size of the other dimensions."
        if len(lines) > 1
        else "Work-items of a work-group.",
        charts=(
            Chart(
                x=Axis(title="work-items along dimension 0", is_log=True),
                y=Axis(title="time", unit="s", is_log=True),
                series=tuple(
                    Series(
                        name=f"x {' x '.join(map(str, rest))}" if rest else "time",
                        points=points, kind="line",
                    )
                    for rest, points in lines.items()
                ),
            ),
        ),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedTime:
    """The answer at one size; the times are None where there is none, for a reason."""

    value: int
    where: str
    seconds: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedTimes:
    """Times over a size."""

    kernel: str
    name: str
    is_modelled: bool
    times: tuple[SizedTime, ...]


async def vary_size(fields: LabFields, service: Service, caller: Caller) -> SizedTimes:
    """Ask for the launch at several values of the number that was chosen."""
    _, problem = await fields.make_problem(service)
    name, values = _choose_values(fields)
    changed = [(value, replace(fields, parameters=_set(fields, name, value))) for value in values]
    if fields.method == "estimate":
        times = [
            one
            for value, each in changed
            for one in await _estimate_size(value, each, service, caller)
        ]
    else:
        machine = choose_machine(fields.machine, await run_in_thread(list_machines))
        times = [await _model_size(value, each, machine, service) for value, each in changed]
    return SizedTimes(
        kernel=problem.kernel.name, name=name, is_modelled=fields.method != "estimate",
        times=tuple(times),
    )  # fmt: skip


def _choose_values(fields: LabFields) -> tuple[str, list[int]]:
    """Give the parameter and its values: halves and doubles that keep its even parts."""
    numbers = {
        name: int(value) for name, value in read_parameters(fields.parameters) if value.isdecimal()
    }
    if not numbers:
        raise FieldError(
            name="parameters",
            message="name the number that is to vary, such as N = 4096, and write {N} for it",
        )
    name = fields.varied if fields.varied in numbers else next(iter(numbers))
    value = numbers[name]
    # A power of two that divides the number divides all of its values: local sizes still fit.
    step = min(value & -value, _MOST_STEPS)
    found = {max(round(value * factor / step), 1) * step for factor in _FACTORS}
    return name, sorted(found)


def _set(fields: LabFields, name: str, value: int) -> str:
    return ", ".join(
        f"{key} = {value if key == name else text}"
        for key, text in read_parameters(fields.parameters)
    )


async def _model_size(value: int, fields: LabFields, machine: str, service: Service) -> SizedTime:
    found = await ask_launch((await fields.make_problem(service))[1], machine, service)
    seconds = None if found.estimate is None else found.estimate.seconds
    return SizedTime(value=value, where=machine, seconds=seconds, reason=found.reason)


async def _estimate_size(
    value: int, fields: LabFields, service: Service, caller: Caller
) -> list[SizedTime]:
    """Ask the chosen devices, one size after the other: they wait for their turn in any case."""
    digest, _ = await fields.make_problem(service)
    found = []
    for wanted in await list_asked(fields, digest, service, caller):
        outcome = await service.estimating.answer(wanted)
        held = json.loads(outcome.content)
        reason = "" if outcome.error is None else held["error"]["message"]
        found.append(
            SizedTime(
                value=value, where=held.get("device_id") or wanted.ask.device.id, reason=reason,
                seconds=held.get("seconds"), low=held.get("low"), high=held.get("high"),
            )
        )  # fmt: skip
    return found


def picture_sizes(found: SizedTimes) -> Figure:
    """Picture the times of each device over the size."""
    lines: dict[str, list[Point]] = {}
    for one in found.times:
        if one.seconds is not None:
            point = Point(x=one.value, y=one.seconds, low=one.low, high=one.high)
            lines.setdefault(one.where, []).append(point)
    return Figure(
        name=f"{found.kernel}-over-{found.name}",
        title=f"Time of {found.kernel} over {found.name}",
        caption=f"Predicted time over {found.name}, both axes by factors.",
        charts=(
            Chart(
                x=Axis(title=found.name, is_log=True),
                y=Axis(title="predicted time", unit="s", is_log=True),
                series=tuple(
                    Series(name=where, kind="line", points=points)
                    for where, points in lines.items()
                ),
            ),
        ),
    )


def picture_roofline(
    kernel: str, estimate: AnalyticEstimate, machine: MachineDescription
) -> Figure | None:
    """Draw the roofs of a machine and the launch below them; None where a roof is not known.

    What the model says each part would take alone gives operations and bytes their rates: the
    roofs are those that its time was made of.
    """
    kind = max(_COMPUTING, key=lambda one: estimate.limiters.get(one, 0.0))
    peak = next((one.peak_per_s for one in machine.instructions if one.name == kind), None)
    memory = next((one for one in _MEMORIES if estimate.limiters.get(one)), None)
    moved = sum(one for name, one in estimate.volumes.items() if memory and memory in name)
    busy_s = estimate.limiters.get(kind, 0.0)
    if peak is None or memory is None or not moved or not busy_s:
        return None
    bandwidth = moved / estimate.limiters[memory]
    operations = busy_s * peak.value
    intensity, rate = operations / moved, operations / estimate.seconds
    ridge = peak.value / bandwidth
    left, right = min(intensity, ridge) / _REACH, max(intensity, ridge) * _REACH
    roof = [(left, left * bandwidth), (ridge, peak.value), (right, peak.value)]
    return Figure(
        name=f"{kernel}-{machine.id}-roofline",
        title=(
            f"Roofline of {machine.name}: {kernel} does {write_digits(intensity)} {kind} "
            f"operations per byte of {memory} in {write_seconds(estimate.seconds)}; the roofs "
            f"meet at {write_digits(ridge)}"
        ),
        caption=f"The launch below the roofs of {memory} bandwidth and of {kind}.",
        charts=(
            Chart(
                x=Axis(title=f"{kind} operations per byte of {memory}", is_log=True),
                y=Axis(title="operations per second", unit="op/s", is_log=True),
                series=(
                    Series(name=kernel, points=[Point(x=intensity, y=rate, label=kernel)]),
                    Series(name="roof", kind="line", points=[Point(x=x, y=y) for x, y in roof]),
                ),
            ),
        ),
    )
