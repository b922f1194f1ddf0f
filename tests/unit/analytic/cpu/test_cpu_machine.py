from dataclasses import replace

import pytest

from kernelcast.analytic.cpu.machine import read_machine
from kernelcast.launches.machines import find_machine
from kernelcast.records.device import DeviceKind, Trait, TraitSource
from kernelcast.records.errors import InputError
from kernelcast.records.machine import MachineDescription, MemoryFacts
from support.machines import IVY_BRIDGE

IVY = find_machine("ivy-bridge-ep")


def measured(value: float) -> Trait[float]:
    return Trait(value=value, source=TraitSource.MEASURED)


def published(value: int) -> Trait[int]:
    return Trait(value=value, source=TraitSource.PUBLISHED)


def cache_with(**changes: object) -> MachineDescription:
    """Change Ivy Bridge's L2."""
    caches = tuple(
        replace(one, **changes) if one.name == "L2" else one  # type: ignore[arg-type]  # any field
        for one in IVY.caches
    )
    return replace(IVY, caches=caches)


def test_busy_cores_share_the_last_cache() -> None:
    """Divides sets among cores, as the reference tool does."""
    assert IVY_BRIDGE.shares(1) == (2**15, 2**18, 25 * 2**20)
    assert IVY_BRIDGE.shares(4) == (2**15, 2**18, 25600 // 4 * 16 * 64)
    assert IVY_BRIDGE.shares(10)[2] == 2560 * 16 * 64


def test_measured_sizes_become_whole_sets() -> None:
    """Rounds what a fit found, but takes the system's word for a core's own cache."""
    fitted = cache_with(
        size_bytes=measured(247_403),
        ways=Trait(value=12, source=TraitSource.REPORTED),
    )
    assert read_machine(fitted).caches[1].size_bytes == 322 * 12 * 64
    reported = cache_with(
        size_bytes=measured(247_403),
        reported_size_bytes=Trait(value=262_144, source=TraitSource.REPORTED),
    )
    assert read_machine(reported).caches[1].size_bytes == 262_144


def test_measured_copies_move_lines_that_stores_bring_in() -> None:
    """Counts three lines for the two that a copy names, and says so."""
    memory = MemoryFacts(space="global", copy_bytes_per_s=measured(2e10))
    streams = read_machine(replace(IVY, memories=(memory,), costs={})).streams
    assert streams.saturated(2, 1) == ("copy", 3e10)
    assert streams.notes


@pytest.mark.parametrize(
    ("costs", "asked", "bytes_per_s"),
    [
        (IVY.costs, ("L2", 1, 0, 1), 35.06e9),  # measured on one core
        ({}, ("L2", 1, 0, 2), 1e11),
        ({}, ("MEM", 2, 1, 1), 47.25e9),  # one core may saturate it
    ],
)
def test_bandwidths_of_a_calibrated_machine_are_shared_by_its_cores(
    costs: dict[str, Trait[float]], asked: tuple[str, int, int, int], bytes_per_s: float
) -> None:
    """Gives each core its part of a cache where nobody measured one alone."""
    calibrated = replace(cache_with(load_bytes_per_s=measured(5e11)), costs=costs)
    rate = read_machine(calibrated).streams.reached(*asked)
    assert rate is not None
    assert rate[1] == pytest.approx(bytes_per_s)


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        (replace(IVY, kind=DeviceKind.GPU), "needs a CPU"),
        (replace(IVY, clock_hz=None), r"clock_hz is not known; .* calibrate --only clock"),
        (cache_with(size_bytes=None), r"caches.L2.size_bytes is not known; .* --only caches"),
        (cache_with(line_bytes=None), "caches.L2.line_bytes is not known"),
        (replace(IVY, caches=()), "size of its caches is not known; .* --only caches"),
        (
            cache_with(size_bytes=published(100_000)),
            "L2: 100000 bytes; expected whole sets of 8 ways of 64 bytes",
        ),
        (
            cache_with(line_bytes=published(48)),
            "lines of 48 bytes; expected a power of two",
        ),
        (
            cache_with(line_bytes=published(128)),
            "lines of 64 bytes in L1 and of 128 in L2",
        ),
        (
            cache_with(size_bytes=published(16384)),
            "L2 .16384 bytes. is smaller than L1",
        ),
    ],
)
def test_refuses_machines_without_a_model(machine: MachineDescription, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        read_machine(machine)


def test_refuses_levels_that_do_not_overlap_because_they_are_not_there() -> None:
    assert read_machine(IVY, overlapping=["L3", "MEM"]).overlapping == {"L3", "MEM"}
    with pytest.raises(InputError, match="L4: no level of Xeon"):
        read_machine(IVY, overlapping=["L4"])


def test_measured_bandwidths_hold_the_way_through_nearer_caches() -> None:
    """Takes the nearer cache's time off a measured loop's, unless the level overlaps."""
    rates = {"L1": 960e9, "L2": 480e9, "L3": 240e9}  # 2, 4 and 8 cycles per line of ten cores
    caches = tuple(replace(one, load_bytes_per_s=measured(rates[one.name])) for one in IVY.caches)
    calibrated = replace(IVY, caches=caches)
    cycles = [one.cycles_per_line for one in read_machine(calibrated).caches]
    assert cycles == [None, 2, 4]
    overlapping = read_machine(calibrated, overlapping=["L3"])
    assert [one.cycles_per_line for one in overlapping.caches] == [None, 2, 8]
