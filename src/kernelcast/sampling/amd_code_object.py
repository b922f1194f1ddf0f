"""What AMD's compiler says of a kernel in the program's binary: bytes only, no device.

A code object is an ELF file whose note of vendor ``AMDGPU`` and type 32 holds a MessagePack map
(LLVM, "User Guide for AMDGPU Backend", Code Object V3 and later Metadata).
"""

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgpack

_NOTE = re.compile(rb"\x07\x00\x00\x00(?P<bytes>....)\x20\x00\x00\x00AMDGPU\x00\x00", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeObjectFacts:
    """What the code object of one kernel holds."""

    vector_registers: int
    """VGPRs per work-item, on CDNA 2 and later with the accumulation VGPRs."""
    scalar_registers: int
    """SGPRs per wavefront."""
    wavefront_size: int
    """Work-items per wavefront, as the compiler chose."""
    local_bytes: int
    """Static local memory per work-group."""
    private_bytes: int
    """Private memory per work-item that is not in registers: arrays, spills, the call stack."""


def parse_code_object(binary: bytes, kernel_name: str) -> CodeObjectFacts | None:
    """Find what a program's binary says about one kernel.

    Returns
    -------
    CodeObjectFacts or None
        None if it is no code object, holds no such kernel, or is damaged.
    """
    for note in _NOTE.finditer(binary):
        [size] = struct.unpack("<I", note["bytes"])
        held = binary[note.end() : note.end() + size]
        try:
            metadata = msgpack.unpackb(held)
            for kernel in metadata["amdhsa.kernels"]:
                if kernel[".name"] == kernel_name:
                    return _read_kernel(kernel)
        except (ValueError, TypeError, KeyError, msgpack.UnpackException):
            continue  # other bytes that look like a note
    return None


def _read_kernel(kernel: Mapping[str, Any]) -> CodeObjectFacts:
    return CodeObjectFacts(
        vector_registers=int(kernel[".vgpr_count"]),
        scalar_registers=int(kernel[".sgpr_count"]),
        wavefront_size=int(kernel[".wavefront_size"]),
        local_bytes=int(kernel[".group_segment_fixed_size"]),
        private_bytes=int(kernel[".private_segment_fixed_size"]),
    )
