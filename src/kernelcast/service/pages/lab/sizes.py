"""Time over a size: one number of the launch is varied, all else follows it."""

import json
from dataclasses import dataclass, replace
from typing import Final

from kernelcast.lab.written_nest import FieldError
from kernelcast.launches.machines import list_machines
from kernelcast.reports.charts import Axis, Chart, Point, Series
from kernelcast.service.authentication import Caller
from kernelcast.service.pages.filters import write_seconds
from kernelcast.service.pages.lab.fields import LabFields, read_parameters
from kernelcast.service.pages.lab.local_sizes import ask_launch, list_asked
from kernelcast.service.pages.lab.showing import choose_machine
from kernelcast.service.pages.pictures import Picture
from kernelcast.service.pages.threads import run_in_thread
from kernelcast.service.service import Service

_FACTORS: Final = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2)
_MOST_STEPS: Final = 256


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
            one for value, each in changed for one in await _estimate(value, each, service, caller)
        ]
    else:
        machine = choose_machine(fields.machine, await run_in_thread(list_machines))
        times = [await _model(value, each, machine, service) for value, each in changed]
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


async def _model(value: int, fields: LabFields, machine: str, service: Service) -> SizedTime:
    found = await ask_launch((await fields.make_problem(service))[1], machine, service)
    seconds = None if found.estimate is None else found.estimate.seconds
    return SizedTime(value=value, where=machine, seconds=seconds, reason=found.reason)


async def _estimate(
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


def make_size_picture(found: SizedTimes) -> Picture:
    """Draw the times of each device over the size."""
    known = [one for one in found.times if one.seconds is not None]
    places = list(dict.fromkeys(one.where for one in known))
    ends = (min(known, key=lambda one: one.value), max(known, key=lambda one: one.value))
    told = ", ".join(f"{write_seconds(one.seconds)} at {one.value}" for one in ends)
    series = tuple(
        Series(name=where, kind="line", points=[
            Point(x=one.value, y=one.seconds or 0.0, low=one.low, high=one.high)
            for one in known if one.where == where
        ])
        for where in places
    )  # fmt: skip
    return Picture(
        name=f"{found.kernel}-over-{found.name}",
        alternative=f"Time of {found.kernel} over {found.name}: {told}.",
        caption=f"Predicted time over {found.name}, both axes by factors.",
        columns=(found.name, "where", "seconds", "low", "high"),
        rows=[(one.value, one.where, one.seconds, one.low, one.high) for one in known],
        chart=Chart(
            x=Axis(title=found.name, is_log=True),
            y=Axis(title="predicted time", unit="s", is_log=True),
            series=series,
        ),
    )
