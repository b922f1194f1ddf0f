"""What section 5 of the Warpspeed paper finds of a two-phase flow on an A100."""

from pathlib import Path

import pytest

from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.gpu_estimates import configure
from kernelcast.launches.modelling.sources import read_launch_source
from kernelcast.training_data import corpus

WIDE = [(64, 4, 2), (32, 4, 4), (64, 1, 8), (128, 2, 2), (512, 1, 1), (32, 16, 1), (16, 8, 4)]
NARROW = [(1, 64, 8), (2, 32, 8), (2, 256, 1)]


def test_narrow_shapes_are_the_worst() -> None:
    """About 150 bytes an update come from DRAM, 120 of them distributions, and DRAM bounds the
    time; narrow shapes load partial lines again, and miss on the rest of sectors that they stored
    in part."""
    path = Path(corpus.__file__).parent / "lbm" / "track_interface.yaml"
    source = read_launch_source(path, parameters={"NX": 512, "NY": 512, "NZ": 256})
    wide, narrow = (
        [configure(source, find_machine("a100"), one) for one in shapes]
        for shapes in (WIDE, NARROW)
    )
    for found in wide:
        assert 120 < found.volumes.per_update()["DRAM_to_L2"] < 165
        assert found.volumes.per_update()["L2_to_DRAM"] == pytest.approx(128, rel=0.02)
        assert found.estimate.limiter == "DRAM"
    for found in narrow:
        assert found.volumes.per_update()["DRAM_to_L2"] > 1.2 * 150
        assert found.volumes.wave.partial_store_bytes > 0
        assert found.estimate.seconds > 1.3 * max(one.estimate.seconds for one in wide)
