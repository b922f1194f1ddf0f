"""Puts a problem onto a device: features says what its arguments are, sampling holds them."""

from collections.abc import Iterator
from contextlib import contextmanager

from kernelcast.features.access import infer_accesses
from kernelcast.launches.bounds_check import refuse_overruns
from kernelcast.records.problem import Problem
from kernelcast.sampling.problems import Launch, prepared_problem
from kernelcast.sampling.session import DeviceSession


@contextmanager
def prepared_launch(
    session: DeviceSession, problem: Problem, launch_type: type[Launch], *, seed: int
) -> Iterator[Launch]:
    """Build a problem and keep its buffers, the device locked, for the length of the block.

    Parameters
    ----------
    launch_type : type
        What can be done with it, see `kernelcast.sampling.problems.prepared_problem`.
    seed : int
        Seed of random buffer contents.

    Raises
    ------
    InputError
        If source, kernel name or arguments do not fit together, or the source proves that the
        launch leaves a buffer.
    DeviceError
        If the device cannot hold or run the launch.
    """
    inferred = infer_accesses(problem.kernel, len(problem.arguments))
    with (
        session.lock,
        prepared_problem(session, problem, launch_type, seed=seed, inferred=inferred) as launch,
    ):
        refuse_overruns(problem.kernel, launch.ndrange, problem.arguments)
        yield launch
