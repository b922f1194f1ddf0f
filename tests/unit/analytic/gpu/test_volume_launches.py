"""Volumes of whole launches: what must hold for any kernel."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.analytic.gpu.machine import GpuMachine, read_machine
from kernelcast.analytic.gpu.volumes import GpuVolumes, compute_volumes
from kernelcast.expressions import Expr, Symbol, SymbolKind, less
from kernelcast.expressions.accesses import AccessKind, AddressPattern, LoopFacts, MemoryAccess
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.launches.machines import find_machine
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import MemorySpace
from support.stencils import make_star

X, Y = (Expr.symbol(Symbol(SymbolKind.GLOBAL_ID, axis=axis)) for axis in (0, 1))
K = Expr.symbol(Symbol(SymbolKind.LOOP, "k"))
V100 = read_machine(find_machine("v100"))


def access(kind: AccessKind, buffer: str, address: Expr, trips: int = 0) -> MemoryAccess:
    """Make an access of four bytes, in a loop where it has trips."""
    loops = ()
    if trips:
        loops = (LoopFacts(name="k", line=1, condition=less(K, trips),
                           trip_count=Expr.constant(trips), is_exact=True),)  # fmt: skip
    return MemoryAccess(
        site=0, block=0, line=1, text=buffer, kind=kind, space=MemorySpace.GLOBAL, buffer=buffer,
        bytes=4, offset_bytes=address, pattern=AddressPattern.QUASI_AFFINE, loops=loops,
    )  # fmt: skip


def model(
    *accesses: MemoryAccess, items: tuple[int, ...], local: tuple[int, ...],
    machine: GpuMachine = V100,
) -> GpuVolumes:  # fmt: skip
    """Compute the volumes of a launch."""
    launch = ModelledLaunch(
        kernel="k", ndrange=NDRange(global_size=items, local_size=local), accesses=accesses,
        registers=32,
    )  # fmt: skip
    return compute_volumes(launch, machine)


@pytest.mark.parametrize("name", ["v100", "a100", "mi210", "mi300x", "rx-6900-xt"])
def test_streaming_moves_every_byte_once(name: str) -> None:
    """A triad loads two arrays and stores one, on every architecture."""
    count = 1 << 22
    volumes = model(
        access(AccessKind.LOAD, "a", 4 * X), access(AccessKind.LOAD, "b", 4 * X),
        access(AccessKind.STORE, "c", 4 * X), items=(count,), local=(256,),
        machine=read_machine(find_machine(name)),
    )  # fmt: skip
    assert volumes.per_update() == pytest.approx(
        {"L2_to_L1": 8, "L1_to_L2": 4, "DRAM_to_L2": 8, "L2_to_DRAM": 4}
    )


def test_matrix_product_reuses_operands_across_iterations() -> None:
    """Loops reuse lines from iteration to iteration, and work-groups of a unit share its L1."""
    size, local = 2048, 16
    volumes = model(
        access(AccessKind.LOAD, "a", 4 * (Y * size + K), trips=size),
        access(AccessKind.LOAD, "b", 4 * (K * size + X), trips=size),
        access(AccessKind.STORE, "c", 4 * (Y * size + X)),
        items=(size, size), local=(local, local),
    )  # fmt: skip
    moved = volumes.per_update()
    own = 2 * 4 * size / local
    compulsory = volumes.l1.compulsory_bytes / local**2
    assert compulsory == pytest.approx(own, rel=0.05)
    # Operands of the same rows are there already, those of the same columns hardly ever.
    assert 0.6 * own < moved["L2_to_L1"] < 0.9 * own
    assert 8 < moved["DRAM_to_L2"] < 4 * size / local * 1.05
    assert moved["L2_to_DRAM"] == pytest.approx(4)


def test_one_unit_loads_what_its_work_groups_share_once() -> None:
    """On a GPU of one unit, the work-groups of a wave that read one row load it together."""
    v100 = read_machine(find_machine("v100"))
    volumes = model(
        access(AccessKind.LOAD, "a", 4 * Y), access(AccessKind.STORE, "c", 4 * (64 * Y + X)),
        items=(64, 64), local=(16, 8), machine=replace(v100, compute_units=1),
    )  # fmt: skip
    assert volumes.l1.neighbour_bytes == pytest.approx(0.75 * volumes.l1.compulsory_bytes, rel=0.02)


def test_rows_per_work_item_thrash_the_first_cache() -> None:
    """Work-items that walk rows of their own load lines again, as resident work-groups add up."""
    size = 4096
    walk = model(
        access(AccessKind.LOAD, "a", 4 * (X * size + K), trips=size), items=(size,), local=(256,)
    )
    assert walk.l2_load_bytes > 2 * 4 * size**2
    assert walk.l1.oversubscription > 1


def test_transposed_stores_write_whole_sectors_for_words() -> None:
    """Each word of a column is a sector of its own on the way to L2, merged before DRAM."""
    size = 1024
    moved = model(
        access(AccessKind.LOAD, "a", 4 * (Y * size + X)),
        access(AccessKind.STORE, "b", 4 * (X * size + Y)), items=(size, size), local=(32, 8),
    ).per_update()  # fmt: skip
    assert moved["L1_to_L2"] == pytest.approx(32)
    assert moved["L2_to_DRAM"] == pytest.approx(4, rel=0.01)


@given(
    local=st.tuples(st.integers(1, 40), st.integers(1, 12)),
    first=st.integers(0, 3), more=st.integers(1, 9),
)  # fmt: skip
@settings(max_examples=20, deadline=None)
def test_one_more_access_never_moves_fewer_bytes(
    local: tuple[int, int], first: int, more: int
) -> None:
    """Compulsory volumes grow with every access."""
    known = [access(AccessKind.LOAD, "a", 4 * (Y * 1024 + X + first))]
    fewer = model(*known, items=(960, 480), local=local)
    further = access(AccessKind.LOAD, "a", 4 * ((Y + more) * 1024 + X))
    many = model(*known, further, items=(960, 480), local=local)
    assert many.l1.compulsory_bytes >= fewer.l1.compulsory_bytes
    assert many.l1.allocated_bytes >= fewer.l1.allocated_bytes
    assert many.dram_load_bytes >= fewer.dram_load_bytes * (1 - 1e-9)


def make_stencil(*local_size: int) -> ModelledLaunch:
    """Make the launch of a star stencil on 640 x 512 x 512 numbers."""
    return make_star(array=(640, 512, 512), radius=4, local_size=local_size, registers=40)


@pytest.mark.parametrize(("x", "y", "z"), [(16, 1, 64), (2, 8, 64), (8, 8, 16), (64, 4, 4)])
def test_a_work_group_uses_a_page_for_each_layer(x: int, y: int, z: int) -> None:
    """Layers of 640 x 512 numbers are longer than a page: those that are loaded, those stored."""
    volumes = compute_volumes(make_stencil(x, y, z), V100)
    assert volumes.group_pages == pytest.approx(2 * z + 8, abs=3)


@pytest.mark.parametrize(("local_size", "lines"), [((32, 8, 4), 2.94), ((16, 8, 8), 3.88)])
def test_rows_of_a_warp_touch_lines(local_size: tuple[int, ...], lines: float) -> None:
    """Counts 8 n - 8 bytes over lines of 128 more than one for each row, mean of alignments."""
    l1 = compute_volumes(make_stencil(*local_size), V100).l1
    assert l1.load_lines / l1.load_requests == pytest.approx(lines, rel=0.03)
