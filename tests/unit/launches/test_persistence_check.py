"""A kernel whose work-groups fetch their work gets a reason and no number, by whichever way."""

from collections.abc import Callable
from typing import cast

import pytest

from kernelcast.launches.modelling.launches import model_launch
from kernelcast.launches.settings import EstimateSettings
from kernelcast.launches.source_check import refuse_persistent
from kernelcast.launches.weighing import sample_by_source
from kernelcast.predictor.answering.measuring import model_alone, run_estimate
from kernelcast.predictor.answering.tasks import EstimateTask, ModelTask
from kernelcast.records.arguments import BufferArgument, ElementType, ScalarArgument
from kernelcast.records.errors import PersistentKernelError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.sampling.backend import PreparedLaunch
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.session import DeviceSession

_SOURCE = """
kernel void drain(volatile global int *head, global float *a, int n) {
  for (;;) {
    int i = atomic_add(head, 1);
    if (i >= n)
      break;
    a[i] *= 2;
  }
}
"""
_N = 1 << 16
_PROBLEM = Problem(
    name="drain",
    kernel=Kernel(name="drain", source=_SOURCE),
    ndrange=NDRange(global_size=(_N,), local_size=(64,)),
    arguments=(
        BufferArgument(element=ElementType("int32"), count=1),
        BufferArgument(element=ElementType("float32"), count=_N),
        ScalarArgument(element=ElementType("int32"), values=(_N,)),
    ),
)
_UNUSED_SESSION = cast("DeviceSession", None)
_UNUSED_LAUNCH = cast("PreparedLaunch", None)
_WAYS: dict[str, Callable[[], object]] = {
    "sampling": lambda: run_estimate(
        _UNUSED_SESSION,
        EstimateTask(problem=_PROBLEM, device_id="none", settings=EstimateSettings()),
    ),
    "collecting": lambda: sample_by_source(
        _UNUSED_LAUNCH, SamplingPlan(), _PROBLEM.kernel, _PROBLEM.arguments
    ),
    "analytic answer": lambda: model_alone(
        ModelTask(problem=_PROBLEM, device_id="none"), lambda _: None
    ),
    "model command": lambda: model_launch(_PROBLEM),
}


@pytest.mark.parametrize("way", _WAYS)
def test_no_tier_but_history_answers(way: str) -> None:
    """Neither samples nor the analytic model are asked; the loop and a way out are named."""
    with pytest.raises(PersistentKernelError, match=r"line 3: the loop .* atomic_add in line 4"):
        _WAYS[way]()


def test_a_source_that_is_not_understood_is_not_refused() -> None:
    """The device's compiler says better what is wrong with it."""
    refuse_persistent(Kernel(name="drain", source="kernel void drain( {"))
    refuse_persistent(Kernel(name="other", source=_SOURCE))
