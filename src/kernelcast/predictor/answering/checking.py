"""Holds the history of a launch against physics, as cheaply as may be."""

from dataclasses import replace
from typing import Final

from kernelcast.launches.own_machine import find_sound_machine
from kernelcast.predictor.answering.launch_history import LaunchHistory
from kernelcast.predictor.answering.plausibility import (
    MODEL,
    Expected,
    Floor,
    Plausible,
    bound_launch,
    bound_traffic,
    doubt_launch,
)
from kernelcast.predictor.answering.processes import Executor
from kernelcast.predictor.answering.tasks import ModelTask
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import KernelcastError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.problem import Problem

_TIMEOUT_S: Final = 10.0
# As `plausibility.expect` takes it for the interval that the model has where its errors are not
# known: a factor of 3.
_MODEL_FACTOR: Final = 9.0


def check_history(
    history: LaunchHistory, problem: Problem, device: DeviceDescription, executor: Executor
) -> None:
    """Have a history set aside what cannot be."""
    if history.is_empty:
        return
    machine = find_sound_machine(device.id)
    floors = [history.known.floor, bound_launch(device, problem.ndrange)]
    expected = history.known.expected
    suspect_s = bound_traffic(problem.buffer_bytes, device, machine).seconds
    least_s = history.find_least(max(one.seconds for one in floors))
    if least_s < suspect_s and not any(one.holds(least_s) for one in expected):
        floor, found = _ask(problem, device, machine, executor)
        floors.append(floor)
        expected = expected or found
    floor = max(floors, key=lambda one: one.seconds)
    known = Plausible(floor=floor, launch=doubt_launch(machine), expected=expected)
    history.hold_against(known)


def _ask(
    problem: Problem,
    device: DeviceDescription,
    machine: MachineDescription | None,
    executor: Executor,
) -> tuple[Floor, tuple[Expected, ...]]:
    """Find out what a launch moves, and what the analytic model says of it."""
    task = ModelTask(problem=problem, device_id=device.id, wants_bytes=True)
    try:
        found = executor.model(task, timeout_s=_TIMEOUT_S, report=lambda _: None)
    except KernelcastError:
        return Floor(), ()
    floor = bound_traffic(found.touched_bytes, device, machine)
    if found.analytic is None:
        return floor, ()
    seconds = found.analytic.seconds
    return floor, (Expected(seconds=seconds, factor=_MODEL_FACTOR, source=MODEL),)


def add_expected(history: LaunchHistory, one: Expected) -> None:
    """Have a history set aside what contradicts an estimate; the last of a kind counts."""
    known = history.known
    others = [other for other in known.expected if other.source != one.source]
    history.hold_against(replace(known, expected=(one, *others)))
