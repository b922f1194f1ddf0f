"""Launches made of the caller's own pyopencl objects."""

from collections.abc import Sequence

from kernelcast.records.arguments import Access
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling.launch import check_launch
from kernelcast.sampling.local_size import choose_local_size
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.problems import Launch
from kernelcast.sampling.scratch import KernelArgument, Reach
from kernelcast.sampling.session import DeviceSession
from kernelcast.sampling.signature import check_count, infer_access
from kernelcast.sampling.user_arguments import check_argument


def choose_user_ndrange(
    session: DeviceSession,
    kernel: Kernel,
    ndrange: NDRange,
    arguments: Sequence[KernelArgument],
) -> NDRange:
    """Check a launch of the caller's buffers and scalars, and choose its local size.

    Raises
    ------
    SignatureError
        If the arguments do not fit the kernel, or are of a kind that cannot be kept unchanged.
    DeviceError
        If the launch does not fit the device.
    """
    built = session.whole_kernel(kernel)
    check_count(kernel.name, built.parameters, len(arguments))
    for parameter, argument in zip(built.parameters, arguments, strict=True):
        check_argument(parameter, argument, session)
    chosen = choose_local_size(session, built.kernel, ndrange)
    check_launch(session, built.kernel, kernel, chosen)
    return chosen


def prepare_user_launch(  # noqa: PLR0913 - a launch has that many parts
    session: DeviceSession,
    kernel: Kernel,
    ndrange: NDRange,
    arguments: Sequence[KernelArgument],
    launch_type: type[Launch],
    *,
    inferred: Sequence[Access | None],
    reach: Reach | None = None,
) -> Launch:
    """Prepare a launch that `choose_user_ndrange` has found right.

    Parameters
    ----------
    session, kernel, ndrange, arguments
        As given to `choose_user_ndrange`, local size chosen.
    launch_type : type
        What can be done with it, see `kernelcast.sampling.problems.prepared_problem`.
    inferred : sequence of Access or None
        What source analysis found each argument to be.
    reach : Reach, optional
        Which bytes of the buffers boxes of work-groups touch.

    Returns
    -------
    OpenCLLaunch
        A context manager; releases the scratch copies at its end.

    Raises
    ------
    DeviceError
        If the copies do not fit the device.
    """
    parameters = session.whole_kernel(kernel).parameters
    accesses = [
        infer_access(parameter, known) if isinstance(argument, cl.Buffer) else None
        for parameter, argument, known in zip(parameters, arguments, inferred, strict=True)
    ]
    return launch_type(session, kernel, ndrange, arguments, accesses, reach=reach)
