from dataclasses import replace

import pytest

from kernelcast.analytic.cpu.ecm import Unit, Work, predict_ecm, predict_roofline
from kernelcast.analytic.cpu.in_core import InCoreTerms
from kernelcast.analytic.cpu.machine import StreamRates, read_machine
from kernelcast.launches.machines import find_machine
from kernelcast.records.cache_volumes import MEMORY, CacheVolumes, LevelVolume
from kernelcast.records.errors import InputError
from support.machines import IVY_BRIDGE

PAPER = InCoreTerms(overlapping=52.0, non_overlapping=54.0, provider="paper")
WORK = Work(clock_hz=3e9, iterations_per_line=8, flops_per_iteration=12, iterations=1e6)


def volumes_of(*lines: tuple[float, float]) -> CacheVolumes:
    levels = [
        LevelVolume(name=f"L{place}", hits=0, misses=misses, evicts=evicts)
        for place, (misses, evicts) in enumerate(lines, start=1)
    ]
    memory = LevelVolume(name=MEMORY, hits=lines[-1][0], misses=0, evicts=0)
    return CacheVolumes(predictor="lc", levels=(*levels, memory), line_bytes=64, iterations=8)


def test_seven_point_stencil_of_the_paper() -> None:
    """Gives 14 | 10 | 9.1 for 7, 5 and 3 lines and the paper's 63.4 GB/s."""
    machine = replace(IVY_BRIDGE, streams=StreamRates(all_cores={"MEM": {"copy": 63.4e9}}))
    core = InCoreTerms(overlapping=13.2, non_overlapping=7, provider="paper")
    ecm = predict_ecm(volumes_of((6, 1), (4, 1), (2, 1)), machine, core)
    assert ecm.notation() == "{13.2 || 7.0 | 14.0 | 10.0 | 9.1}"


def test_victim_caches_and_two_directions() -> None:
    """Takes the longer direction of a full-duplex boundary, and memory's own word."""
    machine = read_machine(find_machine("skylake-sp"))
    caches = volumes_of((4, 1), (4, 4), (0, 1)).levels[:3]
    memory = LevelVolume(name=MEMORY, hits=2, misses=0, evicts=0, loads=2, stores=1)
    volumes = CacheVolumes(predictor="sim", levels=(*caches, memory), line_bytes=64, iterations=8)
    times = [one.cycles for one in predict_ecm(volumes, machine).transfers]
    assert times == pytest.approx([5, 16, 3 * 64 * 2.4e9 / 107.085e9])


def test_overlapping_levels_do_not_add_up() -> None:
    machine = replace(IVY_BRIDGE, overlapping=frozenset({"L3", "MEM"}))
    ecm = predict_ecm(volumes_of((20, 0), (12, 0), (8, 0)), machine, PAPER)
    l2, l3, memory = (one.cycles for one in ecm.transfers)
    assert ecm.cycles == max(52.0, 54.0 + l2, l3, memory) == 94.0
    machine = replace(IVY_BRIDGE, overlapping=frozenset({"L2", "L3", "MEM"}))
    assert predict_ecm(volumes_of((99, 0), (12, 0), (8, 0)), machine, PAPER).cycles == 198.0


def test_without_the_core_there_are_the_transfers() -> None:
    """Marks terms that are not known, and says so."""
    ecm = predict_ecm(volumes_of((3, 1), (3, 1), (0, 0)), IVY_BRIDGE)
    assert ecm.notation() == "{? || ? | 8.0 | 8.0 | 0.0}"
    assert ecm.cycles == 16.0
    assert ecm.saturation_cores is None
    assert any("data transfers only" in note for note in ecm.notes)


def test_missing_bandwidths_are_named() -> None:
    bare = replace(IVY_BRIDGE, streams=StreamRates())
    with pytest.raises(InputError, match=r"memory bandwidth is not known; .* --only bandwidth"):
        predict_ecm(volumes_of((3, 1), (3, 1), (3, 1)), bare)
    caches = (IVY_BRIDGE.caches[0], replace(IVY_BRIDGE.caches[1], cycles_per_line=None))
    small = replace(IVY_BRIDGE, caches=caches)
    with pytest.raises(InputError, match=r"caches.L2.load_bytes_per_s .* --only caches"):
        predict_ecm(volumes_of((3, 1), (3, 1)), small)


@pytest.mark.parametrize(
    ("unit", "value"),
    [
        (Unit.CYCLES_PER_LINE, 32.0),
        (Unit.CYCLES_PER_ITERATION, 4.0),
        (Unit.ITERATIONS_PER_S, 0.75e9),
        (Unit.FLOP_PER_S, 9e9),
        (Unit.SECONDS, 4e6 / 3e9),
    ],
)
def test_tells_cycles_in_every_unit(unit: Unit, value: float) -> None:
    """Converts 32 cycles for a line of eight iterations, and seconds back."""
    assert WORK.tell(32.0, unit) == pytest.approx(value)
    assert WORK.cycles(4e6 / 3e9) == pytest.approx(32.0)


def test_refuses_what_a_loop_cannot_be_told_in() -> None:
    copy = Work(clock_hz=3e9, iterations_per_line=8)
    with pytest.raises(InputError, match="floating-point operations above 0"):
        copy.tell(32.0, Unit.FLOP_PER_S)
    with pytest.raises(InputError, match="number of iterations"):
        copy.tell(32.0, Unit.SECONDS)
    with pytest.raises(InputError, match="It/s needs a time above 0"):
        copy.tell(0.0, Unit.ITERATIONS_PER_S)


CORE = InCoreTerms(overlapping=16.8, non_overlapping=0, provider="paper")
SEVEN_POINTS = volumes_of((6, 1), (4, 1), (2, 1))


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


@pytest.mark.parametrize(("cores", "rate"), [(1, 18.195e9), (2, 2 * 18.195e9), (10, 47.25e9)])
def test_cores_share_bandwidths_up_to_their_limit(cores: int, rate: float) -> None:
    machine = read_machine(find_machine("ivy-bridge-ep"))
    roofline = predict_roofline(SEVEN_POINTS, machine, CORE, cores=cores)
    assert roofline.ceilings[-1].bytes_per_s == pytest.approx(rate)


def test_unknown_bandwidths_are_left_out_and_named() -> None:
    """Notes a level without bandwidth; refuses where there is none at all."""
    partly = StreamRates(one_core={"MEM": {"copy": 17.9e9}})
    machine = read_machine(find_machine("ivy-bridge-ep"))
    known = predict_roofline(SEVEN_POINTS, replace(machine, streams=partly), CORE)
    assert "L2: its bandwidth is not known; it is left out" in known.notes
    with pytest.raises(InputError, match="calibrate"):
        predict_roofline(SEVEN_POINTS, replace(machine, streams=StreamRates()), CORE)
