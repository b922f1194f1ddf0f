"""What NVIDIA's compiler says about a kernel when it builds with ``-cl-nv-verbose``."""

import re
from dataclasses import dataclass

# Options: OpenCL extension cl_nv_compiler_options. Lines: those of ptxas --verbose.
_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for '?([^'\s]+)'?")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"\bUsed (\d+) registers")
_BARRIERS = re.compile(r"\bused (\d+) barriers")
# Compute capability 1.x splits the amount: "2088+16 bytes smem".
_SHARED = re.compile(r"(\d+)(?:\+(\d+))? bytes smem")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledResources:
    """What the compiler reports about one kernel."""

    registers_per_work_item: int
    """32-bit registers."""
    local_memory_bytes: int
    """Static local memory per work-group, in bytes; local arguments come on top."""
    stack_frame_bytes: int
    """Per work-item, as is what is spilled."""
    spill_store_bytes: int
    spill_load_bytes: int
    uses_barriers: bool | None
    """None where this compiler does not say."""


def parse_build_log(build_log: str, kernel_name: str) -> CompiledResources | None:
    """Find what a build log says about one kernel.

    Returns
    -------
    CompiledResources or None
        None if the log does not speak of the kernel: another vendor's log, or an empty one
        because the driver took the binary from its cache.

    Examples
    --------
    >>> log = '''ptxas info    : Compiling entry function 'triad' for 'sm_80'
    ... ptxas info    : Used 12 registers, 384 bytes cmem[0]'''
    >>> parse_build_log(log, "triad").registers_per_work_item
    12
    """
    section = _find_section(build_log, _ENTRY, kernel_name)
    registers = _REGISTERS.search(section)
    if registers is None:
        return None
    used_line = section[registers.start() :].partition("\n")[0]
    shared = _SHARED.search(used_line)
    barriers = _BARRIERS.search(used_line)
    # Functions that the kernel calls have properties of their own in the same section.
    spills = _SPILLS.search(_find_section(section, _PROPERTIES, kernel_name))
    stack, stores, loads = map(int, spills.groups()) if spills else (0, 0, 0)
    return CompiledResources(
        registers_per_work_item=int(registers.group(1)),
        local_memory_bytes=sum(int(part) for part in shared.groups("0")) if shared else 0,
        stack_frame_bytes=stack,
        spill_store_bytes=stores,
        spill_load_bytes=loads,
        uses_barriers=int(barriers.group(1)) > 0 if barriers else None,
    )


def _find_section(text: str, headline: re.Pattern[str], name: str) -> str:
    """Cut out what stands between the headline of that name and the next headline, or nothing."""
    headlines = list(headline.finditer(text))
    for number, found in enumerate(headlines):
        if found.group(1) == name:
            following = headlines[number + 1 :]
            return text[found.end() : following[0].start() if following else len(text)]
    return ""
