from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.analytic.mwp_cwp import MwpCwpInputs, model_mwp_cwp
from kernelcast.records.errors import InputError

# The worked example of Hong and Kim, ISCA 2009. Inputs and results (MWP 2.28, CWP 20, 50738 cycles)
# as in the tests of github.com/jdsteve2/gpu_perf_prediction, which name the paper.
EXAMPLE = MwpCwpInputs(
    issue_cycles=4,
    freq_hz=1e9,
    mem_bandwidth_bytes_per_s=80e9,
    mem_ld_cycles=420,
    departure_del_coal_cycles=1,
    departure_del_uncoal_cycles=10,
    comp_insts=27,
    coal_mem_insts=0,
    uncoal_mem_insts=6,
    synch_insts=6,
    uncoal_per_mw=32,
    load_bytes_per_warp=128,
    active_warps_per_sm=20,
    active_blocks_per_sm=5,
    active_sms=16,
    blocks=80,
)


def test_worked_example_gives_the_published_result() -> None:
    """Gives 50738 cycles, from MWP 2.28 and CWP 20 as computed by hand; the paper goes on with MWP
    rounded to 2.28."""
    seconds = model_mwp_cwp(EXAMPLE)
    assert seconds == pytest.approx(50738e-9, rel=1e-3)
    mwp = (420 + 31 * 10) / 320
    assert mwp < 80 / (128 / 730 * 16)
    executed = 6 * 730 * 20 / mwp + 4 * 33 / 6 * (mwp - 1)
    assert seconds == pytest.approx((executed + 320 * (mwp - 1) * 6 * 5) * 1e-9)


@pytest.mark.parametrize("is_published", [True, False])
def test_pure_computation_takes_its_issue_time(is_published: bool) -> None:
    """Takes instructions * issue cycles * warps, for every rule, where nothing is loaded."""
    launch = replace(EXAMPLE, uncoal_mem_insts=0, comp_insts=1000, synch_insts=0, blocks=800)
    seconds = model_mwp_cwp(launch, is_published=is_published)
    assert seconds == pytest.approx(1000 * 4 * 20 * 10e-9)


def test_much_computation_hides_memory() -> None:
    """Takes one latency and all computation where MWP is larger than CWP; the published rule takes
    memory's formula, which says less than issuing takes."""
    launch = replace(EXAMPLE, uncoal_mem_insts=0, coal_mem_insts=10, comp_insts=5000, synch_insts=0)
    seconds = model_mwp_cwp(launch, is_published=False)
    assert seconds == pytest.approx((420 + 5010 * 4 * 20) * 1e-9)
    assert model_mwp_cwp(launch) * 1e9 < 5010 * 4 * 20


@given(st.integers(50, 5000), st.integers(1, 200))
def test_pure_bandwidth_moves_all_bytes(loads: int, blocks: int) -> None:
    """Takes bytes over bandwidth where coalesced loads of many warps saturate memory."""
    launch = replace(
        EXAMPLE, comp_insts=0, uncoal_mem_insts=0, coal_mem_insts=loads, synch_insts=0,
        active_warps_per_sm=32, blocks=80 * blocks, mem_bandwidth_bytes_per_s=8e9,
    )  # fmt: skip
    assert model_mwp_cwp(launch) == pytest.approx(loads * 128 * 32 * 16 * blocks / 8e9, rel=0.01)


def test_senseless_inputs_are_refused() -> None:
    """Names what is not positive, and launches without instructions."""
    with pytest.raises(InputError, match="mem_ld_cycles is 0"):
        replace(EXAMPLE, mem_ld_cycles=0)
    with pytest.raises(InputError, match="some instructions"):
        replace(EXAMPLE, comp_insts=0, uncoal_mem_insts=0)
    with pytest.raises(InputError, match="active_sms is 0"):
        replace(EXAMPLE, active_sms=0)
