"""What compilers tell of a kernel that they have built: NVIDIA's build log and PTX, AMD's binary.

Numbers have the names of `kernelcast.records.compiler_facts.CompilerFacts`, and two more that only
occupancy asks for.
"""

import re
import secrets
import struct
from typing import Any
from weakref import WeakKeyDictionary

import msgpack

from kernelcast.records.kernel import Kernel
from kernelcast.sampling.building import build_program, read_binary, read_build_log
from kernelcast.sampling.opencl import OtherDriver
from kernelcast.sampling.session import DeviceSession

NVIDIA_COMPILER = "cl_nv_compiler_options"
_AMD_DRIVER = "cl_amd_device_attribute_query"
# Registers do not depend on the local size: one more build per kernel and session is enough.
_logs: WeakKeyDictionary[DeviceSession, dict[str, dict[str, int]]] = WeakKeyDictionary()


def read_compiler_statistics(session: DeviceSession, kernel: Kernel) -> dict[str, int]:
    """Read what the compiler reports of a kernel, if it does; NVIDIA's builds it once more for
    that."""
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
        known = _logs.setdefault(session, {})
        if kernel.digest not in known:
            source = make_unique(kernel.source, secrets.token_hex(8))
            options = (*kernel.build_options, "-cl-nv-verbose")
            program = build_program(session.context, session.device, source, options)
            known[kernel.digest] = parse_build_log(
                read_build_log(program, session.device), kernel.name
            )
        return known[kernel.digest]
    if _AMD_DRIVER in extensions:
        binary = read_binary(session.whole_kernel(kernel).program, session.device)
        return parse_code_object(binary, kernel.name)
    return {}


def make_unique(source: str, token: str) -> str:
    """Add an empty kernel of a new name: NVIDIA's driver gives an empty log of what it takes from
    its cache, and comments, macros and constants may be gone from what that goes by."""
    # at the end, so that lines keep their numbers; after two line ends, as a source may end in a
    # comment or in a backslash
    return f"{source}\n\nkernel void kc_unique_{token}(void) {{}}\n"


# Options: OpenCL extension cl_nv_compiler_options. Lines: those of ptxas --verbose.
_ENTRY = r"Compiling entry function '([^']+)'"
_PROPERTIES = r"Function properties for '?([^'\s]+)'?"
_SPILLS = r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"


def parse_build_log(build_log: str, kernel_name: str) -> dict[str, int]:
    """Find what the log of NVIDIA's compiler says about one kernel; nothing in another's log, or in
    the empty one of a binary from its cache."""
    section = _find_section(build_log, _ENTRY, kernel_name)
    registers = re.search(r"\bUsed (\d+) registers", section)
    if registers is None:
        return {}
    # Functions that the kernel calls have properties of their own in the same section.
    spills = re.search(_SPILLS, _find_section(section, _PROPERTIES, kernel_name))
    stack, stores, loads = map(int, spills.groups()) if spills else (0, 0, 0)
    return {
        "registers_per_work_item": int(registers.group(1)),
        "stack_frame_bytes_per_work_item": stack,
        "spill_store_bytes_per_work_item": stores,
        "spill_load_bytes_per_work_item": loads,
    }


def _find_section(text: str, headline: str, name: str) -> str:
    """Cut out what stands between the headline of that name and the next headline, or nothing."""
    _, *parts = re.split(headline, text)
    return dict(zip(parts[-2::-2], parts[:0:-2], strict=True)).get(name, "")


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
    entry = re.search(rf"\.entry\s+{re.escape(kernel_name)}(?![\w$])[^{{;]*\{{", text)
    if entry is None or not text.lstrip().startswith(".version"):
        return {}
    depth, end = 1, entry.end()
    for brace in re.finditer(r"[{}]", text[entry.end() :]):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            end += brace.start()
            break
    else:
        return {}  # torn
    body = text[entry.end() : end]
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
