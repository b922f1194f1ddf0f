"""Launches that only differ in sizes from answered ones are answered as if they were the first."""

import contextlib
import pickle
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

import kernelcast
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor.known_sizes import PlannedEstimate
from kernelcast.predictor.predictor_options import PredictorOptions
from kernelcast.records.errors import DeviceError, OverrunError, SignatureError
from kernelcast.records.estimates import Estimate, Tier
from kernelcast.records.observation import ObservationFlag
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.problems import put_arguments, release_arguments
from kernelcast.sampling.session import DeviceSession
from kernelcast.training_data.applications import find_kernels

pytestmark = pytest.mark.device

NAMES = ("gemm/matmul", "gemv/gemv_n", "npb_mg/resid", "median_filter/harris", "softmax_rows",
         "kmeans", "gauss", "grid2d/life", "setiv", "dct8x8", "transpose")  # fmt: skip
SOURCE = """
kernel void add(global float *a, global const float *b, float s, int n, local float *shared)
{
    size_t i = get_global_id(0);
    float x = b[i];
    for (int k = 0; k < n; ++k)
        x = x * s + 1.0f;
    a[i] = x;
}
"""
MakeLaunch: TypeAlias = Callable[..., kernelcast.Launch]


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[kernelcast.Predictor]:
    """Give a predictor that may run nothing."""
    options = PredictorOptions(settings=replace(EstimateSettings(), samples=False))
    with kernelcast.Predictor(store=tmp_path / "rows.sqlite", options=options) as predictor:
        yield predictor


@pytest.fixture
def make(session: DeviceSession) -> MakeLaunch:
    """Give what makes launches of so many work-items."""
    program = cl.Program(session.context, SOURCE).build()
    kernel = cl.Kernel(program, "add")
    flags = cl.mem_flags.READ_WRITE
    buffers = [cl.Buffer(session.context, flags, 1 << 20) for _ in range(2)]

    def make(
        items: int, s: float = 0.5, n: int = 9, local: int = 64, _: object = program
    ) -> kernelcast.Launch:
        arguments = [*buffers, np.float32(s), np.int32(n), cl.LocalMemory(4 * local)]
        return kernelcast.Launch(kernel, (items,), (64,), arguments, queue=session.queue)

    return make


@pytest.fixture
def planned(bare: kernelcast.Predictor, make: MakeLaunch) -> kernelcast.Predictor:
    """Give one that has seen some sizes and answered others."""
    for items in (6400, 64000, 128000):
        bare.observe(make(items), 1e-7 * items, is_first=False)
    bare.flush()
    for items in (640, 1280, 1920):
        bare.estimate(make(items))
    return bare


def stop_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have answers not depend on when they are made."""
    now_s = time.time()
    monkeypatch.setattr(time, "time", lambda: now_s)


def check(predictor: kernelcast.Predictor, launch: kernelcast.Launch) -> Estimate:
    """Ask as programs do, and the long way; give the answer."""
    answer = predictor.estimate(launch)
    assert answer == predictor.answer(launch).estimate
    return answer


def test_planned_answers_are_those_of_the_long_way(
    planned: kernelcast.Predictor, make: MakeLaunch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every field is the same, whatever differs from the launches before."""
    stop_time(monkeypatch)
    launches = [make(64 * 77), make(64 * 99, s=0.25), make(64 * 99, n=50), make(6400, n=0),
                make(64 * 120, n=-3), make(192, local=32)]  # fmt: skip
    answers = [check(planned, one) for one in launches]
    assert sum(type(one) is PlannedEstimate for one in answers) >= 3
    assert {one.tier for one in answers} == {Tier.SIZES}
    assert planned.estimate(launches[0]) is answers[0]
    assert pickle.loads(pickle.dumps(answers[0])) == answers[0]
    assert replace(answers[0], warnings=("changed",)).interval == answers[0].interval


def test_corpus_kernels_are_answered_alike(
    bare: kernelcast.Predictor, session: DeviceSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes at random, loops and borders that depend on them, kernels that cannot be planned."""
    planned = 0
    for one in find_kernels():
        if not any(name in one.name for name in NAMES):
            continue
        size = one.size.fit(min(one.size.most, 16 * one.size.least))
        problem = read_problem(one.problem_path, parameters={one.size.parameter: size})
        program = cl.Program(session.context, problem.kernel.source)
        program.build(list(problem.kernel.build_options))
        kernel = cl.Kernel(program, problem.kernel.name)
        arguments = put_arguments(session, problem, seed=0)
        ndrange, draw = problem.ndrange, random.Random(one.name)
        local = ndrange.local_size or (1,) * ndrange.dimensions
        groups = ndrange.global_size[-1] // local[-1]
        launches = [
            kernelcast.Launch(
                kernel, (*ndrange.global_size[:-1], draw.randint(1, groups) * local[-1]), local,
                arguments, queue=session.queue, global_offset=ndrange.global_offset,
                source=problem.kernel.source, build_options=problem.kernel.build_options,
            ) for _ in range(12)
        ]  # fmt: skip
        try:
            for number, launch in enumerate(launches[:3]):
                bare.observe(launch, 0.01 * (number + 1), is_first=False)
            bare.flush()
            with monkeypatch.context() as patch:
                stop_time(patch)
                with contextlib.suppress(DeviceError):  # contents decide
                    answers = [check(bare, launch) for launch in launches[3:]]
                    planned += sum(type(answer) is PlannedEstimate for answer in answers)
        finally:
            release_arguments(session, arguments)
    assert planned >= 20


def test_what_is_observed_ends_plans(planned: kernelcast.Predictor, make: MakeLaunch) -> None:
    """Another time of a size moves all others; the launch itself is answered by its history."""
    launch, other = make(64 * 500), make(64 * 600)
    before, beside = planned.estimate(launch), planned.estimate(other)
    assert isinstance(before, PlannedEstimate)
    for _ in range(3):
        planned.observe(launch, 2.0 * before.seconds, is_first=False)
    assert planned.estimate(launch).tier is Tier.HISTORY
    assert planned.estimate(launch).seconds > 1.5 * before.seconds
    assert planned.estimate(other).seconds > beside.seconds


def test_observations_are_held_against_planned_answers(
    planned: kernelcast.Predictor, make: MakeLaunch
) -> None:
    """What no size of the kernel makes likely is doubted, asked by the answer or by the launch."""
    first, second = planned.estimate(make(64 * 300)), planned.estimate(make(64 * 301))
    assert isinstance(first, PlannedEstimate)
    doubted = {ObservationFlag.DOUBTED}
    assert planned.observe(first, 1e4 * first.seconds, is_first=False) == doubted
    assert planned.observe(make(64 * 301), 1e4 * second.seconds, is_first=False) == doubted


def test_what_does_not_fit_is_refused_as_ever(
    planned: kernelcast.Predictor, make: MakeLaunch
) -> None:
    """Launches that leave a buffer, and arguments of other types."""
    assert isinstance(planned.estimate(make(64 * 17)), PlannedEstimate)
    with pytest.raises(OverrunError):
        planned.estimate(make(1 << 20))
    launch = make(64 * 18)
    with pytest.raises(SignatureError):
        planned.estimate(replace(launch, args=[*launch.args[:3], np.float32(1), launch.args[4]]))
    zero = make(64 * 19, s=0.0, n=0)
    assert isinstance(planned.estimate(zero), PlannedEstimate)
    with pytest.raises(SignatureError):  # the same bytes
        planned.estimate(replace(zero, args=[*zero.args[:3], np.float32(0), zero.args[4]]))
    with pytest.raises(SignatureError):
        planned.estimate(replace(launch, args=launch.args[:4]))
    with pytest.raises(OverrunError):
        planned.estimate(replace(launch, args=[None, *launch.args[1:]]))
    assert planned.estimate(replace(launch, local_size=(32,))).ndrange.local_size == (32,)
