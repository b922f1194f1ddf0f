"""CUDA devices behind the objects of pyopencl that sampling speaks to.

Containers on NVIDIA's machines have the CUDA driver and usually no OpenCL. The classes here have
those members of pyopencl's classes that sampling uses, and `kernelcast.sampling.opencl` makes them
where a context is a CUDA device's: launches, probes, microbenchmarks and counters are the same
code on both. What differs:

- OpenCL C is compiled to PTX by `kernelcast.compiling`; the driver makes machine code of it.
- A window is a grid of its own size. Which work-groups it stands for, and how many the whole
  launch has, lie in arrays of the module that the work-item functions read: one module runs all
  windows of all index spaces, and no prelude is needed (`Kernel.launch`).
- Local memory that arguments size is dynamic shared memory. Where that begins only the assembler
  knows, so the kernel's code adds it to the offsets that the host gives.
- Buffers given as ``constant`` lie in global memory: PTX reads constants from 64 KiB of their own
  that no allocation is in.
- Occupancy and registers are the driver's word.

The driver's functions come from the package ``cuda-bindings`` (extra ``cuda``), or from the module
that ``KERNELCAST_CUDA_DRIVER`` names: tests have one there that runs kernels without a GPU.
"""

import ctypes
import importlib
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, cached_property
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import CompileError, DeviceLimitError, KernelRunError
from kernelcast.records.kernel import Dialect
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling.opencl import OtherDriver, cl

if TYPE_CHECKING:
    from kernelcast.compiling import CompiledKernel

Array: TypeAlias = npt.NDArray[Any]
DRIVER_VARIABLE: Final = "KERNELCAST_CUDA_DRIVER"
_DIALECT: Final = Dialect(
    extensions=frozenset({
        "cl_khr_byte_addressable_store", "cl_khr_fp16", "cl_khr_fp64",
        "cl_khr_global_int32_base_atomics", "cl_khr_global_int32_extended_atomics",
        "cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics",
        "cl_khr_local_int32_base_atomics", "cl_khr_local_int32_extended_atomics",
        "cl_nv_device_attribute_query",
    }),
    has_images=False,
)  # fmt: skip
_OUT_OF_MEMORY, _OUT_OF_RESOURCES = 2, 701


class CudaError(cl.Error, KernelRunError):
    """Is raised when a function of the CUDA driver fails; most errors of running kernels last as
    long as the process, so that whoever runs them ends it (`kernelcast.workers.process`)."""

    def __init__(self, function: str, status: int, name: str) -> None:
        super().__init__(f"{function} failed: {name} ({status})")
        self.status = status

    def __str__(self) -> str:
        return str(self.args[0])

    @property
    def code(self) -> int:  # type: ignore[override]  # pyopencl's stubs have a plain attribute
        """OpenCL's number where sampling asks for one."""
        refused = cl.status_code.INVALID_WORK_GROUP_SIZE
        return int(refused) if self.status == _OUT_OF_RESOURCES else self.status


class CudaMemoryError(DeviceLimitError, cl.MemoryError, CudaError):
    """Is raised when a CUDA device has not enough memory."""


@cache
def load_driver() -> ModuleType | None:
    """Load and start the driver; None where there is none, or no package that speaks to it."""
    try:
        driver = importlib.import_module(os.environ.get(DRIVER_VARIABLE) or "cuda.bindings.driver")
        (status,) = driver.cuInit(0)
    except (ImportError, RuntimeError, OSError):  # no package, no library
        return None
    return None if status else driver


def _call(function: str, *arguments: object) -> Any:  # noqa: ANN401 - each function has its own
    driver = load_driver()
    status, *values = getattr(driver, function)(*arguments)
    if status:
        error = CudaMemoryError if int(status) == _OUT_OF_MEMORY else CudaError
        raise error(function, int(status), getattr(status, "name", "unknown"))
    return values[0] if len(values) == 1 else tuple(values)


class Device(OtherDriver):
    type = cl.device_type.GPU
    vendor = "NVIDIA Corporation"
    dialect = _DIALECT
    extensions = " ".join(sorted(_DIALECT.extensions))
    non_uniform_work_group_support = False
    double_fp_config = 1
    global_mem_cacheline_size = 128
    max_num_sub_groups = 0

    def __init__(self, number: int) -> None:
        self.handle = _call("cuDeviceGet", number)
        name = _call("cuDeviceGetName", 256, self.handle)
        self.name = name.split(b"\0")[0].decode(errors="replace")
        self.global_mem_size = int(_call("cuDeviceTotalMem", self.handle))
        self.max_mem_alloc_size = self.global_mem_size
        self.max_compute_units = self.ask("MULTIPROCESSOR_COUNT")
        self.local_mem_size = self.ask("MAX_SHARED_MEMORY_PER_BLOCK")
        self.max_work_group_size = self.ask("MAX_THREADS_PER_BLOCK")
        self.max_work_item_sizes = [self.ask(f"MAX_BLOCK_DIM_{axis}") for axis in "XYZ"]
        self.max_constant_buffer_size = self.ask("TOTAL_CONSTANT_MEMORY")
        self.warp_size_nv = self.ask("WARP_SIZE")
        self.compute_capability_major_nv = self.ask("COMPUTE_CAPABILITY_MAJOR")
        self.compute_capability_minor_nv = self.ask("COMPUTE_CAPABILITY_MINOR")
        self.pci_domain_id_nv = self.ask("PCI_DOMAIN_ID")
        self.pci_bus_id_nv = self.ask("PCI_BUS_ID")
        self.pci_slot_id_nv = self.ask("PCI_DEVICE_ID")
        self.processor = f"sm_{self.compute_capability_major_nv}{self.compute_capability_minor_nv}"
        number_of_cuda = int(_call("cuDriverGetVersion"))
        self.driver_version = f"CUDA {number_of_cuda // 1000}.{number_of_cuda % 1000 // 10}"
        self.version = f"{self.processor}, OpenCL C compiled by clang"
        # Another name than NVIDIA's OpenCL has: the compiler is another.
        self.platform = SimpleNamespace(
            name="CUDA", vendor=self.vendor, version=self.driver_version
        )  # fmt: skip

    def ask(self, attribute: str) -> int:
        driver: Any = load_driver()
        number = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{attribute}")
        return int(_call("cuDeviceGetAttribute", number, self.handle))


def list_devices() -> list[Device]:
    if load_driver() is None:
        return []
    return [Device(number) for number in range(int(_call("cuDeviceGetCount")))]


class Context(OtherDriver):
    """A device's primary context, which other users of the driver in this process share."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self.devices = list(devices)
        self.device = self.devices[0]
        self._handle = _call("cuDevicePrimaryCtxRetain", self.device.handle)
        self.free_timers: list[tuple[Any, Any]] = []

    def call(self, function: str, *arguments: object) -> Any:  # noqa: ANN401 - as of `_call`
        _call("cuCtxSetCurrent", self._handle)
        return _call(function, *arguments)


class CommandQueue(OtherDriver):
    def __init__(self, context: Context, device: Device, *, properties: object = None) -> None:
        del properties
        self.context, self.device = context, device
        # Not one of those that run beside copies without a stream.
        self.stream = context.call("cuStreamCreate", 0)

    def finish(self) -> None:
        self.context.call("cuStreamSynchronize", self.stream)


class Buffer(OtherDriver):
    def __init__(
        self, context: Context, flags: int, size: int = 0, hostbuf: Array | None = None
    ) -> None:
        if flags & cl.mem_flags.USE_HOST_PTR:
            raise CudaError("cuMemHostRegister", 801, "the host's memory is not used in place")
        self.context = context
        self.size = hostbuf.nbytes if hostbuf is not None else size
        self.int_ptr = int(context.call("cuMemAlloc", self.size))
        if hostbuf is not None:
            host = np.ascontiguousarray(hostbuf)
            context.call("cuMemcpyHtoD", self.int_ptr, host.ctypes.data, host.nbytes)

    def release(self) -> None:
        pointer, self.int_ptr = self.int_ptr, 0
        if pointer:
            with suppress(CudaError):  # memory of a context that an error has ended is gone
                self.context.call("cuMemFree", pointer)

    def __del__(self) -> None:
        if getattr(self, "int_ptr", 0):
            self.release()


class Event(OtherDriver):
    """A launch's two events with the members of a `pyopencl.Event`."""

    def __init__(self, queue: CommandQueue) -> None:
        self._queue = queue
        kept = queue.context.free_timers
        self._timers = kept.pop() if kept else tuple(
            queue.context.call("cuEventCreate", 0) for _ in range(2)
        )  # fmt: skip

    def record(self, index: int) -> None:
        self._queue.context.call("cuEventRecord", self._timers[index], self._queue.stream)

    @property
    def profile(self) -> SimpleNamespace:
        self._queue.context.call("cuEventSynchronize", self._timers[1])
        elapsed_ms = self._queue.context.call("cuEventElapsedTime", *self._timers)
        return SimpleNamespace(start=0, end=round(float(elapsed_ms) * 1e6))

    def __del__(self) -> None:
        if hasattr(self, "_timers"):
            self._queue.context.free_timers.append(self._timers)


def enqueue_map_buffer(
    queue: CommandQueue, buffer: Buffer, flags: int, offset: int, shape: tuple[int, ...],
    dtype: npt.DTypeLike,
) -> tuple[Array, None]:  # fmt: skip
    """Copy a part of a buffer to an array, whose base copies it back where it may be written."""
    array = np.empty(shape, dtype=dtype)
    enqueue_copy(queue, array, buffer, src_offset=offset)

    def release(queue: CommandQueue) -> None:
        if flags & (cl.map_flags.WRITE | cl.map_flags.WRITE_INVALIDATE_REGION):
            enqueue_copy(queue, buffer, array, dst_offset=offset)

    held = SimpleNamespace(release=release, __array_interface__=array.__array_interface__)
    return np.asarray(held), None


def enqueue_copy(
    queue: CommandQueue, dest: Buffer | Array, src: Buffer | Array, *, src_offset: int = 0,
    dst_offset: int = 0, byte_count: int | None = None, is_blocking: bool = True,
) -> None:  # fmt: skip
    if isinstance(dest, Buffer) and isinstance(src, Buffer):
        most = min(src.size - src_offset, dest.size - dst_offset)
        size = most if byte_count is None else byte_count
        addresses = dest.int_ptr + dst_offset, src.int_ptr + src_offset
        queue.context.call("cuMemcpyDtoDAsync", *addresses, size, queue.stream)
        return
    if isinstance(dest, Buffer):
        host = np.ascontiguousarray(src)
        _check_range(dest, dst_offset, host.nbytes)
        addresses = dest.int_ptr + dst_offset, host.ctypes.data
        queue.context.call("cuMemcpyHtoDAsync", *addresses, host.nbytes, queue.stream)
    else:
        assert isinstance(src, Buffer)
        _check_range(src, src_offset, dest.nbytes)
        addresses = dest.ctypes.data, src.int_ptr + src_offset
        queue.context.call("cuMemcpyDtoHAsync", *addresses, dest.nbytes, queue.stream)
    if is_blocking or isinstance(dest, Buffer):  # the array may be gone when the copy is made
        queue.finish()


def _check_range(buffer: Buffer, first_byte: int, size: int) -> None:
    if first_byte + size > buffer.size:
        raise CudaError("copy", 1, f"{first_byte + size} bytes of a buffer of {buffer.size}")


def enqueue_fill_buffer(
    queue: CommandQueue, buffer: Buffer, pattern: Array, offset: int, size: int
) -> None:
    """Fill a part of a buffer with the one byte of a pattern."""
    address = buffer.int_ptr + offset
    queue.context.call("cuMemsetD8Async", address, int(pattern[0]), size, queue.stream)


_LOG_BYTES = 16384
_UNSET: Final = object()
_LOCAL_ALIGNMENT = 16
_MOST_GROUPS_BEYOND_AXIS_0: Final = 65_535
_LAUNCH_ARRAY: Final = "kernelcast_launch"
"""Of a module, for its work-item functions (`compiling/builtins/nvptx.cl`): per dimension the
window's first work-group, the work-groups of the launch, its offset and its size; its dimensions.
"""
# NVIDIA's compiler of OpenCL C knows the keyword of inline PTX that clang's has not.
_OPTIONS: Final = ("-Dasm=__asm__",)
_LOCAL_BASE: Final = f".extern .shared .align {_LOCAL_ALIGNMENT} .b8 kc_local_arguments[];"
_ADD_LOCAL_BASE: Final = (
    "{{ .reg .b64 %kc_base; mov.b64 %kc_base, kc_local_arguments; add.s64 {0}, {0}, %kc_base; }}"
)


def adapt_ptx(ptx: str, kernels: Sequence["CompiledKernel"]) -> str:
    """Have kernels take offsets into dynamic shared memory as arguments of local memory."""
    names = [
        re.escape(f"{kernel.name}_param_{index}")
        for kernel in kernels
        for index, one in enumerate(kernel.parameters)
        if one.address_space == "local"
    ]
    if not names:
        return ptx
    loads = re.compile(rf"ld\.param\.\w+\s+(%\w+),\s*\[(?:{'|'.join(names)})\];")
    ptx = loads.sub(lambda load: f"{load[0]} {_ADD_LOCAL_BASE.format(load[1])}", ptx)
    return re.sub(r"^(\.address_size \d+)", rf"\1\n{_LOCAL_BASE}", ptx, count=1, flags=re.MULTILINE)


class Program(OtherDriver):
    def __init__(self, context: Context, source: str) -> None:
        self.context, self._source = context, source
        self._told: tuple[int, ...] = ()
        self._options: tuple[str, ...] = ()

    def build(self, options: Sequence[str] = (), devices: Sequence[Device] = ()) -> Self:
        del devices
        # Whoever only lists devices needs no compiler.
        from kernelcast import compiling
        from kernelcast.compiling.targets import read_options

        device = self.context.device
        self._options = tuple(options)
        compiled = compiling.compile_kernel(
            self._source, (*self._options, *_OPTIONS), compiling.Target.parse(device.processor),
            dialect=device.dialect,
            # All that the kernel's owner names, as a device's own compiler reads them.
            include_folders=read_options(self._options).folders,
        )  # fmt: skip
        compiled.require_builtins()
        self.kernels = {kernel.name: kernel for kernel in compiled.kernels}
        self.ptx = adapt_ptx(compiled.text, compiled.kernels)
        driver: Any = load_driver()
        log = bytearray(_LOG_BYTES)
        jit = driver.CUjit_option
        names = [jit.CU_JIT_ERROR_LOG_BUFFER, jit.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
        image = self.ptx.encode() + b"\0"
        try:
            self.module = self.context.call(
                "cuModuleLoadDataEx", image, 2, names, [log, _LOG_BYTES]
            )
        except CudaMemoryError:
            raise
        except CudaError as error:
            said = log.split(b"\0")[0].decode(errors="replace").strip()
            msg = f"{device.name}: the driver refused the program's PTX: {error}"
            raise CompileError(f"{msg}\n{said}" if said else msg) from error
        return self

    def get_info(self, what: int) -> object:
        match what:
            case cl.program_info.KERNEL_NAMES:
                return ";".join(self.kernels)
            case cl.program_info.BINARIES:
                return [self.ptx.encode()]
            case cl.program_info.DEVICES:
                return self.context.devices
            case _:
                return 1  # of its references

    def get_build_info(self, device: Device, what: int) -> str:
        del device
        return " ".join(self._options) if what == cl.program_build_info.OPTIONS else ""

    @cached_property
    def _launch_array(self) -> int:
        """Address of the module's array; 0 where no kernel asks for anything that is in it."""
        if self.ptx.count(_LAUNCH_ARRAY) < 2:  # declared at most
            return 0
        pointer, _ = self.context.call("cuModuleGetGlobal", self.module, _LAUNCH_ARRAY.encode())
        return int(pointer)

    def tell(self, queue: CommandQueue, numbers: tuple[int, ...]) -> None:
        """Have the work-item functions of launches from now on tell of an index space."""
        if self._launch_array and self._told != numbers:
            words = np.array(numbers, dtype=np.uint32)
            arguments = self._launch_array, words.ctypes.data, words.nbytes, queue.stream
            self.context.call("cuMemcpyHtoDAsync", *arguments)
            self._told = numbers


class Kernel(OtherDriver):
    def __init__(self, program: Program, name: str) -> None:
        self.program, self.name = program, name
        compiled = program.kernels[name]
        self.parameters = compiled.parameters
        self.required_local_size = compiled.required_local_size
        function = "cuModuleGetFunction"
        self._function = program.context.call(function, program.module, name.encode())
        self._values: list[object] = [_UNSET] * len(self.parameters)

    @property
    def num_args(self) -> int:
        return len(self.parameters)

    def set_arg(self, index: int, value: object) -> None:
        self._values[index] = value

    def set_args(self, *values: object) -> None:
        self._values[: len(values)] = values

    @property
    def local_argument_bytes(self) -> int:
        sizes = [one.size for one in self._values if isinstance(one, cl.LocalMemory)]
        return sum(-(-size // _LOCAL_ALIGNMENT) * _LOCAL_ALIGNMENT for size in sizes)

    def ask(self, attribute: str) -> int:
        driver: Any = load_driver()
        number = getattr(driver.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{attribute}")
        return int(self.program.context.call("cuFuncGetAttribute", number, self._function))

    def get_work_group_info(self, what: int, device: Device) -> object:
        info = cl.kernel_work_group_info
        match what:
            case info.LOCAL_MEM_SIZE:
                return self.ask("SHARED_SIZE_BYTES") + self.local_argument_bytes
            case info.PRIVATE_MEM_SIZE:
                return self.ask("LOCAL_SIZE_BYTES")
            case info.WORK_GROUP_SIZE:
                return self.ask("MAX_THREADS_PER_BLOCK")
            case info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE:
                return device.warp_size_nv
            case info.COMPILE_WORK_GROUP_SIZE:
                return [*self.required_local_size]
        raise CudaError("cuFuncGetAttribute", 1, f"no answer to {what}")

    def count_active_work_groups(self, work_group_size: int) -> int:
        return int(
            self.program.context.call(
                "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                self._function, work_group_size, self.local_argument_bytes,
            )
        )  # fmt: skip

    def launch(
        self, queue: CommandQueue, ndrange: NDRange, offset: Sequence[int], size: Sequence[int]
    ) -> Event:
        """Launch a part of an index space, whose work-items are told of the whole."""
        local = ndrange.known_local_size
        first = [
            (begin - whole) // each
            for begin, whole, each in zip(offset, ndrange.global_offset, local, strict=True)
        ]
        grid = [extent // each for extent, each in zip(size, local, strict=True)]
        if any(count > _MOST_GROUPS_BEYOND_AXIS_0 for count in grid[1:]):
            raise DeviceLimitError(
                f"{queue.device.name}: {grid} work-groups; beyond axis 0, CUDA devices run at most "
                f"{_MOST_GROUPS_BEYOND_AXIS_0:,} along an axis: put the longest axis first"
            )
        ones = (1,) * (3 - ndrange.dimensions)
        zeros = (0,) * len(ones)
        self.program.tell(queue, (
            *first, *zeros, *ndrange.group_counts, *ones, *ndrange.global_offset, *zeros,
            *ndrange.global_size, *ones, ndrange.dimensions,
        ))  # fmt: skip
        held: list[Any] = []
        local_bytes = 0
        for index, (value, known) in enumerate(zip(self._values, self.parameters, strict=True)):
            if value is _UNSET:
                raise CudaError("cuLaunchKernel", 1, f"argument {index} of {self.name} is not set")
            if isinstance(value, cl.LocalMemory):
                content = local_bytes.to_bytes(8, "little")
                local_bytes += -(-value.size // _LOCAL_ALIGNMENT) * _LOCAL_ALIGNMENT
            elif value is None or isinstance(value, Buffer):
                content = (0 if value is None else value.int_ptr).to_bytes(8, "little")
            else:
                content = np.asarray(value).tobytes()
            expected = known.value_bytes or 8
            if len(content) != expected:
                what = f"argument {index} of {self.name} has {expected} bytes"
                raise CudaError("cuLaunchKernel", 1, f"{what}, {len(content)} are given")
            held.append(ctypes.create_string_buffer(content, max(1, len(content))))
        addresses = (ctypes.c_void_p * max(1, len(held)))(*map(ctypes.addressof, held))
        event = Event(queue)
        event.record(0)
        queue.context.call(
            "cuLaunchKernel", self._function, *grid, *ones, *local, *ones, local_bytes,
            queue.stream, ctypes.addressof(addresses), 0,
        )  # fmt: skip
        event.record(1)
        return event  # the driver has copied the arguments


def enqueue_nd_range_kernel(
    queue: CommandQueue, kernel: Kernel, global_size: Sequence[int],
    local_size: Sequence[int] | None, global_offset: Sequence[int] | None = None,
) -> Event:  # fmt: skip
    if local_size is None:
        local_size = kernel.required_local_size[: len(global_size)]
        if not any(local_size):
            local_size = choose_local_size(global_size)
    ndrange = NDRange(
        global_size=tuple(map(int, global_size)),
        local_size=tuple(map(int, local_size)),
        global_offset=tuple(map(int, global_offset or (0,) * len(global_size))),
    )
    return kernel.launch(queue, ndrange, ndrange.global_offset, ndrange.global_size)


def choose_local_size(global_size: Sequence[int]) -> tuple[int, ...]:
    """Choose a local size that divides a global one, full warps along the first dimension."""
    chosen, left = [], 256
    for size in global_size:
        chosen.append(max(one for one in range(1, left + 1) if size % one == 0))
        left //= chosen[-1]
    return tuple(chosen)
