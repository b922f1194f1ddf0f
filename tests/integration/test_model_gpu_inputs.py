"""Expressions from OpenCL C against expressions that were written by hand for the same kernels."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from kernelcast.analytic.gpu.machine import read_machine
from kernelcast.analytic.gpu.volumes import compute_volumes
from kernelcast.expressions.accesses import MemoryAccess, ModelledLaunch
from kernelcast.features.counting.static import choose_work_groups
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.sources import read_launch_source
from kernelcast.records.operations import MemorySpace
from support.address_sets import bind_item, enumerate_offsets

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = ROOT / "tests/data/hand_written_accesses"
NAMES = sorted(path.stem for path in WRITTEN.glob("*.yaml"))
assert len(NAMES) >= 12
# The trees in their local memory halve and double, which no range writes down.
GLOBAL_ONLY = {"reduction", "scan_blocks"}
_ITEMS = 5


def list_accesses(launch: ModelledLaunch, name: str) -> list[MemoryAccess]:
    """Give the accesses to compare, without local memory where that was not written down."""
    return [
        one
        for one in launch.accesses
        if one.space is not MemorySpace.LOCAL or name not in GLOBAL_ONLY
    ]


def touch(launch: ModelledLaunch, name: str, group: int) -> list[Counter[tuple[object, ...]]]:
    """Give what some work-items of a work-group touch: kind, buffer, width and offset."""
    touched = []
    for item in np.linspace(0, launch.ndrange.work_group_size - 1, _ITEMS).astype(int):
        own = bind_item(launch.ndrange, group, item, launch.scalars)
        counts: Counter[tuple[object, ...]] = Counter()
        for one in list_accesses(launch, name):
            offsets = enumerate_offsets(one, own)
            counts.update((one.kind, one.buffer, one.bytes, offset) for offset in offsets)
        touched.append(counts)
    return touched


@pytest.mark.parametrize("name", NAMES)
def test_source_and_hand_written_accesses_are_the_same(name: str) -> None:
    """Addresses of work-items all over the launch, counts of each width, and bytes per level."""
    paths = (ROOT / f"examples/{name}/{name}.yaml", WRITTEN / f"{name}.yaml")
    extracted, written = (read_launch_source(path).launch() for path in paths)
    assert extracted.ndrange == written.ndrange
    for group in choose_work_groups(extracted.ndrange, 3):
        assert touch(extracted, name, group) == touch(written, name, group)
    # Registers are no business of who writes accesses.
    skipped = {MemorySpace.PRIVATE} | ({MemorySpace.LOCAL} if name in GLOBAL_ONLY else set())
    wanted, found = (
        {key: count for key, count in launch.executed.memory.items() if key.space not in skipped}
        for launch in (extracted, written)
    )
    assert found == pytest.approx(wanted)
    for machine in ("a100", "mi210"):
        gpu = read_machine(find_machine(machine))
        ours, theirs = (compute_volumes(launch, gpu) for launch in (extracted, written))
        assert theirs.per_update() == pytest.approx(ours.per_update(), rel=1e-9), machine
        assert theirs.l1.warp_cycles == pytest.approx(ours.l1.warp_cycles, rel=1e-9)
        assert theirs.occupancy.work_groups == ours.occupancy.work_groups
