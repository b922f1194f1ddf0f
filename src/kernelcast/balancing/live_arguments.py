"""Launches and buffers of pyopencl become launches over arrays, and take the results."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kernelcast.balancing.host_arguments import HostArguments, read_host_arguments
from kernelcast.launches.live import Launch, describe_live
from kernelcast.launches.source_check import list_parameters
from kernelcast.records.arguments import ElementType
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling.user_arguments import copy_to_host, list_arguments


def copy_launch(
    kernel: Kernel | Launch, ndrange: NDRange | Sequence[int], args: Sequence[Any]
) -> tuple[Kernel, NDRange | Sequence[int], HostArguments, Callable[[Iterable[int]], None]]:
    """Copy what buffers among the arguments hold; the last copies results of some of them back."""
    if isinstance(kernel, Launch):
        problem = describe_live(kernel).problem
        kernel.queue.finish()
        args = list_arguments(kernel.args)
        kernel, ndrange = problem.kernel, problem.ndrange
    types = (one.type_name.rstrip("* ") for one in list_parameters(kernel) or ())
    named = {number: ElementType.from_opencl(one) for number, one in enumerate(types)}
    elements = {number: element for number, element in named.items() if element}
    values, write_back = copy_to_host(args, elements)
    return kernel, ndrange, read_host_arguments(values, elements), write_back
