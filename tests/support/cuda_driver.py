"""Stands in for the CUDA driver: runs a module's kernels on an OpenCL processor by their source.

``KERNELCAST_CUDA_DRIVER=support.cuda_driver`` has kernelcast load it in place of
``cuda.bindings.driver``, in child processes too; `use_stand_in` makes such an environment,
`stand_in` sets it for a block. It has those of the driver's functions that kernelcast calls, with
the arguments and answers of ``cuda-bindings``, and is as strict where a mistake would go unnoticed
on a processor: contexts are current per thread, addresses lie in allocations, arguments have the
sizes that the PTX says, local memory lies in the launch's shared memory, an error of a running
kernel stays.

PTX is not interpreted. What `kernelcast.compiling` returns is marked with a comment that names its
source; the source is built for the processor, behind a prelude that tells work-items of a window
of the whole launch. Times are the processor's.

=======================================  ==================================================
``KERNELCAST_CUDA_STAND_IN_UNITS``       compute units (2)
``KERNELCAST_CUDA_STAND_IN_ALONE``       1: kernelcast sees no OpenCL device
``KERNELCAST_CUDA_STAND_IN_FAILS``       what fails: ``cuMemAlloc=2,cuLaunchKernel/name=700``
=======================================  ==================================================
"""

# ruff: noqa: N802, ANN401, PLR0913 - names, types and arguments are the driver's
import bisect
import ctypes
import functools
import itertools
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from cuda.bindings.driver import CUdevice_attribute, CUfunction_attribute, CUjit_option, CUresult

from kernelcast import compiling
from kernelcast.records.arguments import Parameter
from kernelcast.records.errors import CompileError
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling import cuda
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.prelude import add_prelude

__all__ = ["CUdevice_attribute", "CUfunction_attribute", "CUjit_option", "CUresult"]

_MARK = re.compile(r"^// stand-in source (\d+)$", re.MULTILINE)
_sources: list[tuple[str, tuple[str, ...], tuple[compiling.CompiledKernel, ...]]] = []
_compile = compiling.compile_kernel
_get_platforms = cl.get_platforms
_STICKY = range(700, 720)
_ATTRIBUTES = {
    "MAX_SHARED_MEMORY_PER_BLOCK": 48 << 10, "MAX_THREADS_PER_BLOCK": 1024,
    "MAX_BLOCK_DIM_X": 1024, "MAX_BLOCK_DIM_Y": 1024, "MAX_BLOCK_DIM_Z": 64,
    "TOTAL_CONSTANT_MEMORY": 64 << 10, "WARP_SIZE": 32,
    "COMPUTE_CAPABILITY_MAJOR": 9, "COMPUTE_CAPABILITY_MINOR": 0,
    "PCI_DOMAIN_ID": 0, "PCI_BUS_ID": 65, "PCI_DEVICE_ID": 0,
}  # fmt: skip
_MEMORY_BYTES = 4 << 30
_REGISTERS = 32
"""Of every kernel: nothing assembles its PTX."""


def use_stand_in(**settings: object) -> dict[str, str]:
    """Make the environment variables: ``use_stand_in(units=4, alone=1)``."""
    named = {
        f"KERNELCAST_CUDA_STAND_IN_{key.upper()}": str(value) for key, value in settings.items()
    }
    return {"KERNELCAST_CUDA_DRIVER": __name__, **named}


def _setting(name: str, default: str = "") -> str:
    return os.environ.get(f"KERNELCAST_CUDA_STAND_IN_{name}", default)


def _compile_marked(
    source: str, options: Sequence[str] = (), target: compiling.Target | None = None, **named: Any
) -> compiling.Compiled:
    """Compile, and mark PTX with its source."""
    compiled = _compile(source, options, target, **named)
    if compiled.target.format is not compiling.CodeFormat.PTX:
        return compiled
    _sources.append((source, tuple(options), compiled.kernels))
    return replace(compiled, text=f"// stand-in source {len(_sources) - 1}\n{compiled.text}")


def _hide_platforms() -> list[cl.Platform]:
    if _setting("ALONE") == "1":
        raise cl.Error("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")
    return _get_platforms()


def _install() -> None:
    compiling.compile_kernel = _compile_marked
    cl.get_platforms = _hide_platforms


@contextmanager
def stand_in(**settings: object) -> Iterator[None]:
    """Have this process and its children see the stand-in's device for the length of a block."""
    import pytest

    with pytest.MonkeyPatch.context() as patch:
        for name, value in use_stand_in(**settings).items():
            patch.setenv(name, value)
        patch.setattr(compiling, "compile_kernel", _compile)
        patch.setattr(cl, "get_platforms", _get_platforms)
        cuda.load_driver.cache_clear()
        yield
        _open().failure = 0
    cuda.load_driver.cache_clear()


@dataclass
class _Processor:
    """The OpenCL processor and what the driver keeps on it."""

    context: Any
    queue: Any
    device: Any
    buffers: dict[int, Any] = field(default_factory=dict)
    next_address: int = 0x7F00_0000_0000
    clock_ns: int = 0
    """Of the device: goes on while kernels run."""
    failure: int = 0
    """Of a kernel, which all later calls answer with."""

    def locate(self, address: int, size: int) -> tuple[Any, int]:
        """Find the buffer that an address lies in, and where in it; all bytes must lie there."""
        starts = sorted(self.buffers)
        number = bisect.bisect_right(starts, address) - 1
        if number >= 0:
            start = starts[number]
            if address + size <= start + self.buffers[start].size:
                return self.buffers[start], address - start
        raise _RefusedError(CUresult.CUDA_ERROR_INVALID_VALUE)


class _RefusedError(Exception):
    """Is raised with the status where a function answers with an error."""


@functools.cache
def _open() -> _Processor:
    devices = [one for platform in _get_platforms() for one in platform.get_devices()]
    processors = [one for one in devices if one.type & cl.device_type.CPU]
    device = min(processors, key=lambda one: "Portable" not in one.platform.name)
    context = cl.Context([device])
    profiling = cl.command_queue_properties.PROFILING_ENABLE
    return _Processor(context, cl.CommandQueue(context, device, properties=profiling), device)


_current = threading.local()


FUNCTIONS: dict[str, int] = {}
"""How many values each function answers with, beside its status."""
_EXPECTED = {"flags": 0, "stream": "stream", "extra": 0, "device": "device 0"}


def _function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of the driver: it answers with a status and what the function returns."""
    told = function.__annotations__["return"]
    count = FUNCTIONS[function.__name__] = (
        0 if told is None else 2 if told == tuple[int, int] else 1
    )
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    needs_context = not function.__name__.startswith(("cuInit", "cuD", "cuCtx"))

    @functools.wraps(function)
    def call(*arguments: Any) -> tuple[Any, ...]:
        for name, value in zip(names, arguments, strict=True):
            assert value == _EXPECTED.get(name, value), f"{function.__name__}: {name} {value}"
        try:
            if needs_context and not getattr(_current, "context", None):
                raise _RefusedError(CUresult.CUDA_ERROR_INVALID_CONTEXT)
            if _open().failure:
                raise _RefusedError(_open().failure)
            for what, status in re.findall(r"([\w/]+)=(\d+)", _setting("FAILS")):
                wanted, _, kernel = what.partition("/")
                if wanted == function.__name__ and (not kernel or arguments[0].name == kernel):
                    # What a running kernel does wrong stays.
                    _open().failure = int(status) if int(status) in _STICKY else 0
                    raise _RefusedError(int(status))
            answer = function(*arguments)
        except _RefusedError as refused:
            return (CUresult(refused.args[0]), *[None] * count)
        return (CUresult.CUDA_SUCCESS, *((), (answer,), answer)[count])

    return call


@_function
def cuInit(flags: int) -> None:
    _install()


@_function
def cuDriverGetVersion() -> int:
    return 13000


@_function
def cuDeviceGetCount() -> int:
    return 1


@_function
def cuDeviceGet(ordinal: int) -> str:
    return f"device {ordinal}"


@_function
def cuDeviceGetName(length: int, device: str) -> bytes:
    return b"NVIDIA Stand-in".ljust(length, b"\0")


@_function
def cuDeviceGetAttribute(attribute: Any, device: str) -> int:
    name = CUdevice_attribute(attribute).name.removeprefix("CU_DEVICE_ATTRIBUTE_")
    return int(_setting("UNITS", "2")) if name == "MULTIPROCESSOR_COUNT" else _ATTRIBUTES[name]


@_function
def cuDeviceTotalMem(device: str) -> int:
    return _MEMORY_BYTES


@_function
def cuDevicePrimaryCtxRetain(device: str) -> str:
    return f"context of {device}"


@_function
def cuCtxSetCurrent(context: str) -> None:
    _current.context = context


@_function
def cuStreamCreate(flags: int) -> str:
    return "stream"


@_function
def cuStreamSynchronize(stream: str) -> None:
    """Return: every launch has ended before."""


@_function
def cuMemAlloc(size: int) -> int:
    processor = _open()
    if size <= 0:
        raise _RefusedError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if sum(one.size for one in processor.buffers.values()) + size > _MEMORY_BYTES:
        raise _RefusedError(CUresult.CUDA_ERROR_OUT_OF_MEMORY)
    address = processor.next_address
    processor.buffers[address] = cl.Buffer(processor.context, cl.mem_flags.READ_WRITE, size=size)
    processor.next_address += -(-size // 512) * 512 + (1 << 20)
    return address


@_function
def cuMemFree(address: int) -> None:
    """Give memory back."""
    processor = _open()
    if address not in processor.buffers:
        raise _RefusedError(CUresult.CUDA_ERROR_INVALID_VALUE)
    processor.buffers.pop(address).release()


def _at(address: int, size: int) -> Any:
    """Give host memory as an array."""
    content = (ctypes.c_uint8 * size).from_address(address)
    return np.frombuffer(memoryview(content).cast("B"), dtype=np.uint8)


@_function
def cuMemcpyHtoD(target: int, source: int, size: int) -> None:
    _copy_in(target, source, size)


@_function
def cuMemcpyHtoDAsync(target: int, source: int, size: int, stream: str) -> None:
    """Copy from the host to a buffer, or to the array of a module."""
    if target in _launch_arrays:
        _launch_arrays[target].told = _at(source, size).view(np.uint32).copy()
        return
    _copy_in(target, source, size)


def _copy_in(target: int, source: int, size: int) -> None:
    buffer, offset = _open().locate(target, size)
    cl.enqueue_copy(_open().queue, buffer, _at(source, size), dst_offset=offset)


@_function
def cuMemcpyDtoHAsync(target: int, source: int, size: int, stream: str) -> None:
    buffer, offset = _open().locate(source, size)
    cl.enqueue_copy(_open().queue, _at(target, size), buffer, src_offset=offset)


@_function
def cuMemcpyDtoDAsync(target: int, source: int, size: int, stream: str) -> None:
    (into, to), (out_of, start) = _open().locate(target, size), _open().locate(source, size)
    cl.enqueue_copy(
        _open().queue, into, out_of, src_offset=start, dst_offset=to, byte_count=size
    )  # fmt: skip
    _open().queue.finish()


@_function
def cuMemsetD8Async(target: int, value: int, size: int, stream: str) -> None:
    buffer, offset = _open().locate(target, size)
    cl.enqueue_fill_buffer(_open().queue, buffer, np.full(1, value, np.uint8), offset, size)
    _open().queue.finish()


@_function
def cuEventCreate(flags: int) -> SimpleNamespace:
    return SimpleNamespace(at_ns=-1)


@_function
def cuEventRecord(event: SimpleNamespace, stream: str) -> None:
    event.at_ns = _open().clock_ns


@_function
def cuEventSynchronize(event: SimpleNamespace) -> None:
    assert event.at_ns >= 0


@_function
def cuEventElapsedTime(begin: SimpleNamespace, end: SimpleNamespace) -> float:
    if min(begin.at_ns, end.at_ns) < 0:
        raise _RefusedError(CUresult.CUDA_ERROR_INVALID_HANDLE)
    return float(end.at_ns - begin.at_ns) / 1e6


@dataclass
class _Module:
    ptx: str
    source: str
    options: tuple[str, ...]
    parameters: dict[str, Sequence[Parameter]]
    told: Any = None
    """What the host has written into the array of the launch."""
    built: dict[str, Any] = field(default_factory=dict)


@dataclass
class _Kernel:
    module: _Module
    name: str


_launch_arrays: dict[int, _Module] = {}
_array_addresses = itertools.count(0x1000, 0x100)


@_function
def cuModuleLoadDataEx(image: bytes, count: int, options: list[Any], values: list[Any]) -> _Module:
    """Load PTX that is marked with its source; refuse any other with a log."""
    assert count == len(options) == len(values) == 2
    assert options[0] == CUjit_option.CU_JIT_ERROR_LOG_BUFFER
    assert image.endswith(b"\0")
    ptx = image[:-1].decode()
    mark = _MARK.search(ptx)
    try:
        if mark is None:
            msg = "ptxas application ptx input, line 1; fatal   : Missing .version directive"
            raise ValueError(msg)
        source, source_options, kernels = _sources[int(mark[1])]
        module = _Module(ptx, source, source_options, {one.name: one.parameters for one in kernels})
        _build(module, source)
    except (ValueError, cl.Error, CompileError) as error:
        said = str(error).encode()[: len(values[0]) - 1]
        values[0][: len(said)] = said
        raise _RefusedError(CUresult.CUDA_ERROR_INVALID_PTX) from error
    return module


def _build(module: _Module, source: str) -> Any:
    """Build a source for the processor, once."""
    if source not in module.built:
        processor = _open()
        program = cl.Program(processor.context, source)
        module.built[source] = program.build(options=list(module.options))
    return module.built[source]


@_function
def cuModuleGetFunction(module: _Module, name: bytes) -> _Kernel:
    if name.decode() not in module.parameters:
        raise _RefusedError(CUresult.CUDA_ERROR_NOT_FOUND)
    return _Kernel(module, name.decode())


@_function
def cuModuleGetGlobal(module: _Module, name: bytes) -> tuple[int, int]:
    """Answer with address and size of the array that tells of the launch."""
    if name != b"kernelcast_launch" or "kernelcast_launch" not in module.ptx:
        raise _RefusedError(CUresult.CUDA_ERROR_NOT_FOUND)
    address = next(_array_addresses)
    _launch_arrays[address] = module
    return address, 52


@_function
def cuFuncGetAttribute(attribute: Any, kernel: _Kernel) -> int:
    """Answer with what the machine code takes."""
    name = CUfunction_attribute(attribute).name.removeprefix("CU_FUNC_ATTRIBUTE_")
    if name == "SHARED_SIZE_BYTES":
        return _count_shared(kernel)
    known = {"NUM_REGS": _REGISTERS, "LOCAL_SIZE_BYTES": 0, "MAX_THREADS_PER_BLOCK": 1024,
             "PTX_VERSION": 90, "BINARY_VERSION": 90}  # fmt: skip
    return known[name]


def _count_shared(kernel: _Kernel) -> int:
    """Ask the processor for the local memory that a kernel declares."""
    info = cl.kernel_work_group_info.LOCAL_MEM_SIZE
    compiled = cl.Kernel(_build(kernel.module, kernel.module.source), kernel.name)
    shared: Any = compiled.get_work_group_info(info, _open().device)
    return int(shared)


@_function
def cuOccupancyMaxActiveBlocksPerMultiprocessor(kernel: _Kernel, size: int, shared: int) -> int:
    """Answer by the rules for compute capability 9.0 as far as they matter here."""
    warps = -(-size // 32)
    taken = _count_shared(kernel) + shared + 1024
    return min(32, 64 // warps, 65536 // (_REGISTERS * 32 * warps), (228 << 10) // taken)


@_function
def cuLaunchKernel(
    kernel: _Kernel, grid_x: int, grid_y: int, grid_z: int, block_x: int, block_y: int,
    block_z: int, shared: int, stream: str, parameters: int, extra: int,
) -> None:  # fmt: skip
    """Run a grid of work-groups on the processor, and wait."""
    grid, block = (grid_x, grid_y, grid_z), (block_x, block_y, block_z)
    if max(grid[1:]) > 65535 or min(grid) < 1 or np.prod(block) > 1024 or shared > 48 << 10:
        raise _RefusedError(CUresult.CUDA_ERROR_INVALID_VALUE)
    module, told = kernel.module, kernel.module.told
    dimensions, source = 3, module.source
    offset: tuple[int, ...] = (0, 0, 0)
    if told is not None:
        first, counts, begin, size = told[:12].astype(int).reshape(4, 3)
        dimensions = int(told[12])
        assert (first + grid <= counts).all(), "a window outside its launch"
        offset = tuple(int(one) for one in begin + first * block)
        if first.any() or (counts != grid).any():
            ndrange = NDRange(
                global_size=tuple(map(int, size[:dimensions])), local_size=block[:dimensions],
                global_offset=tuple(map(int, begin[:dimensions])),
            )  # fmt: skip
            source = add_prelude(source, ndrange, source_name="stand-in")
    compiled = cl.Kernel(_build(module, source), kernel.name)
    _set_arguments(compiled, module.parameters[kernel.name], parameters, shared)
    items = tuple(n * m for n, m in zip(grid, block, strict=True))[:dimensions]
    event = cl.enqueue_nd_range_kernel(
        _open().queue, compiled, items, block[:dimensions], offset[:dimensions]
    )
    event.wait()
    _open().clock_ns += int(event.profile.end - event.profile.start)


def _set_arguments(
    compiled: Any, listed: Sequence[Parameter], parameters: int, shared: int
) -> None:
    addresses = (ctypes.c_void_p * len(listed)).from_address(parameters) if listed else ()
    contents = [
        ctypes.string_at(address, argument.value_bytes or 8)
        for address, argument in zip(addresses, listed, strict=True)
    ]
    numbers = [int.from_bytes(content[:8], "little") for content in contents]
    starts = sorted(
        number
        for number, argument in zip(numbers, listed, strict=True)
        if argument.address_space == "local"
    )
    for index, (argument, content, number) in enumerate(
        zip(listed, contents, numbers, strict=True)
    ):
        if argument.address_space == "local":
            end = min((one for one in starts if one > number), default=shared)
            assert 0 <= number < end <= shared, "local memory outside the launch's"
            compiled.set_arg(index, cl.LocalMemory(end - number))
        elif argument.address_space == "private":
            compiled.set_arg(index, content)
        elif number == 0:
            compiled.set_arg(index, None)
        else:
            buffer, start = _open().locate(number, 1)
            part = buffer.get_sub_region(start, buffer.size - start) if start else buffer
            compiled.set_arg(index, part)
