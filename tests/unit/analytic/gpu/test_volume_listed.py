"""Accesses that are no boxes: evaluated or recorded addresses of some work-groups."""

import numpy as np
import pytest

from kernelcast.analytic.gpu.machine import GpuMachine, read_machine
from kernelcast.analytic.gpu.volumes import compute_volumes
from kernelcast.expressions import Expr, Symbol, SymbolKind, floor_div, floor_mod, maximum, minimum
from kernelcast.expressions.accesses import AccessKind, AddressPattern, MemoryAccess
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.launches.machines import find_machine
from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import MemorySpace
from kernelcast.records.software_counters import RecordedAddresses

X = Expr.symbol(Symbol(SymbolKind.GLOBAL_ID, axis=0))
COUNT, LOCAL = 1 << 16, 128


@pytest.fixture(scope="module")
def machine() -> GpuMachine:
    """Give the V100."""
    return read_machine(find_machine("v100"))


def access(kind: AccessKind, buffer: str, address: Expr | None, **more: object) -> MemoryAccess:
    """Make an access of four bytes."""
    known = address is not None
    return MemoryAccess(
        site=7, block=0, line=3, text=f"{buffer}[i]", kind=kind, space=MemorySpace.GLOBAL,
        buffer=buffer, bytes=4, offset_bytes=address,
        pattern=AddressPattern.QUASI_AFFINE if known else AddressPattern.INDIRECT,
        **more,  # type: ignore[arg-type]
    )  # fmt: skip


def launch_of(*accesses: MemoryAccess, **more: object) -> ModelledLaunch:
    """Make a launch over one dimension."""
    return ModelledLaunch(
        kernel="k",
        ndrange=NDRange(global_size=(COUNT,), local_size=(LOCAL,)),
        accesses=accesses,
        registers=32,
        **more,  # type: ignore[arg-type]
    )


def record(offsets: np.ndarray, groups: tuple[int, ...]) -> RecordedAddresses:
    """Record one load of every work-item of some work-groups."""
    size = LOCAL * len(groups)
    return RecordedAddresses(
        work_groups=groups,
        work_items=(LOCAL,) * len(groups),
        sites=np.full(size, 7),
        groups=np.repeat(groups, LOCAL),
        local_ids=np.tile(np.arange(LOCAL), len(groups)),
        sequences=np.zeros(size, dtype=np.int64),
        offsets_bytes=offsets,
    )


def test_divided_index_moves_what_the_plain_one_moves(machine: GpuMachine) -> None:
    """Rows and columns out of a linear id touch the same bytes as the linear id."""
    split = 4 * (floor_div(X, 256) * 256 + floor_mod(X, 256))
    plain = compute_volumes(launch_of(access(AccessKind.LOAD, "a", 4 * X)), machine)
    # The expression simplifies unless a select hides the sum.
    hidden = 4 * (floor_div(X, 256) * 256 + floor_mod(X + 0, 256)) if split == 4 * X else split
    volumes = compute_volumes(launch_of(access(AccessKind.LOAD, "a", hidden)), machine)
    assert volumes.l2_load_bytes == plain.l2_load_bytes == 4 * COUNT
    assert volumes.dram_load_bytes == pytest.approx(4 * COUNT)


def test_recorded_gather(machine: GpuMachine) -> None:
    """Random addresses fetch a sector per work-item."""
    rng = np.random.default_rng(1)
    offsets = rng.integers(0, 1 << 26, 2 * LOCAL) * 4
    volumes = compute_volumes(
        launch_of(
            access(AccessKind.LOAD, "a", None),
            recorded=record(offsets, (10, 11)),
            buffers={"a": 1 << 28},
        ),
        machine,
    )
    assert volumes.l2_load_bytes == pytest.approx(32 * COUNT, rel=0.01)
    assert volumes.dram_load_bytes == pytest.approx(64 * COUNT, rel=0.02)
    assert any("some work-groups" in one for one in volumes.notes)


def test_recorded_gather_in_a_small_buffer_is_reused(machine: GpuMachine) -> None:
    """A buffer that fits into the cache is loaded from DRAM about once."""
    rng = np.random.default_rng(1)
    size = 1 << 18
    offsets = rng.integers(0, size // 4, 2 * LOCAL) * 4
    volumes = compute_volumes(
        launch_of(
            access(AccessKind.LOAD, "a", None),
            recorded=record(offsets, (10, 11)),
            buffers={"a": size},
        ),
        machine,
    )
    assert size * 0.9 < volumes.dram_load_bytes < size * 1.6


def test_indirect_without_samples_names_the_access(machine: GpuMachine) -> None:
    """What is neither known nor recorded is an error that says which access and what to do."""
    launch = launch_of(access(AccessKind.LOAD, "idx", None, reason="depends on a"))
    with pytest.raises(InputError, match=r"line 3: the address of idx\[i\] depends on data in"):
        compute_volumes(launch, machine)


def test_atomics_count_as_load_and_store(machine: GpuMachine) -> None:
    """An atomic moves data both ways."""
    volumes = compute_volumes(launch_of(access(AccessKind.ATOMIC, "a", 4 * X)), machine)
    assert volumes.l2_load_bytes == volumes.l2_store_bytes == 4 * COUNT


def test_clamped_address_loads_its_buffer_once(machine: GpuMachine) -> None:
    """Counts every byte of a clamped row, and not those beyond its ends."""
    clamped = minimum(maximum(X - 3, 0), COUNT - 1)
    volumes = compute_volumes(launch_of(access(AccessKind.LOAD, "a", 4 * clamped)), machine)
    assert volumes.dram_load_bytes == pytest.approx(4 * COUNT, rel=0.001)


def test_wrapped_address_loads_its_buffer_once(machine: GpuMachine) -> None:
    """Counts what a remainder repeats once where the cache holds it."""
    wrapped = launch_of(
        access(AccessKind.LOAD, "a", 4 * floor_mod(X, COUNT // 8)), buffers={"a": COUNT // 2}
    )
    volumes = compute_volumes(wrapped, machine)
    assert volumes.dram_load_bytes == pytest.approx(COUNT // 2, rel=0.01)


@pytest.mark.parametrize("size", [1 << 22, 1 << 26, 1 << 28])
def test_random_walk_misses_as_much_as_the_cache_cannot_hold(
    machine: GpuMachine, size: int
) -> None:
    """Misses, beside the first touch, by the share of the buffer that L2 does not hold."""
    rng = np.random.default_rng(2)
    steps, groups = 32, (3, 200)
    count = LOCAL * len(groups) * steps
    recorded = RecordedAddresses(
        work_groups=groups,
        work_items=(LOCAL, LOCAL),
        sites=np.full(count, 7),
        groups=np.repeat(groups, LOCAL * steps),
        local_ids=np.tile(np.repeat(np.arange(LOCAL), steps), 2),
        sequences=np.tile(np.arange(steps), 2 * LOCAL),
        offsets_bytes=rng.integers(0, size // 4, count) * 4,
    )
    walk = access(AccessKind.LOAD, "a", None, sources=("a",))
    volumes = compute_volumes(launch_of(walk, recorded=recorded, buffers={"a": size}), machine)
    fetches = COUNT * steps * 64
    first = size * -np.expm1(-fetches / size)
    held = min(1.0, machine.l2_bytes / size)
    expected = first + (fetches - first) * (1 - held)
    assert volumes.dram_load_bytes == pytest.approx(expected, rel=0.1)


def test_data_dependent_stream_is_no_random_walk(machine: GpuMachine) -> None:
    """Loads a buffer once whose parts the work-groups read one by one, as rows of a matrix."""
    groups = (2, 300)
    offsets = 4 * np.concatenate([one * LOCAL + np.arange(LOCAL) for one in groups])
    volumes = compute_volumes(
        launch_of(
            access(AccessKind.LOAD, "a", None),
            recorded=record(offsets, groups),
            buffers={"a": 4 * COUNT},
        ),
        machine,
    )
    assert volumes.dram_load_bytes == pytest.approx(4 * COUNT, rel=0.01)
