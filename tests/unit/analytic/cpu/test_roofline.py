from dataclasses import replace

import pytest

from kernelcast.analytic.cpu.ecm import Unit, Work, predict_roofline
from kernelcast.analytic.cpu.in_core import InCoreTerms
from kernelcast.analytic.cpu.machine import StreamRates, read_machine
from kernelcast.launches.machines import find_machine
from kernelcast.records.cache_volumes import MEMORY, CacheVolumes, LevelVolume
from kernelcast.records.errors import InputError
from support.machines import IVY_BRIDGE

CORE = InCoreTerms(overlapping=16.8, non_overlapping=0, provider="paper")
SEVEN_POINTS = CacheVolumes(
    predictor="lc",
    levels=(
        LevelVolume(name="L1", hits=2, misses=6, evicts=1),
        LevelVolume(name="L2", hits=4, misses=4, evicts=1),
        LevelVolume(name="L3", hits=6, misses=2, evicts=1),
        LevelVolume(name=MEMORY, hits=2, misses=0, evicts=0),
    ),
    line_bytes=64,
    iterations=8,
)


def test_table_1_of_the_paper() -> None:
    """Gives 24.7 cycles in L3, 32.2 from memory, which decides: 8.94 Gflop/s.

    The table's 16.6 cycles of L2 belong to 384 bytes and not to its 7 lines of 64 bytes.
    """
    roofline = predict_roofline(SEVEN_POINTS, IVY_BRIDGE, CORE)
    cycles = {one.level: one.cycles for one in roofline.ceilings}
    assert cycles["CPU"] == 16.8
    assert cycles["L2"] * 384 / 448 == pytest.approx(16.6, rel=0.02)
    assert cycles["L3"] == pytest.approx(24.7, abs=0.05)
    assert cycles["MEM"] == pytest.approx(32.2, abs=0.05)
    assert roofline.bottleneck.level == "MEM"
    work = Work(clock_hz=3e9, iterations_per_line=8, flops_per_iteration=12)
    assert work.tell(roofline.cycles, Unit.FLOP_PER_S) == pytest.approx(8.94e9, rel=0.003)


def test_the_in_core_variant_has_no_l1() -> None:
    """Leaves loads to the in-core terms, as the paper's RooflineIACA does."""
    core = InCoreTerms(overlapping=13.2, non_overlapping=60, provider="paper")
    roofline = predict_roofline(SEVEN_POINTS, IVY_BRIDGE, core)
    assert [one.level for one in roofline.ceilings] == ["CPU", "L2", "L3", "MEM"]
    assert (roofline.bottleneck.level, roofline.cycles) == ("CPU", 60)


def test_long_range_stencil_of_the_paper() -> None:
    """Gives 17.52, 16.57 and 7.65 GFLOP/s, bound by memory, for 41 flops (Listing 4)."""
    levels = (
        LevelVolume(name="L1", hits=9, misses=19, evicts=1),
        LevelVolume(name="L2", hits=17, misses=11, evicts=1),
        LevelVolume(name="L3", hits=17, misses=11, evicts=1),
        LevelVolume(name=MEMORY, hits=11, misses=0, evicts=0),
    )
    volumes = CacheVolumes(predictor="sim", levels=levels, line_bytes=64, iterations=8)
    roofline = predict_roofline(volumes, IVY_BRIDGE, CORE)
    work = Work(clock_hz=3e9, iterations_per_line=8, flops_per_iteration=41)
    speeds = [work.tell(one.cycles, Unit.FLOP_PER_S) for one in roofline.ceilings[1:]]
    assert roofline.bottleneck.level == "MEM"
    assert speeds == pytest.approx([17.52e9, 16.57e9, 7.65e9], rel=0.002)


def test_cores_share_bandwidths_up_to_their_limit() -> None:
    """Adds cores up until the socket is saturated."""
    machine = read_machine(find_machine("ivy-bridge-ep"))
    one, two, ten = (
        predict_roofline(SEVEN_POINTS, machine, CORE, cores=cores).ceiling("MEM")
        for cores in (1, 2, 10)
    )
    assert one is not None
    assert two is not None
    assert ten is not None
    assert one.bytes_per_s == pytest.approx(18.195e9)
    assert two.bytes_per_s == pytest.approx(2 * 18.195e9)
    assert ten.bytes_per_s == pytest.approx(47.25e9)


def test_unknown_bandwidths_are_left_out_and_named() -> None:
    """Notes a level without bandwidth; refuses where there is none at all."""
    partly = StreamRates(one_core={"MEM": {"copy": 17.9e9}})
    machine = read_machine(find_machine("ivy-bridge-ep"))
    known = predict_roofline(SEVEN_POINTS, replace(machine, streams=partly), CORE)
    assert "L2: its bandwidth is not known; it is left out" in known.notes
    with pytest.raises(InputError, match="calibrate"):
        predict_roofline(SEVEN_POINTS, replace(machine, streams=StreamRates()), CORE)
