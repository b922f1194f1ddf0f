from kernelcast.sampling.occupancy import CompiledResources, parse_build_log

TWO_KERNELS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'other' for 'sm_80'
ptxas info    : Function properties for other
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers, 360 bytes cmem[0]
ptxas info    : Compile time = 19.127 ms
ptxas info    : Compiling entry function 'reduce' for 'sm_80'
ptxas info    : Function properties for reduce
    48 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 4096 bytes smem, 360 bytes cmem[0]
ptxas info    : Function properties for helper
    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
"""
HELPER_FIRST = """\
ptxas info    : Compiling entry function 'k' for 'sm_20'
ptxas info    : Function properties for 'helper'
ptxas         .     40 bytes stack frame, 40 bytes spill stores, 40 bytes spill loads
ptxas info    : Function properties for 'k'
ptxas         .     8 bytes stack frame, 2 bytes spill stores, 3 bytes spill loads
ptxas info    : Used 27 registers, 88 bytes cmem[0]
"""
OLD_DEVICE = """\
ptxas info    : Compiling entry function 'k' for 'sm_13'
ptxas info    : Used 15 registers, 8+0 bytes lmem, 2088+16 bytes smem, 12 bytes cmem[1]
"""


def test_reads_each_kernel_of_a_program() -> None:
    """Reads registers, spills, local memory and barriers of the kernel asked for."""
    assert parse_build_log(TWO_KERNELS, "reduce") == CompiledResources(
        registers_per_work_item=40,
        local_memory_bytes=4096,
        stack_frame_bytes=48,
        spill_store_bytes=16,
        spill_load_bytes=24,
        uses_barriers=True,
    )
    other = parse_build_log(TWO_KERNELS, "other")
    assert other is not None
    assert (other.registers_per_work_item, other.local_memory_bytes) == (8, 0)
    assert other.uses_barriers is False


def test_spills_are_the_kernels_own() -> None:
    """Reads the spills of the kernel, not those of a function it calls."""
    found = parse_build_log(HELPER_FIRST, "k")
    assert found is not None
    assert (found.stack_frame_bytes, found.spill_store_bytes, found.spill_load_bytes) == (8, 2, 3)
    assert found.uses_barriers is None


def test_reads_the_oldest_form() -> None:
    """Adds up the two parts of local memory that compilers for cc 1.x report."""
    found = parse_build_log(OLD_DEVICE, "k")
    assert found is not None
    assert (found.registers_per_work_item, found.local_memory_bytes) == (15, 2104)


def test_a_silent_log_gives_none() -> None:
    """Gives None for an empty log, another vendor's log, and a kernel the log does not name."""
    assert parse_build_log("", "k") is None
    assert parse_build_log("Device build done; kernel <k> was vectorized (8)", "k") is None
    assert parse_build_log(TWO_KERNELS, "red") is None
    assert parse_build_log("ptxas info : Compiling entry function 'k' for 'sm_80'", "k") is None
