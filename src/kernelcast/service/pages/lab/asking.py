"""What the Lab asks over many launches: times over local sizes and sizes, and the roofline."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from kernelcast.lab.local_sizes import (
    MODEL_LOCAL_SIZES,
    LocalSizeAnswer,
    LocalSizeTask,
    list_local_sizes,
)
from kernelcast.launches.machines import KnownMachine, list_machines
from kernelcast.launches.modelling.launches import choose_local_size
from kernelcast.records.arguments import LocalArgument
from kernelcast.records.errors import CompileError, InputError
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.machine import MachineDescription
from kernelcast.records.problem import Problem
from kernelcast.reports.charts import Axis, Chart, Figure, Point, Series, chart_roofs
from kernelcast.service.authentication import Caller
from kernelcast.service.errors import message_of
from kernelcast.service.estimating import Sampling, Wanted
from kernelcast.service.pages.filters import write_digits, write_seconds
from kernelcast.service.pages.lab.fields import FieldError, LabFields, read_parameters
from kernelcast.service.pages.rendering import run_in_thread
from kernelcast.service.routes.estimates import list_wanted
from kernelcast.service.schemas.estimates import EstimateRequest
from kernelcast.service.service import Service

_USES_LOCAL = re.compile(r"\b(?:__)?local\b|\breqd_work_group_size\b")
_FACTORS: Final = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2)
_COMPUTING = ("fp32", "fp64", "fp16", "int32")
_MEMORIES = ("DRAM", "MEM", "L2")  # the outermost that the launch meets


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """What a launch takes with a local size or at a size; no times where there is a reason."""

    value: tuple[int, ...]
    where: str
    """The machine or device that says so."""
    seconds: float | None
    low: float | None = None
    high: float | None = None
    detail: str = ""
    """The limiter, or the tier."""
    reason: str = ""

    @property
    def text(self) -> str:
        """The value as people write it."""
        return " x ".join(map(str, self.value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Times of a kernel over local sizes, or over a parameter."""

    kernel: str
    parameter: str
    """Empty for local sizes."""
    where: str
    is_modelled: bool
    times: Sequence[Timed]

    def picture(self) -> Figure:
        """Picture the times: over the first dimension of local sizes, or over the parameter."""
        is_size = bool(self.parameter)
        lines: dict[str, list[Point]] = {}
        for one in sorted(self.times, key=lambda each: each.value):
            rest = one.where if is_size else " x ".join(map(str, ("", *one.value[1:]))).strip()
            if one.seconds is not None:
                label = "" if is_size else f"{one.text}: {one.detail}"
                point = Point(
                    x=one.value[0], y=one.seconds, low=one.low, high=one.high, label=label
                )
                lines.setdefault(rest or "time", []).append(point)
        if is_size:
            name, title = f"over-{self.parameter}", f"over {self.parameter}"
            caption = f"Predicted time over {self.parameter}, both axes by factors."
        else:
            name, title = "local-sizes", f"on {self.where} over local sizes"
            caption = "Work-items of a work-group."
            if len(lines) > 1:
                caption = "A line for each size of the other dimensions."
        x = self.parameter or "work-items along dimension 0"
        series = [Series(name=rest, points=points, kind="line") for rest, points in lines.items()]
        chart = Chart(
            x=Axis(title=x, is_log=True), y=Axis(title="predicted time", unit="s", is_log=True),
            series=tuple(series),
        )  # fmt: skip
        return Figure(
            name=f"{self.kernel}-{name}", title=f"Time of {self.kernel} {title}", caption=caption,
            charts=(chart,),
        )  # fmt: skip


async def compare_local_sizes(fields: LabFields, service: Service, caller: Caller) -> Times:
    """Compare local sizes: by the analytic model, or by estimates of one device."""
    _, problem = await fields.make_problem(service)
    if fields.method == "estimate":
        # Choose as many local sizes as may be sampled, evenly over the sizes of work-groups.
        if len(fields.devices) != 1:
            raise FieldError("device", "local sizes are estimated on one device; choose one")
        has_local = any(isinstance(one, LocalArgument) for one in problem.arguments)
        if has_local or _USES_LOCAL.search(problem.kernel.source):
            raise FieldError(
                "local_size",
                "the kernel shares local memory or requires its local size: it is written "
                "for one; change its parameters instead",
            )
        device = (await service.devices.choose(fields.devices))[0]
        sizes = list_local_sizes(problem.ndrange, min(1024, device.max_work_group_size))
        ordered = sorted(sizes, key=lambda one: (math.prod(one), one))
        # Each that is estimated may take samples.
        count = min(len(ordered), 16)
        wanted = [ordered[round(place)] for place in np.linspace(0, len(ordered) - 1, count)]
        # One after the other: they wait for the device's turn in any case.
        times = [
            timed
            for size in wanted
            for timed in await _ask(fields, size, service, caller, {"local_size": list(size)})
        ]
    else:
        machine = choose_machine(fields.machine, await run_in_thread(list_machines))
        answers = await ask_model(LocalSizeTask(problem=problem, machine=machine), service)
        times = [_of_model(one.local_size, machine, one) for one in answers]
    return Times(
        kernel=problem.kernel.name, parameter="", where=times[0].where if times else "",
        is_modelled=fields.method != "estimate", times=times,
    )  # fmt: skip


async def vary_size(fields: LabFields, service: Service, caller: Caller) -> Times:
    """Ask for the launch at several values of the number that was chosen."""
    _, problem = await fields.make_problem(service)
    # Halves and doubles that keep the even parts of the parameter.
    numbers = {
        name: int(value) for name, value in read_parameters(fields.parameters) if value.isdecimal()
    }
    if not numbers:
        raise FieldError(
            "parameters", "name the number that is to vary, such as N = 4096, and write {N} for it"
        )
    name = fields.varied if fields.varied in numbers else next(iter(numbers))
    number = numbers[name]
    # A power of two that divides the number divides all of its values: local sizes still fit.
    step = min(number & -number, 256)
    values = sorted({max(round(number * factor / step), 1) * step for factor in _FACTORS})
    machine = ""
    if fields.method != "estimate":
        machine = choose_machine(fields.machine, await run_in_thread(list_machines))
    times: list[Timed] = []
    for value in values:
        changed = replace(fields, parameters=_set(fields, name, value))
        if machine:
            found = await ask_launch((await changed.make_problem(service))[1], machine, service)
            times.append(_of_model((value,), machine, found))
        else:
            times += await _ask(changed, (value,), service, caller)
    return Times(
        kernel=problem.kernel.name, parameter=name, where=machine, is_modelled=bool(machine),
        times=times,
    )  # fmt: skip


async def ask_model(task: LocalSizeTask, service: Service) -> tuple[LocalSizeAnswer, ...]:
    """Ask the analytic model; what is wrong is told beside the field that it is about."""
    try:
        return await service.ask(MODEL_LOCAL_SIZES, task, "the model")
    except CompileError as error:
        raise FieldError("code", message_of(error)) from error
    except InputError as error:
        raise FieldError("machine", message_of(error)) from error


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
        raise FieldError("device", "choose at least one device")
    asked = EstimateRequest(
        problem_digest=digest,
        devices=list(fields.devices),
        sampling=Sampling.AUTO if fields.may_sample else Sampling.NEVER,
    )
    return await list_wanted(asked, service, caller)


def _of_model(value: tuple[int, ...], machine: str, one: LocalSizeAnswer) -> Timed:
    if one.estimate is None:
        return Timed(value=value, where=machine, seconds=None, reason=one.reason)
    seconds, limiter = one.estimate.seconds, one.estimate.limiter
    return Timed(value=value, where=machine, seconds=seconds, detail=limiter)


async def _ask(
    fields: LabFields,
    value: tuple[int, ...],
    service: Service,
    caller: Caller,
    changes: Mapping[str, Any] | None = None,
) -> list[Timed]:
    """Ask the chosen devices about the launch with changes."""
    digest, _ = await fields.make_problem(service, changes)
    found = []
    for wanted in await list_asked(fields, digest, service, caller):
        outcome = await service.estimating.answer(wanted)
        held = json.loads(outcome.content)
        found.append(
            Timed(
                value=value, where=wanted.ask.device.id, seconds=held.get("seconds"),
                low=held.get("low"), high=held.get("high"), detail=held.get("tier", ""),
                reason="" if outcome.error is None else held["error"]["message"],
            )
        )  # fmt: skip
    return found


def choose_machine(wanted: str, known: list[KnownMachine]) -> str:
    """Give the machine that is meant; its name is looked up and never becomes a path."""
    names = [one.name for one in known]
    if not names:
        raise FieldError("machine", "there is no machine description")
    if wanted and wanted not in names:
        raise FieldError("machine", f"there is no machine description {wanted!r}")
    return wanted or names[0]


def _set(fields: LabFields, name: str, value: int) -> str:
    return ", ".join(
        f"{key} = {value if key == name else text}"
        for key, text in read_parameters(fields.parameters)
    )


def picture_roofline(
    kernel: str, estimate: AnalyticEstimate, machine: MachineDescription
) -> Figure | None:
    """Draw the roofs of a machine and the launch below them; None where a roof is not known."""
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
    left, right = min(intensity, ridge) / 64, max(intensity, ridge) * 64
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
            chart_roofs(
                (
                    Series(name=kernel, points=[Point(x=intensity, y=rate, label=kernel)]),
                    Series(name="roof", kind="line", points=[Point(x=x, y=y) for x, y in roof]),
                ),
                f"{kind} operations per byte of {memory}",
            ),
        ),
    )
