"""Puts a problem onto a device: features says what its arguments are, sampling holds them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from kernelcast.features.analysis import infer_accesses
from kernelcast.launches.source_check import refuse_overruns
from kernelcast.records.problem import Problem
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.problems import prepared_problem
from kernelcast.sampling.session import DeviceSession


@contextmanager
def prepared_launch(
    session: DeviceSession, problem: Problem, *, seed: int
) -> Iterator[OpenCLLaunch]:
    """Build a problem and keep its buffers, the device locked, for the length of the block."""
    inferred = infer_accesses(problem.kernel, len(problem.arguments))
    with (
        session.lock,
        prepared_problem(session, problem, seed=seed, inferred=inferred) as launch,
    ):
        refuse_overruns(replace(problem, ndrange=launch.ndrange))
        yield launch
