"""Expressions from OpenCL C against expressions that were written by hand for the same kernels."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from kernelcast.analytic.gpu.machine import read_machine
from kernelcast.analytic.gpu.volumes import compute_volumes
from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.features.counting.static import choose_work_groups
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.sources import read_launch_source
from kernelcast.records.operations import MemorySpace
from support.address_sets import bind_group, enumerate_offsets

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = ROOT / "tests/data/hand_written_accesses"
NAMES = sorted(path.stem for path in WRITTEN.glob("*.yaml"))
# The trees in their local memory halve and double, which no range writes down.
GLOBAL_ONLY = {"reduction", "scan_blocks"}
_ITEMS = 5


def read_pair(name: str) -> tuple[ModelledLaunch, ModelledLaunch]:
    """Give the launch from the source, and the one written by hand."""
    paths = (ROOT / f"examples/{name}/{name}.yaml", WRITTEN / f"{name}.yaml")
    extracted, written = (read_launch_source(path).launch() for path in paths)
    return extracted, written


def list_accesses(launch: ModelledLaunch, name: str) -> list[MemoryAccess]:
    """Give the accesses to compare, without local memory where that was not written down."""
    return [
        one
        for one in launch.accesses
        if one.space is not MemorySpace.LOCAL or name not in GLOBAL_ONLY
    ]


def touch(launch: ModelledLaunch, name: str, group: int) -> list[Counter[tuple[object, ...]]]:
    """Give what some work-items of a work-group touch: kind, buffer, width and offset."""
    bound = bind_group(launch.ndrange, group, launch.scalars)
    size = launch.ndrange.work_group_size
    touched = []
    for item in np.unique(np.linspace(0, size - 1, _ITEMS).astype(int)):
        own = {
            symbol: value[item : item + 1] if isinstance(value, np.ndarray) else value
            for symbol, value in bound.items()
        }
        counts: Counter[tuple[object, ...]] = Counter()
        for one in list_accesses(launch, name):
            offsets = enumerate_offsets(one, own)
            counts.update((one.kind, one.buffer, one.bytes, offset) for offset in offsets)
        touched.append(counts)
    return touched


def test_covers_twelve_examples() -> None:
    """Compares at least as many examples as were promised."""
    assert len(NAMES) >= 12


@pytest.mark.parametrize("name", NAMES)
def test_addresses_of_work_items_are_the_same(name: str) -> None:
    """Touches the same addresses, work-item by work-item, in work-groups all over the launch."""
    extracted, written = read_pair(name)
    assert extracted.ndrange == written.ndrange
    for group in choose_work_groups(extracted.ndrange, 3):
        assert touch(extracted, name, group) == touch(written, name, group)


@pytest.mark.parametrize("name", NAMES)
def test_counts_of_accesses_are_the_same(name: str) -> None:
    """Counts as many loads and stores of each width per work-item."""
    extracted, written = read_pair(name)
    # Registers are no business of who writes accesses.
    skipped = {MemorySpace.PRIVATE} | ({MemorySpace.LOCAL} if name in GLOBAL_ONLY else set())
    wanted, found = (
        {key: count for key, count in launch.executed.memory.items() if key.space not in skipped}
        for launch in (extracted, written)
    )
    assert found == pytest.approx(wanted)


@pytest.mark.parametrize("machine", ["a100", "mi210"])
@pytest.mark.parametrize("name", NAMES)
def test_volumes_are_the_same(name: str, machine: str) -> None:
    """Gives the same bytes per level from the source as from expressions written by hand."""
    gpu = read_machine(find_machine(machine))
    extracted, written = (compute_volumes(launch, gpu) for launch in read_pair(name))
    assert written.per_update() == pytest.approx(extracted.per_update(), rel=1e-9)
    assert written.l1.warp_cycles == pytest.approx(extracted.l1.warp_cycles, rel=1e-9)
    assert written.occupancy.work_groups == extracted.occupancy.work_groups
