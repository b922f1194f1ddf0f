"""Puts a problem's arguments onto a device."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from kernelcast.records.arguments import (
    Access,
    Argument,
    BufferArgument,
    LocalArgument,
    ScalarArgument,
    make_scalar,
)
from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.errors import DeviceLimitError
from kernelcast.records.problem import Problem
from kernelcast.sampling.contents import fill_array, make_array, shape_of
from kernelcast.sampling.launch import OpenCLLaunch, explained_errors
from kernelcast.sampling.launch_limits import check_launch
from kernelcast.sampling.local_size import choose_local_size
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.problem_arguments import ProblemArguments, seed_of
from kernelcast.sampling.scratch import KernelArgument, Reach
from kernelcast.sampling.session import DeviceSession
from kernelcast.sampling.signature import check_arguments, infer_access

Launch = TypeVar("Launch", bound=OpenCLLaunch)


@contextmanager
def prepared_problem(
    session: DeviceSession,
    problem: Problem,
    launch_type: type[Launch],
    *,
    seed: int,
    inferred: Sequence[Access | None] | None = None,
    find_reach: Callable[[Problem], Reach | None] = lambda _: None,
) -> Iterator[Launch]:
    """Build a problem on a device and keep its buffers there for the length of the block.

    Parameters
    ----------
    launch_type : type
        What can be done with it: `OpenCLLaunch` is sampled, its descendants do more.
    inferred : sequence of Access or None, optional
        What source analysis found each argument to be; the problem's own words go first.
    find_reach : callable, optional
        Finds which bytes boxes of the problem's work-groups touch, once the local size is chosen.

    """
    built = session.whole_kernel(problem.kernel)
    compiled, parameters = built.kernel, built.parameters
    check_arguments(problem.kernel.name, parameters, problem.arguments)
    _check_memory(session.description, problem)
    ndrange = choose_local_size(session, compiled, problem.ndrange)
    check_launch(session, compiled, problem.kernel, ndrange)
    found = inferred or [None] * len(parameters)
    accesses = [
        infer_access(parameter, argument.access or known)
        if isinstance(argument, BufferArgument)
        else None
        for parameter, argument, known in zip(parameters, problem.arguments, found, strict=True)
    ]
    with explained_errors(problem.kernel, session.description):
        reach = find_reach(replace(problem, ndrange=ndrange))
        held = ProblemArguments(session, problem, accesses, seed=seed, reach=reach)
    try:
        with launch_type(session, problem.kernel, ndrange, (), (), held=held) as launch:
            yield launch
    finally:
        held.release()


def put_arguments(session: DeviceSession, problem: Problem, *, seed: int) -> list[KernelArgument]:
    """Make a problem's arguments: buffers on the device, scalars, local memory."""
    return [
        put_argument(session, index, argument, seed=seed)
        for index, argument in enumerate(problem.arguments)
    ]


def put_argument(
    session: DeviceSession, index: int, argument: Argument, *, seed: int
) -> KernelArgument:
    """Make an argument; a buffer's content depends on `seed` and its position only."""
    match argument:
        case BufferArgument():
            return _put_buffer(session, argument, seed=seed_of(seed, index))
        case ScalarArgument():
            return make_scalar(argument)
        case LocalArgument():
            return cl.LocalMemory(argument.bytes)


def _put_buffer(session: DeviceSession, argument: BufferArgument, *, seed: int) -> cl.Buffer:
    """Make a buffer; one in the host's memory is filled in place, without a copy beside it."""
    if session.description.kind is not DeviceKind.CPU:
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        return cl.Buffer(session.context, flags, hostbuf=make_array(argument, seed=seed))
    buffer = cl.Buffer(session.context, cl.mem_flags.READ_WRITE, size=argument.bytes)
    try:
        array, _ = cl.enqueue_map_buffer(
            session.queue, buffer, cl.map_flags.WRITE, 0,
            shape_of(argument), argument.element.dtype,
        )  # fmt: skip
        try:
            fill_array(argument, array, seed=seed)
        finally:
            array.base.release(session.queue)
    except BaseException:
        buffer.release()
        raise
    return buffer


def release_arguments(session: DeviceSession, arguments: Sequence[KernelArgument]) -> None:
    """Give the buffers' memory back."""
    session.queue.finish()
    for argument in arguments:
        if isinstance(argument, cl.Buffer):
            argument.release()


def _check_memory(description: DeviceDescription, problem: Problem) -> None:
    """Refuse before a large host array is made in vain."""
    for index, argument in enumerate(problem.arguments):
        if isinstance(argument, BufferArgument) and (
            argument.bytes > description.max_allocation_bytes
        ):
            msg = (
                f"{description.id}: argument {index} is a buffer of {argument.bytes:,} bytes, the "
                f"device's largest is {description.max_allocation_bytes:,}; "
                "predict a smaller problem"
            )
            raise DeviceLimitError(msg)
    if problem.buffer_bytes > description.global_memory_bytes:
        msg = (
            f"{description.id}: the buffers take {problem.buffer_bytes:,} bytes together, the "
            f"device has {description.global_memory_bytes:,}; predict a smaller problem"
        )
        raise DeviceLimitError(msg)
    local_bytes = sum(a.bytes for a in problem.arguments if isinstance(a, LocalArgument))
    if local_bytes > description.local_memory_bytes:
        msg = (
            f"{description.id}: the local-memory arguments take {local_bytes:,} bytes, a compute "
            f"unit has {description.local_memory_bytes:,}"
        )
        raise DeviceLimitError(msg)
