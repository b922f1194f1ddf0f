"""Programs, kernels and launches of CUDA devices; `kernelcast.sampling.cuda` says what differs."""

import ctypes
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, Self

import numpy as np

from kernelcast import compiling
from kernelcast.compiling.options import read_options
from kernelcast.records.errors import CompileError, DeviceLimitError
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling.cuda import (
    Buffer,
    CommandQueue,
    Context,
    CudaError,
    CudaMemoryError,
    CudaObject,
    Device,
    Event,
    load_driver,
)
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.signature import Parameter

_LOG_BYTES = 16384
_LOCAL_ALIGNMENT = 16
_MOST_CHOSEN_LOCAL_SIZE = 256
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


def adapt_ptx(ptx: str, kernels: Sequence[compiling.CompiledKernel]) -> str:
    """Have kernels take offsets into dynamic shared memory as arguments of local memory."""
    names = [
        re.escape(f"{kernel.name}_param_{index}")
        for kernel in kernels
        for index, argument in enumerate(kernel.arguments)
        if argument.address_space == "local"
    ]
    if not names:
        return ptx
    loads = re.compile(rf"ld\.param\.\w+\s+(%\w+),\s*\[(?:{'|'.join(names)})\];")
    ptx = loads.sub(lambda load: f"{load[0]} {_ADD_LOCAL_BASE.format(load[1])}", ptx)
    return re.sub(r"^(\.address_size \d+)", rf"\1\n{_LOCAL_BASE}", ptx, count=1, flags=re.MULTILINE)


class Program(CudaObject):
    """A module with the members of a `pyopencl.Program`, made of a source."""

    def __init__(self, context: Context, source: str) -> None:
        self.context, self._source = context, source
        self._told: tuple[int, ...] = ()
        self._options: tuple[str, ...] = ()

    def build(self, options: Sequence[str] = (), devices: Sequence[Device] = ()) -> Self:
        del devices
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
        self._module = self._load()
        return self

    def _load(self) -> Any:  # noqa: ANN401 - the driver's handle
        driver: Any = load_driver()
        log = bytearray(_LOG_BYTES)
        options = driver.CUjit_option
        names = [options.CU_JIT_ERROR_LOG_BUFFER, options.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
        image = self.ptx.encode() + b"\0"
        try:
            return self.context.call("cuModuleLoadDataEx", image, 2, names, [log, _LOG_BYTES])
        except CudaMemoryError:
            raise
        except CudaError as error:
            said = log.split(b"\0")[0].decode(errors="replace").strip()
            msg = f"{self.context.device.name}: the driver refused the program's PTX: {error}"
            raise CompileError(f"{msg}\n{said}" if said else msg) from error

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

    def find_function(self, name: str) -> Any:  # noqa: ANN401 - the driver's handle
        return self.context.call("cuModuleGetFunction", self._module, name.encode())

    @cached_property
    def _launch_array(self) -> int:
        """Address of the module's array; 0 where no kernel asks for anything that is in it."""
        if self.ptx.count(_LAUNCH_ARRAY) < 2:  # declared at most
            return 0
        pointer, _ = self.context.call("cuModuleGetGlobal", self._module, _LAUNCH_ARRAY.encode())
        return int(pointer)

    def tell(self, queue: CommandQueue, numbers: tuple[int, ...]) -> None:
        """Have the work-item functions of launches from now on tell of an index space."""
        if self._launch_array and self._told != numbers:
            words = np.array(numbers, dtype=np.uint32)
            arguments = self._launch_array, words.ctypes.data, words.nbytes, queue.stream
            self.context.call("cuMemcpyHtoDAsync", *arguments)
            self._told = numbers


class Kernel(CudaObject):
    """A function of a module with the members of a `pyopencl.Kernel`."""

    def __init__(self, program: Program, name: str) -> None:
        self.program, self.name = program, name
        compiled = program.kernels[name]
        self._listed = compiled.arguments
        self.required_local_size = compiled.required_local_size
        self._function = program.find_function(name)
        self._values: list[object] = [None] * len(self._listed)
        self._has_values = [False] * len(self._listed)

    @property
    def num_args(self) -> int:
        return len(self._listed)

    def set_arg(self, index: int, value: object) -> None:
        self._values[index], self._has_values[index] = value, True

    def set_args(self, *values: object) -> None:
        for index, value in enumerate(values):
            self.set_arg(index, value)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(
            Parameter(
                index=index, name=one.name, type_name=one.type_name,
                address_space=one.address_space, is_const=one.is_const,
                value_bytes=(one.size_bytes or 0) if one.address_space == "private" else 0,
            )
            for index, one in enumerate(self._listed)
        )  # fmt: skip

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
        held, local_bytes = self._pack_arguments()
        addresses = (ctypes.c_void_p * max(1, len(held)))(*map(ctypes.addressof, held))
        event = Event(queue)
        event.record(0)
        queue.context.call(
            "cuLaunchKernel", self._function, *grid, *ones, *local, *ones, local_bytes,
            queue.stream, ctypes.addressof(addresses), 0,
        )  # fmt: skip
        event.record(1)
        return event  # the driver has copied the arguments

    def _pack_arguments(self) -> tuple[list[Any], int]:
        held: list[Any] = []
        local_bytes = 0
        for index, (value, known) in enumerate(zip(self._values, self._listed, strict=True)):
            if not self._has_values[index]:
                raise CudaError("cuLaunchKernel", 1, f"argument {index} of {self.name} is not set")
            if isinstance(value, cl.LocalMemory):
                content = local_bytes.to_bytes(8, "little")
                local_bytes += -(-value.size // _LOCAL_ALIGNMENT) * _LOCAL_ALIGNMENT
            elif value is None or isinstance(value, Buffer):
                content = (0 if value is None else value.int_ptr).to_bytes(8, "little")
            else:
                content = np.asarray(value).tobytes()
            if len(content) != known.size_bytes:
                what = f"argument {index} of {self.name} has {known.size_bytes} bytes"
                raise CudaError("cuLaunchKernel", 1, f"{what}, {len(content)} are given")
            held.append(ctypes.create_string_buffer(content, max(1, len(content))))
        return held, local_bytes


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
    chosen, left = [], _MOST_CHOSEN_LOCAL_SIZE
    for size in global_size:
        chosen.append(max(one for one in range(1, left + 1) if size % one == 0))
        left //= chosen[-1]
    return tuple(chosen)
