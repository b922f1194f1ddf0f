"""Compares local sizes: by the analytic model of a machine, or by estimates of a device."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kernelcast.lab.local_sizes import (
    MODEL_LOCAL_SIZES,
    LocalSizeAnswer,
    LocalSizeTask,
    list_local_sizes,
)
from kernelcast.lab.written_nest import FieldError
from kernelcast.launches.machines import list_machines
from kernelcast.launches.modelling.launches import choose_local_size
from kernelcast.records.arguments import LocalArgument
from kernelcast.records.errors import CompileError, InputError
from kernelcast.records.problem import Problem
from kernelcast.service.authentication import Caller
from kernelcast.service.errors import message_of
from kernelcast.service.estimating import Outcome, Sampling, Wanted
from kernelcast.service.pages.lab.fields import LabFields
from kernelcast.service.pages.lab.heat_map import LocalSizeTime
from kernelcast.service.pages.lab.showing import choose_machine
from kernelcast.service.pages.threads import run_in_thread
from kernelcast.service.routes.estimates import list_wanted
from kernelcast.service.schemas.estimates import EstimateRequest
from kernelcast.service.service import Service

MOST_SAMPLED: Final = 16
"""Local sizes that are estimated on a device: each may take samples."""
_LARGEST_SAMPLED: Final = 1024
_USES_LOCAL = re.compile(r"\b(?:__)?local\b|\breqd_work_group_size\b")


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
