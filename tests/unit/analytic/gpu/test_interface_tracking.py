"""What section 5 of the Warpspeed paper finds of a two-phase flow on an A100."""

import functools
from pathlib import Path

import pytest

from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.gpu_estimates import Configuration, configure
from kernelcast.launches.modelling.launches import ModelledKernel
from kernelcast.launches.modelling.sources import read_launch_source
from kernelcast.training_data import corpus

WIDE = [(64, 4, 2), (32, 4, 4), (64, 1, 8), (128, 2, 2), (512, 1, 1), (32, 16, 1), (16, 8, 4)]
NARROW = [(1, 64, 8), (2, 32, 8), (2, 256, 1)]


@functools.cache
def read_source() -> ModelledKernel:
    path = Path(corpus.__file__).parent / "lbm" / "track_interface.yaml"
    return read_launch_source(path, parameters={"NX": 512, "NY": 512, "NZ": 256})


@functools.cache
def ask(local_size: tuple[int, ...]) -> Configuration:
    return configure(read_source(), find_machine("a100"), local_size)


@pytest.mark.parametrize("shape", WIDE)
def test_most_shapes_load_little_more_than_the_distributions(shape: tuple[int, ...]) -> None:
    """About 150 bytes an update come from DRAM, 120 of them distributions; DRAM bounds the time."""
    found = ask(shape)
    assert 120 < found.volumes.per_update()["DRAM_to_L2"] < 165
    assert found.volumes.per_update()["L2_to_DRAM"] == pytest.approx(128, rel=0.02)
    assert found.estimate.limiter == "DRAM"


@pytest.mark.parametrize("shape", NARROW)
def test_narrow_shapes_are_the_worst(shape: tuple[int, ...]) -> None:
    """They load partial lines again, and miss on the rest of sectors that they stored in part."""
    found = ask(shape)
    assert found.volumes.per_update()["DRAM_to_L2"] > 1.2 * 150
    assert found.volumes.wave.partial_store_bytes > 0
    assert found.estimate.seconds > 1.3 * max(ask(one).estimate.seconds for one in WIDE)
