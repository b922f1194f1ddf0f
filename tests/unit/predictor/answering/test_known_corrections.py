"""What a learned model said of a size corrects sizes near by."""

from dataclasses import replace

from kernelcast.models.evidence.model import BUILT_IN
from kernelcast.predictor.answering.launch_request import LaunchRequest
from kernelcast.predictor.answering.learned import KnownCorrection, Learned, list_sizes
from kernelcast.predictor.answering.policy import Policy
from kernelcast.records.arguments import ElementType, ScalarArgument
from support.fake_executor import DEVICE, FakeExecutor, make_problem


def make_request(work_groups: int, count: int = 100) -> LaunchRequest:
    """Make a request about live objects: so many work-groups, and a number among the arguments."""
    problem = make_problem(work_groups=work_groups)
    number = ScalarArgument(element=ElementType("int32"), values=(count,))
    return LaunchRequest(
        problem=replace(problem, arguments=(*problem.arguments, number)),
        device=DEVICE,
        policy=Policy(),
        executor=FakeExecutor(),
        is_live=True,
    )


def test_a_correction_serves_sizes_near_by() -> None:
    """Up to four times the work-items and whole numbers; no problem files, nor other models."""
    request = make_request(1000)
    sizes = list_sizes(request.problem)
    assert sizes is not None
    known = KnownCorrection(BUILT_IN, sizes, Learned(log_factor=0.1))
    assert known.serves(make_request(500), BUILT_IN)
    assert known.serves(make_request(4000, count=400), BUILT_IN)
    further = Policy(methods=frozenset({"linear", "other"}))
    for other in (
        make_request(4100),
        make_request(1000, count=10),
        make_request(1000, count=0),
        replace(request, is_live=False),
        replace(request, policy=further),
    ):
        assert not known.serves(other, BUILT_IN)
    assert not known.serves(request, replace(BUILT_IN))
