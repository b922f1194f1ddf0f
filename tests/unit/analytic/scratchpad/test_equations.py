import pytest

from kernelcast.analytic.scratchpad.kernel import Copy, Direction, DmaRequest
from kernelcast.analytic.scratchpad.model import (
    average_latency,
    bandwidth_latency,
    computation_time,
    count_dma_transactions,
    count_groups,
    count_transactions,
    double_buffer_saving,
    fewer_cpes_saving,
    memory_time,
    request_overlap,
    request_parallelism,
    request_time,
    total_time,
)
from kernelcast.launches.modelling.scratchpad_files import find_scratchpad
from support.machines import SW26010

CYCLE_S = 1 / 1.45e9


def test_equations_1_and_2_give_the_papers_nbody() -> None:
    """Adds up Fig. 8: 695 + 975 - 571.4 = 1098.6 us."""
    t_mem = memory_time(0.0, 695e-6)
    assert t_mem == 695e-6
    assert total_time(t_mem, 975e-6, 571.4e-6) == pytest.approx(1098.6e-6)


def test_equation_3_takes_the_longer_latency() -> None:
    """Takes 220 cycles where memory is idle, and 742.4 where 64 CPEs ask for a transaction each."""
    assert request_time([(1, 10)], 8, SW26010) == 10 * 220
    assert request_time([(1, 10)], 64, SW26010) == pytest.approx(10 * 742.4)
    assert request_time([(1, 10), (4, 1)], 64, SW26010) == pytest.approx(14 * 742.4)


def test_equation_4_is_volume_over_bandwidth() -> None:
    """Serves 64 CPEs with 256 bytes each in 64 * 256 / 32e9 = 512 ns = 742.4 cycles."""
    assert bandwidth_latency(1, 64, SW26010) == pytest.approx(742.4)
    assert bandwidth_latency(1, 64, SW26010) * CYCLE_S == pytest.approx(512e-9)
    assert bandwidth_latency(3, 128, SW26010) * CYCLE_S == pytest.approx(3 * 512e-9)


@pytest.mark.parametrize(("size", "wanted"), [(1, 1), (32, 1), (256, 1), (257, 2), (1024, 4)])
def test_equation_5_rounds_up(size: int, wanted: int) -> None:
    """Takes whole transactions of 256 bytes."""
    assert count_transactions(size, 256) == wanted


def test_equation_5_counts_chunks_of_strided_copies() -> None:
    """Takes a transaction for each row of 64 bytes, two for each of 300."""
    rows = DmaRequest(
        name="rows",
        direction=Direction.IN,
        copies=(Copy(bytes=1024, chunk_bytes=64), Copy(bytes=600, chunk_bytes=300)),
    )
    assert count_dma_transactions(rows, 256) == 16 + 4


def test_equation_6_weighs_instructions_by_table_1() -> None:
    """Takes (100*9 + 50*1 + 30*3 + 2*34) / 4 = 277 cycles."""
    counts = {"floating": 100, "fixed": 50, "spm": 30, "div_sqrt": 2}
    assert computation_time(counts, 4, SW26010) == 277


def test_equation_8_leaves_out_first_group_and_last_request() -> None:
    """Overlaps (1 - 1/16) * (1 - 1/2) * 100 = 46.875, and nothing of a single request."""
    assert request_overlap(16, 2, 100.0) == 46.875
    assert request_overlap(16, 1, 100.0) == 0.0
    assert request_overlap(1, 20, 100.0) == 0.0


def test_equation_9_takes_whole_cpes() -> None:
    """Divides 64 CPEs into groups of 4, not of 4.31; a group has at least one."""
    assert count_groups(64, 4.31) == 16
    assert count_groups(64, 64.5) == 1
    assert count_groups(10, 0.4) == 10


def test_equation_10_fills_the_bandwidth() -> None:
    """Gives 220 * 32e9 / (1.45e9 * 256) = 18.97 CPEs for single transactions."""
    assert request_parallelism(1, 64, SW26010) == pytest.approx(18.9655, abs=1e-4)
    assert request_parallelism(4, 64, SW26010) == pytest.approx(7.9741, abs=1e-4)
    assert request_parallelism(1, 128, SW26010) == pytest.approx(2 * 18.9655, abs=1e-4)


def test_equation_11_adds_a_delay_per_further_transaction() -> None:
    """Takes 220 cycles for one transaction, 220 + 3 * 50 for four."""
    assert average_latency(1, SW26010) == 220
    assert average_latency(4, SW26010) == 370


@pytest.mark.parametrize("average_mrt", [64, 160, 1000, 1e6])
def test_sixteen_groups_in_the_common_case(average_mrt: float) -> None:
    """Gives NG_DMA = 16 for 64 CPEs and blocks significantly larger than 256 bytes."""
    assert count_groups(64, request_parallelism(average_mrt, 64, SW26010)) == 16


def test_equation_14_gives_the_papers_nbody() -> None:
    """Saves 695 / 2 / 8 = 43.4 us by the copy-in of one virtual group; 42 were measured."""
    saved = double_buffer_saving(8, 695e-6 / 2, 975e-6, 571.4e-6)
    assert saved == pytest.approx(43.4e-6, abs=0.05e-6)
    assert abs(saved - 42e-6) / 42e-6 < 0.035
    assert double_buffer_saving(8, 695e-6, 975e-6, 571.4e-6) == pytest.approx(86.875e-6)
    assert double_buffer_saving(8, 695e-6, 975e-6, 975e-6) == 0.0


def test_equation_15_needs_memory_to_be_the_bottleneck() -> None:
    """Saves a quarter of what DMA takes longer when a quarter of the CPEs idles."""
    assert fewer_cpes_saving(0.25, 120e-6, 80e-6) == pytest.approx(10e-6)
    assert fewer_cpes_saving(0.25, 80e-6, 120e-6) == 0.0


def test_the_shipped_machine_is_table_1() -> None:
    """Ships the numbers that these tests use."""
    shipped = find_scratchpad("SW26010")
    for name in (
        "clock_hz", "bandwidth_bytes_per_s", "transaction_bytes", "delay_cycles",
        "base_latency_cycles", "latencies_cycles", "cpes_per_group", "core_groups", "spm_bytes",
        "gload_bytes",
    ):  # fmt: skip
        assert getattr(shipped, name) == getattr(SW26010, name), name
