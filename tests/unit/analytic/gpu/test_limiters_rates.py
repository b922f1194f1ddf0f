from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.analytic.gpu.limiters.rates import FITTED, DramRate, read_rates
from kernelcast.launches.machines import find_machine
from kernelcast.records.device import DeviceKind, Trait, TraitSource
from kernelcast.records.errors import InputError
from kernelcast.records.machine import CacheFacts, MachineDescription, MemoryFacts

GPUS = (
    "v100", "a100", "a100-80gb", "a40", "l40", "h100-pcie", "h200", "gh200", "mi100", "mi210",
    "mi300x", "mi300a", "rx-6900-xt",
)  # fmt: skip


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
