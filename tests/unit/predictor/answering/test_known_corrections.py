"""What a learned model said of a size corrects sizes near by."""

from dataclasses import replace

from kernelcast.predictor.answering.launch_request import LaunchRequest
from kernelcast.predictor.answering.learned import KnownCorrections, Learned
from kernelcast.predictor.answering.policy import MethodChoice, Policy
from kernelcast.records.arguments import ElementType, ScalarArgument
from support.fake_executor import DEVICE, FakeExecutor, make_problem

LEARNED = Learned(log_factor=0.1)


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


def test_sizes_near_by_take_what_was_learned() -> None:
    """Up to four times the work-items and whole numbers, and no further."""
    known = KnownCorrections()
    assert known.find(make_request(1000)) is None
    known.keep(make_request(1000), LEARNED)
    assert known.find(make_request(500)) is LEARNED
    assert known.find(make_request(4000, count=400)) is LEARNED
    assert known.find(make_request(4100)) is None
    assert known.find(make_request(1000, count=10)) is None
    assert known.find(make_request(1000, count=0)) is None


def test_others_take_nothing() -> None:
    """Other kernels, problem files, further models beside the answer, and after a new version."""
    known, request = KnownCorrections(), make_request(1000)
    known.keep(request, Learned(failure="no features"))
    assert known.find(request) is None
    known.keep(request, LEARNED)
    assert known.find(replace(request, is_live=False)) is None
    further = Policy(methods=MethodChoice(wanted=frozenset({"linear", "other"})))
    assert known.find(replace(request, policy=further)) is None
    kernel = replace(request.problem.kernel, build_options=("-DOTHER",))
    assert known.find(replace(request, problem=replace(request.problem, kernel=kernel))) is None
    known.forget()
    assert known.find(request) is None
