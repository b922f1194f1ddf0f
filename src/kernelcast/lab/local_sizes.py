"""The analytic model's time for each local size of a launch."""

import math
from dataclasses import dataclass
from itertools import product

from kernelcast.launches.estimation import ReportProgress
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.estimating import estimate_analytically
from kernelcast.launches.modelling.gpu_estimates import configure
from kernelcast.launches.modelling.sources import LaunchSource, use_problem
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import InputError
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.workers import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSizeTask:
    """A launch to be modelled with many local sizes."""

    problem: Problem
    """The launch; its own local size is tried too."""
    machine: str
    """Name of a machine description."""
    local_sizes: tuple[tuple[int, ...], ...] | None = None
    """What is tried; all that are worth it where None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSizeAnswer:
    """What the model says of one local size."""

    local_size: tuple[int, ...]
    """Work-items of a work-group."""
    estimate: AnalyticEstimate | None = None
    """None where it cannot be launched or modelled."""
    reason: str = ""
    """Why it cannot."""


MODEL_LOCAL_SIZES = Task(entry=f"{__name__}:model_local_sizes", returns=tuple[LocalSizeAnswer, ...])


def model_local_sizes(task: LocalSizeTask, report: ReportProgress) -> tuple[LocalSizeAnswer, ...]:
    """Ask the model of a machine for every local size; runs in a child process."""
    machine = find_machine(task.machine)
    source = use_problem(task.problem)
    ndrange = task.problem.ndrange
    wanted = task.local_sizes
    if wanted is None:
        wanted = tuple(list_local_sizes(ndrange, read_limit(machine)))
    answers = []
    for number, one in enumerate(wanted, start=1):
        report(f"local size {number} of {len(wanted)}")
        answers.append(_ask(source, machine, one))
    return tuple(answers)


def list_local_sizes(ndrange: NDRange, most: int) -> list[tuple[int, ...]]:
    """List local sizes worth trying: sides that divide the global size, few of each dimension."""
    sides = [_list_sides(size, most) for size in ndrange.global_size]
    found = {one for one in product(*sides) if math.prod(one) <= most}
    # The largest 80 work-groups are those that matter; a flat one stays in any case.
    kept = sorted(found, key=lambda one: (-math.prod(one), one))[:80]
    own = ndrange.local_size
    return sorted({*kept, *([own] if own is not None else [])})


def read_limit(machine: MachineDescription) -> int:
    """Give the largest work-group that is tried on a machine."""
    told = machine.max_work_group_size
    return 1024 if told is None else min(1024, told.value)


def _list_sides(size: int, most: int) -> list[int]:
    """Give divisors of a size: powers of two, or a few others where there are hardly any."""
    limit = min(size, most)
    powers = [1 << power for power in range(limit.bit_length()) if size % (1 << power) == 0]
    if len(powers) > 4 or limit <= 1:
        return powers
    divisors = [one for one in range(1, limit + 1) if size % one == 0]
    if len(divisors) <= 9:
        return divisors
    return sorted({divisors[round((len(divisors) - 1) * place / 8)] for place in range(9)})


def _ask(
    source: LaunchSource, machine: MachineDescription, local_size: tuple[int, ...]
) -> LocalSizeAnswer:
    try:
        if machine.kind is DeviceKind.GPU:
            estimate = configure(source, machine, local_size).estimate
        else:
            estimate = estimate_analytically(source.launch(local_size), machine)
    except InputError as error:
        return LocalSizeAnswer(local_size=local_size, reason=str(error))
    return LocalSizeAnswer(local_size=local_size, estimate=estimate)
