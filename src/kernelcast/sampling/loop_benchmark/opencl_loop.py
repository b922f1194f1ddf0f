"""The same loop as an OpenCL kernel of one work-item, where no C compiler is installed."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import InputError, NoDeviceError
from kernelcast.sampling.building import build_program
from kernelcast.sampling.discovery import find_devices
from kernelcast.sampling.loop_benchmark.listing import Declared, Listing, take_apart
from kernelcast.sampling.opencl import cl

_TYPES = {"double": "f8", "float": "f4", "int": "i4", "long": "i8", "unsigned": "u4", "char": "i1"}


def measure_as_kernel(
    source: str,
    constants: Mapping[str, int],
    counts: Mapping[str, int],
    *,
    least_s: float,
    samples: int,
) -> tuple[tuple[float, ...], str]:
    """Time a loop on one core of the first OpenCL CPU device.

    Parameters
    ----------
    counts : mapping of str to int
        Elements of each array.
    least_s : float
        Shortest time of a sample.

    Returns
    -------
    (tuple of float, str)
        Seconds of one pass, and what compiled it.
    """
    found = [one for one in find_devices() if one[0].kind is DeviceKind.CPU]
    if not found:
        msg = "no C compiler and no OpenCL CPU device: install gcc or clang, or kernelcast[cpu]"
        raise NoDeviceError(msg)
    description, device = found[0]
    listing = take_apart(source)
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    run = _prepare(queue, listing, constants, counts)
    return _sample(run, least_s, samples), description.id


def write_kernel(listing: Listing) -> str:
    """Write the kernel; multi-dimensional arrays keep their indices.

    Examples
    --------
    >>> text = write_kernel(take_apart("float a[N]; for (int i = 0; i < N; ++i) a[i] = 1.f;"))
    >>> "global float *kc_a" in text
    True
    """
    parameters = [f"global {one.type_name} *kc_{one.name}" for one in listing.arrays]
    arrays = [
        f"    global {one.type_name} (*{one.name}){inner} = "
        f"(global {one.type_name} (*){inner})kc_{one.name};"
        if (inner := _inner(one))
        else f"    global {one.type_name} *{one.name} = kc_{one.name};"
        for one in listing.arrays
    ]
    scalars = [
        f"    {one.type_name} {one.name} = {one.value or 'kc_value'};" for one in listing.scalars
    ]
    keep = [f"    kc_sink[0] = {one.name};" for one in listing.scalars]
    head = ", ".join([*parameters, "global float *kc_sink", "float kc_value"])
    lines = [
        f"kernel void kc_loop({head})",
        "{", *arrays, *scalars, f"    {listing.loop}", *keep, "}",
    ]  # fmt: skip
    return "\n".join(lines)


def _inner(array: Declared) -> str:
    """Give all dimensions but the first."""
    _, _, rest = array.dimensions.partition("]")
    return rest.strip()


def _prepare(
    queue: cl.CommandQueue,
    listing: Listing,
    constants: Mapping[str, int],
    counts: Mapping[str, int],
) -> Callable[[], None]:
    options = tuple(f"-D{name}={value}" for name, value in constants.items())
    program = build_program(queue.context, queue.device, write_kernel(listing), options)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffers = [
        cl.Buffer(queue.context, flags, hostbuf=_fill(one, counts)) for one in listing.arrays
    ]
    sink = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 64)
    kernel = program.kc_loop

    def run() -> None:
        # A kernel does not keep its arguments alive; this function does.
        kernel(queue, (1,), (1,), *buffers, sink, np.float32(0.5))
        queue.finish()

    return run


def _fill(array: Declared, counts: Mapping[str, int]) -> npt.NDArray[Any]:
    kind = _TYPES.get(array.type_name.split()[0])
    if kind is None:
        msg = f"array {array.name} of {array.type_name}: expected one of {', '.join(_TYPES)}"
        raise InputError(msg)
    return np.ones(counts[array.name], dtype=kind)


def _sample(run: Callable[[], None], least_s: float, samples: int) -> tuple[float, ...]:
    run()
    repeats = 1
    while (passed := _time(run, repeats)) < least_s:
        repeats = max(2 * repeats, min(100 * repeats, int(1.2 * repeats * least_s / passed)))
    return tuple(_time(run, repeats) / repeats for _ in range(samples))


def _time(run: Callable[[], None], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return time.perf_counter() - start
