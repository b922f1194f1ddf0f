"""What drivers and compilers tell of a built kernel: registers, memory, sub-groups, spills; which
index spaces a device and a kernel allow, and which local size they choose.

NVIDIA's build log and PTX and AMD's binary are read. Numbers have the names of `CompilerFacts`, and
two more that only occupancy asks for.
"""

import math
import re
import secrets
import struct
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, cast

import msgpack
import numpy as np

from kernelcast.records.arguments import Argument, BufferArgument, LocalArgument
from kernelcast.records.device import CompilerFacts, DeviceDescription, Trait, TraitSource
from kernelcast.records.errors import DeviceLimitError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling import read_source
from kernelcast.sampling.building import build_program, get_kernel, read_binary, read_build_log
from kernelcast.sampling.opencl import OtherDriver, ask_kernel, cl
from kernelcast.sampling.session import DeviceSession

NVIDIA_COMPILER = "cl_nv_compiler_options"
_AMD_DRIVER = "cl_amd_device_attribute_query"
# Build options that choose OpenCL C 2.0 or later.
_MODERN_LANGUAGE = re.compile(r"-cl-std=CL[23]\.\d")


def read_compiler_statistics(session: DeviceSession, kernel: Kernel) -> dict[str, int]:
    """Read what the compiler reports of a kernel; NVIDIA's builds it once more."""
    extensions = session.description.extensions
    if isinstance(session.device, OtherDriver):
        # The driver of CUDA tells it of the code that runs, but not what of its stack is spilled.
        asked: Any = session.whole_kernel(kernel).kernel
        return {
            "registers_per_work_item": asked.ask("NUM_REGS"),
            "stack_frame_bytes_per_work_item": asked.ask("LOCAL_SIZE_BYTES"),
            "spill_store_bytes_per_work_item": 0,
            "spill_load_bytes_per_work_item": 0,
        }
    if NVIDIA_COMPILER in extensions:  # other compilers refuse the option
        # Registers do not depend on the local size: one more build per kernel is enough.
        known = session.build_logs
        if kernel.digest not in known:
            from kernelcast.compiling.facts import read_ptxas_log  # only NVIDIA's devices need it

            # Of what its cache has NVIDIA's driver gives no log: an empty kernel has a new name. It
            # stands at the end, so that lines keep their numbers, after two line ends, as a source
            # may end in a comment or in a backslash.
            unique = f"kernel void kc_unique_{secrets.token_hex(8)}(void) {{}}\n"
            program = build_program(
                session.context, session.device, f"{kernel.source}\n\n{unique}",
                (*kernel.build_options, "-cl-nv-verbose"),
            )  # fmt: skip
            log = read_build_log(program, session.device)
            found = read_ptxas_log(log).get(kernel.name)
            known[kernel.digest] = {} if found is None else {
                "registers_per_work_item": found.registers,
                "stack_frame_bytes_per_work_item": found.stack_bytes,
                "spill_store_bytes_per_work_item": found.spill_store_bytes,
                "spill_load_bytes_per_work_item": found.spill_load_bytes,
            }  # fmt: skip
        return known[kernel.digest]
    if _AMD_DRIVER in extensions:
        binary = read_binary(session.whole_kernel(kernel).program, session.device)
        return parse_code_object(binary, kernel.name)
    return {}


_NOTE = re.compile(rb"\x07\x00\x00\x00(?P<bytes>....)\x20\x00\x00\x00AMDGPU\x00\x00", re.DOTALL)


def parse_code_object(binary: bytes, kernel_name: str) -> dict[str, int]:
    """Read a kernel's numbers from the MessagePack note of AMD's code object (LLVM, "User Guide for
    AMDGPU Backend", Code Object V3 and later Metadata); VGPRs are with accumulation VGPRs."""
    for note in _NOTE.finditer(binary):
        [size] = struct.unpack("<I", note["bytes"])
        try:
            metadata = msgpack.unpackb(binary[note.end() : note.end() + size])
            for kernel in metadata["amdhsa.kernels"]:
                if kernel[".name"] == kernel_name:
                    return {
                        "registers_per_work_item": int(kernel[".vgpr_count"]),
                        "private_bytes_per_work_item": int(kernel[".private_segment_fixed_size"]),
                        "scalar_registers_per_sub_group": int(kernel[".sgpr_count"]),
                        "wavefront_size": int(kernel[".wavefront_size"]),
                    }
        except (ValueError, TypeError, KeyError, msgpack.UnpackException):
            continue  # other bytes that look like a note
    return {}


# Grammar: "Parallel Thread Execution ISA", sections "Syntax" and "State Spaces, Types, and
# Variables". Directives of debug information end with their line, not with a semicolon.
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LINE_DIRECTIVE = re.compile(r"^[ \t]*\.(?:loc|file)\b[^\n]*", re.MULTILINE)
_LABELS_AND_BRACES = re.compile(r"\A(?:[\s{}]+|[A-Za-z_$%][\w$]*\s*:(?!:))*")
_REGISTERS = re.compile(r"\.reg\s+(?:\.v[24]\s+)?\.\w+\s+([^;]+);")
_LOCAL = re.compile(
    r"\.local\s+(?:\.align\s+\d+\s+)?(?:\.v([24])\s+)?\.[a-z]+(\d+)\s+[\w$]+((?:\[\d+\])*)"
)


def parse_ptx(binary: bytes, kernel_name: str) -> dict[str, int]:
    """Read a kernel of a binary that is PTX: virtual registers of any type, the instructions of its
    own body, and private memory, to which `ptxas` may add spills."""
    text = _LINE_DIRECTIVE.sub("", _COMMENT.sub("", binary.decode("ascii", errors="replace")))
    name = re.escape(kernel_name)
    # What is nested in a body is indented, so that its own brace alone begins a line.
    entry = re.search(
        rf"\.entry\s+{name}(?![\w$])[^{{;]*\{{(.*?)^\}}", text, re.DOTALL | re.MULTILINE
    )
    if entry is None or not text.lstrip().startswith(".version"):
        return {}
    body = entry[1]
    starts = (_LABELS_AND_BRACES.sub("", statement) for statement in body.split(";"))
    # ``%f<5>`` declares five, ``%a, %b`` two.
    declared = [name for names in _REGISTERS.findall(body) for name in names.split(",")]
    ranges = (re.search(r"<(\d+)>", name) for name in declared)
    private_bytes = 0
    for lanes, bits, extents in _LOCAL.findall(body):
        size = int(bits) // 8 * int(lanes or 1)
        for extent in re.findall(r"\d+", extents):
            size *= int(extent)
        private_bytes += size
    return {
        "private_bytes_per_work_item": private_bytes,
        "ptx_virtual_register_count": sum(int(one.group(1)) if one else 1 for one in ranges),
        "ptx_instruction_count": sum(bool(one) and not one.startswith(".") for one in starts),
    }


# NVIDIA's driver has no sub-groups, AMD's none in devices that say OpenCL 2.0.
_WARP_SIZES = {
    "cl_nv_device_attribute_query": "warp_size_nv",
    "cl_amd_device_attribute_query": "wavefront_width_amd",
}


def read_compiler_facts(session: DeviceSession, kernel: Kernel, ndrange: NDRange) -> CompilerFacts:
    """Read what is known of a kernel, compiled as it is, at a local size; takes the lock."""
    with session.lock:
        built = session.whole_kernel(kernel)
        local_size = choose_local_size(session, built.kernel, ndrange).known_local_size
        # of its own: the session's may hold local arguments, which would count as declared
        compiled = get_kernel(built.program, kernel)
        ptx = {}
        # Others are not asked: PoCL compiles the kernel once more for each work-group size to make
        # a binary (63 ms for two lines).
        if NVIDIA_COMPILER in session.description.extensions:
            ptx = parse_ptx(read_binary(built.program, session.device), kernel.name)
        return CompilerFacts(
            **_take_facts(ptx, TraitSource.COMPUTED)
            | _take_facts(read_compiler_statistics(session, kernel), TraitSource.REPORTED)
            | _ask_driver(session, compiled)
            | _ask_sub_groups(session, compiled, local_size)
        )


_NAMES = frozenset(field.name for field in fields(CompilerFacts))


def _take_facts(found: Mapping[str, int], source: TraitSource) -> dict[str, Trait[int]]:
    return {
        name: Trait(value=value, source=source) for name, value in found.items() if name in _NAMES
    }


def _ask_driver(session: DeviceSession, compiled: cl.Kernel) -> dict[str, Trait[int]]:
    """Ask what the driver tells of every kernel, as far as it tells the truth of yardsticks."""
    items = min(64, session.description.max_work_item_sizes[0],
                session.description.max_work_group_size)  # fmt: skip
    source, options = read_source("yardsticks.cl"), (f"-DKC_ITEMS={items}",)
    plain, array = (
        session.whole_kernel(Kernel(name=name, source=source, build_options=options)).kernel
        for name in ("kc_plain", "kc_array")
    )

    def ask(kernel: cl.Kernel, what: str) -> int | None:
        try:
            return int(ask_kernel(kernel, what, session.device))
        except cl.Error:
            return None

    found: dict[str, int] = {}
    private, least, more = (ask(one, "PRIVATE_MEM_SIZE") for one in (compiled, plain, array))
    if private is not None and least != more:
        found["private_bytes_per_work_item"] = private
    largest = ask(compiled, "WORK_GROUP_SIZE")
    if largest and (ask(plain, "WORK_GROUP_SIZE") or 0) >= items:
        found["max_work_group_size"] = largest
    if multiple := ask(compiled, "PREFERRED_WORK_GROUP_SIZE_MULTIPLE"):
        found["preferred_work_group_multiple"] = multiple
    facts = _take_facts(found, TraitSource.REPORTED)
    local = ask(compiled, "LOCAL_MEM_SIZE")
    if local is not None:
        true = session.read_local_memory(compiled)
        source = TraitSource.REPORTED if true == local else TraitSource.COMPUTED
        facts["local_bytes_per_work_group"] = Trait(value=true, source=source)
    return facts


def _ask_sub_groups(
    session: DeviceSession, compiled: cl.Kernel, local_size: tuple[int, ...]
) -> dict[str, Trait[int]]:
    """Ask for the sub-groups of a work-group of that size; nothing where there are none."""
    info = cl.kernel_sub_group_info
    device = session.device
    size = count = 0
    try:
        # clGetKernelSubGroupInfo came with 2.1, older loaders have no entry for it and may crash;
        # optional again since OpenCL 3.0.
        versions = (device.platform.version, device.version)
        is_new = all(re.match(r"OpenCL (2\.[1-9]|[3-9]|\d\d)", text) for text in versions)
        if is_new and device.max_num_sub_groups > 0:
            size, count = (
                cast("int", compiled.get_sub_group_info(device, what, local_size))
                for what in (info.MAX_SUB_GROUP_SIZE_FOR_NDRANGE, info.SUB_GROUP_COUNT_FOR_NDRANGE)
            )
    except cl.Error:  # the driver promises the query and refuses it
        pass
    source = TraitSource.REPORTED
    for extension, name in _WARP_SIZES.items():
        if not (size and count) and extension in session.description.extensions:
            try:
                size = int(getattr(device, name))
            except (AttributeError, cl.Error):  # listed, and refused
                continue
            count = -(-math.prod(local_size) // size) if size > 0 else 0
            source = TraitSource.COMPUTED
    if not (size and count):
        return {}
    return {
        "sub_group_size": Trait(value=size, source=TraitSource.REPORTED),
        "sub_groups_per_work_group": Trait(value=count, source=source),
    }


def check_memory(
    device: DeviceDescription, arguments: Sequence[Argument], declared_bytes: int = 0
) -> None:
    buffers = {
        index: one.bytes for index, one in enumerate(arguments) if isinstance(one, BufferArgument)
    }
    for index, size_bytes in buffers.items():
        if size_bytes > device.max_allocation_bytes:
            raise DeviceLimitError(
                f"{device.id}: argument {index} is a buffer of {size_bytes:,} bytes, the device's "
                f"largest is {device.max_allocation_bytes:,}; give a smaller problem"
            )
    if sum(buffers.values()) > device.global_memory_bytes:
        raise DeviceLimitError(
            f"{device.id}: the buffers take {sum(buffers.values()):,} bytes together, the device "
            f"has {device.global_memory_bytes:,}; give a smaller problem"
        )
    local_bytes = sum(one.bytes for one in arguments if isinstance(one, LocalArgument))
    if local_bytes + declared_bytes > device.local_memory_bytes:
        raise DeviceLimitError(
            f"{device.id}: local memory would take {local_bytes + declared_bytes:,} bytes, a "
            f"compute unit has {device.local_memory_bytes:,}"
        )


def check_launch(
    session: DeviceSession, compiled: cl.Kernel, kernel: Kernel, ndrange: NDRange
) -> None:
    device, local = session.description, ndrange.known_local_size
    required, local_bytes = session.ask_limits(compiled, kernel)
    if any(required) and required[: len(local)] != local:
        raise DeviceLimitError(
            f"{device.id}: local size {local} given, kernel {kernel.name} requires "
            f"{required[: len(local)]} (reqd_work_group_size); give that one or none"
        )
    check_memory(device, (), local_bytes)
    check_sizes(device, kernel, ndrange)


def check_sizes(device: DeviceDescription, kernel: Kernel, ndrange: NDRange) -> None:
    local = ndrange.known_local_size
    for axis, (size, most) in enumerate(zip(local, device.max_work_item_sizes, strict=False)):
        if size > most:
            msg = f"{device.id}: axis {axis}: local size {size} exceeds the device's {most}"
            raise DeviceLimitError(msg)
    # The kernel's own limit (WORK_GROUP_SIZE) is left to the driver: rusticl's says 32 and then
    # runs 1,024.
    if ndrange.work_group_size > device.max_work_group_size:
        raise DeviceLimitError(
            f"{device.id}: local size {local} makes work-groups of {ndrange.work_group_size} "
            f"work-items; the device allows at most {device.max_work_group_size}"
        )
    is_allowed = any(_MODERN_LANGUAGE.fullmatch(option) for option in kernel.build_options)
    if ndrange.is_uniform or (device.has_non_uniform_work_groups and is_allowed):
        return
    why = (
        "the device has no non-uniform work-groups"
        if not device.has_non_uniform_work_groups
        else "OpenCL C before 2.0 has no non-uniform work-groups (build with -cl-std=CL2.0)"
    )
    for axis, (size, each) in enumerate(zip(ndrange.global_size, local, strict=True)):
        if size % each:
            raise DeviceLimitError(
                f"{device.id}: axis {axis}: local size {each} does not divide global size {size}, "
                f"and {why}; pad the global size to {-(-size // each) * each} and guard the kernel"
            )


def choose_local_size(session: DeviceSession, compiled: cl.Kernel, ndrange: NDRange) -> NDRange:
    """Fix the local size: as given, as the kernel requires, else as the driver chooses."""
    if ndrange.local_size is not None:
        return ndrange
    required = tuple(ask_kernel(compiled, "COMPILE_WORK_GROUP_SIZE", session.device))
    if any(required):
        return replace(ndrange, local_size=required[: ndrange.dimensions])
    most = session.description.max_work_group_size
    local_size = session.chosen_local_sizes.get(ndrange.global_size)
    if local_size is None:
        kernel = cl.Kernel(session.program(read_source("local_size.cl"), ()), "kc_local_size")
        chosen = np.zeros(3, dtype=np.uint32)
        buffer = cl.Buffer(session.context, cl.mem_flags.READ_WRITE, size=chosen.nbytes)
        kernel.set_args(buffer)
        cl.enqueue_nd_range_kernel(session.queue, kernel, ndrange.global_size, None)
        cl.enqueue_copy(session.queue, chosen, buffer)
        session.queue.finish()
        local_size = tuple(int(size) for size in chosen[: ndrange.dimensions])
        session.chosen_local_sizes[ndrange.global_size] = local_size
    if any(size < 1 for size in local_size) or math.prod(local_size) > most:
        raise DeviceLimitError(
            f"{session.description.id}: the driver chose local size {local_size} where at most "
            f"{most} work-items are allowed; give a local_size"
        )
    return replace(ndrange, local_size=local_size)
