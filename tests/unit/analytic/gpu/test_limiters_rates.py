import json
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from kernelcast.analytic.gpu.limiters.assess import assess
from kernelcast.analytic.gpu.limiters.demands import Demands
from kernelcast.analytic.gpu.limiters.rates import FITTED, DramRate, read_rates
from kernelcast.launches.machines import find_machine
from kernelcast.records.device import DeviceKind, Trait, TraitSource
from kernelcast.records.errors import InputError
from kernelcast.records.machine import CacheFacts, MachineDescription, MemoryFacts

RECORDS = Path(__file__).parents[4] / "../shared/reference/warpspeed/measured_v100_3d25pt.json"
V100 = find_machine("v100")
GPUS = (
    "v100", "a100", "a100-80gb", "a40", "l40", "h100-pcie", "h200", "gh200", "mi100", "mi210",
    "mi300x", "mi300a", "rx-6900-xt",
)  # fmt: skip
UPDATES = 632 * 504 * 504


def known(value: float) -> Trait[float]:
    """Make a measured number."""
    return Trait(value=value, source=TraitSource.MEASURED)


BARE = MachineDescription(
    id="bare",
    name="bare GPU",
    kind=DeviceKind.GPU,
    compute_units=Trait(value=10, source=TraitSource.REPORTED),
    warp_width=Trait(value=32, source=TraitSource.REPORTED),
    clock_hz=known(1e9),
    caches=tuple(
        CacheFacts(name=name, size_bytes=Trait(value=size, source=TraitSource.REPORTED))
        for name, size in (("L1", 1 << 17), ("L2", 1 << 22))
    ),
    memories=(MemoryFacts(space="global", copy_bytes_per_s=known(1e11), latency_s=known(4e-7)),),
)


@pytest.mark.parametrize("machine", GPUS)
def test_every_shipped_gpu_has_rates(machine: str) -> None:
    """Needs no number that the published descriptions lack."""
    rates = read_rates(find_machine(machine), FITTED)
    assert rates.clock_hz > 0
    assert 0 < rates.dram.at(64, 0.5) <= rates.dram.at(4096, 0.5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"compute_units": None}, "compute_units"),
        ({"clock_hz": None}, "--only clock"),
        ({"memories": ()}, "--only bandwidth"),
        ({"warp_width": None}, "warp_width"),
    ],
)
def test_a_missing_number_is_named_with_its_command(change: dict[str, object], words: str) -> None:
    """Refuses a machine of which too little is known."""
    with pytest.raises(InputError, match=words):
        read_rates(replace(BARE, **change), FITTED)  # type: ignore[arg-type]


def test_what_is_assumed_is_noted() -> None:
    """Says what stands in for numbers that nobody measured."""
    notes = " ".join(read_rates(BARE, FITTED).notes)
    for words in ("bandwidth of L2", "Little's law", "launch_s", "translation"):
        assert words in notes


@given(st.floats(0.1, 5000), st.floats(0.1, 5000))
def test_more_in_flight_is_never_slower(first: float, second: float) -> None:
    """Grows with concurrency where the measured points do."""
    points = (16.0, 64.0, 256.0), (1e9, 3e9, 8e9)
    curve = DramRate(load=points, copy=points)
    low, high = sorted((first, second))
    assert curve.at(low, 0.5) <= curve.at(high, 0.5) * (1 + 1e-12)


def count_row_lines(width: int) -> float:
    """Count the lines that a warp touches in rows of some width, at any alignment of 8 bytes."""
    return 32 / width * (1 + (8 * width - 8) / 128)


def read_cases(place: int) -> list[tuple[Demands, float]]:
    """Read every other record of the V100 as demands by its counters, and its seconds."""
    every = json.loads(RECORDS.read_text())["records"]
    clean = [one for one in every if one["launched_grid"] == one["grid_from_block"]]
    cases = []
    for one in sorted(clean, key=lambda record: tuple(record["block"]))[place::2]:
        x, y, z = one["launched_grid"]
        cycles = one["warpspeed_2021_pred"]["L1cycles_per_warp"]
        demands = Demands(
            work_groups=x * y * z,
            work_group_size=1024,
            warps_per_work_group=32,
            resident=1,
            l1_cycles=cycles,
            l2_load_bytes=one["L2_load_B_per_lup"] * UPDATES,
            l2_store_bytes=one["L2_store_B_per_lup"] * UPDATES,
            dram_load_bytes=one["dram_load_B_per_lup"] * UPDATES,
            dram_store_bytes=one["dram_store_B_per_lup"] * UPDATES,
            # Every layer of 640 x 512 numbers is longer than a page. A row of a warp that begins
            # anywhere touches (bytes - 8) / 128 lines more than one.
            pages=2 * one["block"][2] + 8,
            lines=25 * count_row_lines(min(one["block"][0], 32)),
        )
        cases.append((demands, UPDATES / one["perf_GLup_per_s"] / 1e9))
    return cases


def test_measured_volumes_give_the_measured_time_of_a_v100() -> None:
    """Keeps the error of the half that chose no constant: limiters alone, volumes by counters."""
    rates = read_rates(V100, FITTED)
    cases = read_cases(place=1)
    predicted = [assess(demands, rates, FITTED).seconds for demands, _ in cases]
    measured = [seconds for _, seconds in cases]
    errors = [p / m - 1 for p, m in zip(predicted, measured, strict=True)]
    assert statistics.fmean(map(abs, errors)) < 0.06
    assert abs(statistics.fmean(errors)) < 0.04
    assert kendalltau(predicted, measured).statistic > 0.85
