"""What drivers and compilers tell of a built kernel: registers, memory, sub-groups, spills.

NVIDIA's build log and PTX and AMD's binary are read. Numbers have the names of `CompilerFacts`, and
two more that only occupancy asks for.
"""

import math
import re
import secrets
import struct
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

import msgpack

from kernelcast.records.device import CompilerFacts, Trait, TraitSource
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling import read_source
from kernelcast.sampling.building import build_program, get_kernel, read_binary, read_build_log
from kernelcast.sampling.launch_limits import choose_local_size
from kernelcast.sampling.opencl import OtherDriver, cl
from kernelcast.sampling.session import DeviceSession

NVIDIA_COMPILER = "cl_nv_compiler_options"
_AMD_DRIVER = "cl_amd_device_attribute_query"


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
        # What an index space adds is its local size: others are told without a question.
        known = session.compiler_facts
        key = kernel.digest, local_size
        if key not in known:
            # of its own: the session's may hold local arguments, which would count as declared
            compiled = get_kernel(built.program, kernel)
            ptx = {}
            # Others are not asked: PoCL compiles the kernel once more for each work-group size to
            # make a binary (63 ms for two lines).
            if NVIDIA_COMPILER in session.description.extensions:
                ptx = parse_ptx(read_binary(built.program, session.device), kernel.name)
            known[key] = CompilerFacts(
                **_take_facts(ptx, TraitSource.COMPUTED)
                | _take_facts(read_compiler_statistics(session, kernel), TraitSource.REPORTED)
                | _ask_driver(session, compiled)
                | _ask_sub_groups(session, compiled, local_size)
            )
        return known[key]


_NAMES = frozenset(field.name for field in fields(CompilerFacts))


def _take_facts(found: Mapping[str, int], source: TraitSource) -> dict[str, Trait[int]]:
    return {
        name: Trait(value=value, source=source) for name, value in found.items() if name in _NAMES
    }


def _ask_driver(session: DeviceSession, compiled: cl.Kernel) -> dict[str, Trait[int]]:
    """Ask what the driver tells of every kernel, as far as it tells the truth of yardsticks."""
    info = cl.kernel_work_group_info
    items = min(64, session.description.max_work_item_sizes[0],
                session.description.max_work_group_size)  # fmt: skip
    plain, array = (
        session.whole_kernel(
            Kernel(
                name=name,
                source=read_source("yardsticks.cl"),
                build_options=(f"-DKC_ITEMS={items}",),
            )
        ).kernel
        for name in ("kc_plain", "kc_array")
    )

    def ask(kernel: cl.Kernel, what: int) -> int | None:
        try:
            # pyopencl types every answer as object
            return cast("int", kernel.get_work_group_info(what, session.device))
        except cl.Error:
            return None

    found: dict[str, int] = {}
    private = ask(compiled, info.PRIVATE_MEM_SIZE)
    if private is not None and ask(plain, info.PRIVATE_MEM_SIZE) != ask(
        array, info.PRIVATE_MEM_SIZE
    ):
        found["private_bytes_per_work_item"] = private
    largest = ask(compiled, info.WORK_GROUP_SIZE)
    if largest and (ask(plain, info.WORK_GROUP_SIZE) or 0) >= items:
        found["max_work_group_size"] = largest
    if multiple := ask(compiled, info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE):
        found["preferred_work_group_multiple"] = multiple
    facts = _take_facts(found, TraitSource.REPORTED)
    local = ask(compiled, info.LOCAL_MEM_SIZE)
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
