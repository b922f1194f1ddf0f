"""What a learned model said of a size corrects sizes near by."""

import math
from dataclasses import replace

import pytest

from kernelcast.models.evidence.fusion import fuse
from kernelcast.models.evidence.piece import Kind, Piece
from kernelcast.predictor.answering.known_corrections import KnownCorrections, move
from kernelcast.predictor.answering.launch_request import LaunchRequest
from kernelcast.predictor.answering.learned import Learned, correct
from kernelcast.predictor.answering.policy import MethodChoice, Policy
from kernelcast.records.arguments import ElementType, ScalarArgument
from kernelcast.records.estimates import Interval
from support.fake_executor import DEVICE, FakeExecutor, make_problem

LEARNED = Learned(
    correction=correct(0.0, Interval(seconds=1.1, low=1.0, high=1.32, coverage=0.9), in_domain=True)
)


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


def test_a_correction_moves_what_the_samples_of_the_other_size_say() -> None:
    """By the same factor, with an interval as wide."""
    piece = Piece(kind=Kind.SAMPLES, log_seconds=math.log(2.0), variance=0.01)
    moved = move(LEARNED, fuse([piece])).correction
    assert moved is not None
    assert LEARNED.correction is not None
    assert moved.log_factor == LEARNED.correction.log_factor
    found = moved.interval
    assert (found.low, found.seconds, found.high) == pytest.approx((2.0, 2.2, 2.64))
