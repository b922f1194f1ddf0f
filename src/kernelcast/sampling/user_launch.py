"""Launches made of the caller's own pyopencl objects."""

from collections.abc import Sequence

from kernelcast.records.arguments import Access
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.problems import Launch
from kernelcast.sampling.scratch import KernelArgument, Reach
from kernelcast.sampling.session import DeviceSession
from kernelcast.sampling.signature import infer_access


def prepare_user_launch(
    session: DeviceSession,
    kernel: Kernel,
    ndrange: NDRange,
    arguments: Sequence[KernelArgument],
    launch_type: type[Launch],
    *,
    inferred: Sequence[Access | None],
    reach: Reach | None = None,
) -> Launch:
    """Prepare a launch that was found right.

    Parameters
    ----------
    session, kernel, ndrange, arguments
        The launch, local size chosen.
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
        infer_access(parameter, known) if isinstance(argument, cl.Buffer | cl.Image) else None
        for parameter, argument, known in zip(parameters, arguments, inferred, strict=True)
    ]
    return launch_type(session, kernel, ndrange, arguments, accesses, reach=reach)
