"""What runtimes make of functions: measured per runtime, usual figures elsewhere."""

from dataclasses import replace

import pytest

from kernelcast.analytic.cpu.estimate import estimate_cpu
from kernelcast.analytic.cpu.opencl.device import INTEL, POCL, RUSTICL, read_device
from kernelcast.records.device import Trait, TraitSource
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.machine import MachineDescription
from kernelcast.records.operations import NumberClass, Operation, OperationCounts, OperationKind
from support.opencl_cpu import make_launch, make_machine

TIMES = 1000.0


LAUNCH = make_launch(["a:float32:4096"], loads=["a[x]"], size=(4096,))


def estimate(
    machine: MachineDescription, name: str, *, branches: float = 0.0, lanes: int = 1
) -> AnalyticEstimate:
    """Estimate a launch that does nothing but call a function, or add where it has no name."""
    kind = OperationKind.SPECIAL if name else OperationKind.ADD
    one = Operation(kind=kind, number=NumberClass.FLOAT, bits=32, name=name, lanes=lanes)
    branch = Operation(kind=OperationKind.BRANCH, number=NumberClass.NONE)
    counts = OperationCounts(operations={one: TIMES, branch: branches}, memory={})
    return estimate_cpu(replace(LAUNCH, executed=counts), machine)


def of(platform: str) -> MachineDescription:
    """Describe a device of a platform, whose scalar cosine takes as long as a vector of them."""
    machine = make_machine(1 if platform == POCL else 16)
    scalar = Trait(value=8e-9, source=TraitSource.MEASURED)
    instructions = tuple(
        replace(one, completion_latency_s=dict.fromkeys((1, 2, 4), scalar))
        if one.name == "special"
        else one
        for one in machine.instructions
    )
    return replace(machine, platform=platform, instructions=instructions)


@pytest.mark.parametrize(("platform", "least", "most"), [("Somebody's", 15.9, 16.1),
                                                         (INTEL, 0.51, 1.0)])  # fmt: skip
def test_intel_has_vectors_of_sine_and_cosine_at_once(
    platform: str, least: float, most: float
) -> None:
    """Takes less for both than for two calls; an unknown runtime keeps the usual figures: a sine
    and a cosine at once are called lane by lane."""
    both, one = (estimate(of(platform), name).limiters["special"] for name in ("sincos", "cos"))
    assert least <= both / one <= most
    assert (read_device(of(platform)).functions is None) == (platform != INTEL)


def test_pocl_calls_most_functions_once_per_lane() -> None:
    """A logarithm takes in straight code, where work-items are vectors, what scalars take."""
    (log, log_alone), (exp, exp_alone) = (
        [estimate(of(POCL), name, branches=one).limiters["special"] for one in (0.0, 20.0)]
        for name in ("log", "exp")
    )
    assert log == pytest.approx(log_alone)
    assert exp < exp_alone / 2


@pytest.mark.parametrize(
    ("name", "lanes", "width"), [("", 1, 16), ("", 2, 1), ("exp", 1, 16), ("log", 1, 1)]
)
def test_pocl_makes_no_lanes_beside_vectors_and_calls(name: str, lanes: int, width: int) -> None:
    """Runs one work-item after the other where it has its own vectors, or calls functions."""
    found = estimate(of(POCL), name, lanes=lanes)
    assert found.quantities["vector_work_items_count"] == width


@pytest.mark.parametrize(("platform", "times"), [(POCL, 1), (INTEL, 1), (RUSTICL, 3)])
def test_rusticl_goes_through_what_others_jump_over(platform: str, times: float) -> None:
    """Takes as long as if all sides of conditions were executed, on that runtime alone."""
    one = Operation(kind=OperationKind.DIVIDE, number=NumberClass.FLOAT, bits=32)
    executed, all_sides = (
        OperationCounts(operations={one: count}, memory={}) for count in (TIMES, 3 * TIMES)
    )
    plain, masked = (
        estimate_cpu(replace(LAUNCH, executed=executed, unjumped=unjumped), of(platform))
        for unjumped in (executed, all_sides)
    )
    assert masked.limiters["special"] == pytest.approx(times * plain.limiters["special"])
