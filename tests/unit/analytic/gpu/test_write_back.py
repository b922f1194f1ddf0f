"""What a clean L2 cache takes, against a simulator's counters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.analytic.gpu.write_back import DramRoof, WriteBack, correct_by_volumes
from kernelcast.testing.simulated_gpu import SimulatedKernel, load_simulated_kernels
from kernelcast.testing.simulated_gpu.runs import SECTOR_BYTES

ROOF = DramRoof(load_bytes_per_s=100.0, copy_bytes_per_s=80.0)
# Kernels that store to other places than they load from, each sector whole.
STREAMS = (
    "small/vecadd", "small/stencil5", "small/tr_naive", "small/tr_tiled", "small/bs",
    "dot_product/dot_product", "jacobi2d/sweep", "scan/scan_bundles", "sad/calc_16",
    "dense_solve/transpose_padded", "sorting_networks/merge_global",
)  # fmt: skip


def find(name: str) -> SimulatedKernel:
    """Give a simulated kernel on the smaller device."""
    [kernel] = (
        one for one in load_simulated_kernels() if one.name == name and one.gpu.compute_units == 5
    )
    return kernel


@pytest.mark.parametrize("name", STREAMS)
def test_a_filling_cache_writes_back_what_the_simulator_counted(name: str) -> None:
    """Foretells DRAM writes of the whole launch within 4 % from a sample of 2 P_sat."""
    kernel = find(name)
    sample = kernel.require(0, 2 * kernel.concurrency)
    allocated, loaded = (
        SECTOR_BYTES * sample.count_per_work_group(one)
        for one in ("l2_misses", "dram_read_sectors")
    )
    volumes = WriteBack(
        l2_bytes=kernel.gpu.l2_bytes, loaded_bytes=loaded, stored_bytes=allocated - loaded,
        allocated_bytes=allocated,
    )  # fmt: skip
    assert kernel.whole is not None
    counted = SECTOR_BYTES * kernel.whole.counters["dram_written_sectors"]
    assert volumes.count_written_bytes(kernel.work_groups) == pytest.approx(counted, rel=0.04)


@given(st.floats(1, 1e4), st.floats(0, 1e4), st.floats(0, 1e4), st.booleans())
def test_more_work_groups_never_write_less(
    stored: float, loaded: float, groups: float, is_clean: bool
) -> None:
    """Writes back no less for more work-groups, and never more than was stored."""
    volumes = WriteBack(
        l2_bytes=1e5, loaded_bytes=loaded, stored_bytes=stored, allocated_bytes=loaded + stored,
        is_clean=is_clean,
    )  # fmt: skip
    written = volumes.count_written_bytes(groups)
    assert 0 <= written <= volumes.count_written_bytes(groups + 1) <= stored * (groups + 1)


def test_reads_alone_are_not_corrected() -> None:
    """Leaves a kernel alone that stores nothing, whatever bandwidths are said to be."""
    volumes = WriteBack(l2_bytes=600, loaded_bytes=50, stored_bytes=0, allocated_bytes=50)
    found = correct_by_volumes(3.0, 0.1, sampled=30, total=100, volumes=volumes, roof=ROOF)
    assert found.seconds == pytest.approx(10.0)


def test_a_slow_kernel_is_not_corrected() -> None:
    """Leaves a rate alone that DRAM can follow."""
    volumes = WriteBack(l2_bytes=600, loaded_bytes=10, stored_bytes=10, allocated_bytes=20)
    found = correct_by_volumes(30.0, 1.0, sampled=30, total=100, volumes=volumes, roof=ROOF)
    assert found.seconds == 100.0


def test_mixed_streams_reach_the_bandwidth_of_a_copy() -> None:
    """Goes from the loads' bandwidth to the copy's as writes become a third of all."""
    assert ROOF.least_s(100, 0) == 1.0
    assert ROOF.least_s(80, 40) == ROOF.least_s(60, 60) == 1.5
    assert 1.0 < ROOF.least_s(90, 10) < 100 / 80
    assert ROOF.least_s(0, 0) == 0.0
