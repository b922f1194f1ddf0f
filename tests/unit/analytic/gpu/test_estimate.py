import math
from dataclasses import replace

import numpy as np
import pytest

from kernelcast.analytic.gpu.estimate import estimate_gpu
from kernelcast.expressions import Expr, Symbol, SymbolKind, less
from kernelcast.expressions.accesses import AccessKind, AddressPattern, LoopFacts, MemoryAccess
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.features.vector import combine
from kernelcast.launches.machines import find_machine
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import check_name
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import MemorySpace, NumberClass, Operation, OperationCounts
from kernelcast.records.operations import OperationKind as Kind
from kernelcast.records.software_counters import RecordedAddresses

V100 = find_machine("v100")
X, Y = (Expr.symbol(Symbol(SymbolKind.GLOBAL_ID, axis=axis)) for axis in range(2))
K = Expr.symbol(Symbol(SymbolKind.LOOP, "k"))
SIDE = 1024


def make_access(
    buffer: str,
    kind: AccessKind,
    offset: Expr,
    loops: tuple[LoopFacts, ...] = (),
    site: int = 0,
) -> MemoryAccess:
    """Make an access to four bytes."""
    return MemoryAccess(
        site=site,
        block=0,
        line=1,
        text=buffer,
        kind=kind,
        space=MemorySpace.GLOBAL,
        buffer=buffer,
        bytes=4,
        offset_bytes=offset,
        pattern=AddressPattern.QUASI_AFFINE,
        loops=loops,
    )


def count(kind: Kind, times: float) -> OperationCounts:
    """Count one kind of fp32 operation."""
    one = Operation(kind=kind, number=NumberClass.FLOAT, bits=32)
    return OperationCounts(operations={one: times}, memory={})


def make_copy(items: int = 2**26) -> ModelledLaunch:
    """Make a copy of 4-byte elements."""
    return ModelledLaunch(
        kernel="copy",
        ndrange=NDRange(global_size=(items,), local_size=(256,)),
        accesses=(
            make_access("a", AccessKind.LOAD, 4 * X),
            make_access("b", AccessKind.STORE, 4 * X),
        ),
        registers=16,
    )


def make_product() -> ModelledLaunch:
    """Make the plain product of two square matrices."""
    loop = LoopFacts(
        name="k", line=1, condition=less(K, SIDE), trip_count=Expr.constant(SIDE), is_exact=True
    )
    return ModelledLaunch(
        kernel="matmul",
        ndrange=NDRange(global_size=(SIDE, SIDE), local_size=(16, 16)),
        accesses=(
            make_access("a", AccessKind.LOAD, 4 * (SIDE * Y + K), (loop,)),
            make_access("b", AccessKind.LOAD, 4 * (SIDE * K + X), (loop,)),
            make_access("c", AccessKind.STORE, 4 * (SIDE * Y + X)),
        ),
        executed=count(Kind.FUSED, SIDE),
        registers=32,
    )


def make_gather(spread: int) -> ModelledLaunch:
    """Make a gather through an index, its addresses recorded over a range of some bytes."""
    items, size = 2**22, 256
    groups = (0, items // size // 2)
    rng = np.random.default_rng(1)
    lanes = np.tile(np.arange(size), len(groups))
    group_of = np.repeat(groups, size)
    indirect = replace(
        make_access("x", AccessKind.LOAD, 4 * X, site=1),
        offset_bytes=None,
        pattern=AddressPattern.INDIRECT,
        sources=("index",),
    )
    recorded = RecordedAddresses(
        work_groups=groups,
        work_items=(size, size),
        sites=np.ones(lanes.size, dtype=np.int64),
        groups=group_of,
        local_ids=lanes,
        sequences=np.zeros(lanes.size, dtype=np.int64),
        offsets_bytes=rng.integers(0, spread // 4, lanes.size) * 4,
    )
    return ModelledLaunch(
        kernel="gather",
        ndrange=NDRange(global_size=(items,), local_size=(size,)),
        accesses=(
            make_access("index", AccessKind.LOAD, 4 * X),
            indirect,
            make_access("out", AccessKind.STORE, 4 * X, site=2),
        ),
        buffers={"index": 4 * items, "x": spread, "out": 4 * items},
        recorded=recorded,
    )


def test_a_wide_gather_is_slower_than_a_narrow_one() -> None:
    """Estimates addresses that depend on data from recorded ones."""
    narrow, wide = (estimate_gpu(make_gather(spread), V100) for spread in (2**12, 2**30))
    assert 0 < 2 * narrow.seconds < wide.seconds < math.inf
    assert wide.limiters["latency"] > 0


def test_a_copy_is_bound_by_the_memory() -> None:
    """Moves each byte once, at nearly the measured bandwidth."""
    found = estimate_gpu(make_copy(), V100)
    assert (found.model, found.machine) == ("gpu", "v100")
    assert found.limiter == "DRAM"
    assert found.volumes["DRAM_to_L2"] == pytest.approx(4 * 2**26, rel=0.02)
    assert 8 * 2**26 / 0.85e12 < found.seconds < 8 * 2**26 / 0.7e12


# GB/s of gpu-small-kernels, which scales doubles: another kernel of as many bytes in four-byte
# elements has more work-groups, so that only sizes are shown at which memory decides.
@pytest.mark.parametrize(
    ("machine", "mega_bytes", "slowest", "fastest"),
    [
        ("a40", 3, 800, 2000),  # half of L2
        ("a40", 50, 550, 700),  # beyond L2
        ("rx-6900-xt", 50, 1100, 1900),  # in the cache behind L2
        ("rx-6900-xt", 400, 430, 500),  # beyond all caches
    ],
)
def test_a_repeated_launch_finds_what_caches_have_kept(
    machine: str, mega_bytes: int, slowest: float, fastest: float
) -> None:
    """Takes as long as the farthest cache that holds its data, or as the memory."""
    items = mega_bytes * 10**6 // 8 // 256 * 256
    found = estimate_gpu(make_copy(items), find_machine(machine))
    assert slowest < 8e-9 * items / found.seconds < fastest


def test_small_work_groups_wait_for_their_start() -> None:
    """Assumes a cost of a start by the architecture where no description has one."""
    machine = find_machine("l40")
    ndrange = NDRange(global_size=(2**20,), local_size=(32,))
    found = estimate_gpu(replace(make_copy(2**20), ndrange=ndrange), machine)
    assert "work_group_dispatch_s" not in machine.costs
    assert found.limiter == "dispatch"
    assert found.seconds > 2**20 / 32 * 0.5e-9


def test_a_matrix_product_is_not_bound_by_the_memory() -> None:
    """Reads each row and column many times, from caches."""
    found = estimate_gpu(make_product(), V100)
    assert found.limiter in {"L1", "L2", "fp32", "latency"}
    flops = 2.0 * SIDE**3
    assert 0.3e12 < flops / found.seconds < 14.1e12


def test_quantities_are_finite_and_end_in_units() -> None:
    """Gives nothing that the feature vector could not hold."""
    found = estimate_gpu(make_product(), V100)
    for name, value in found.quantities.items():
        check_name(f"analytic.{name}")
        assert math.isfinite(value), name
    for name in found.limiters:
        assert found.quantities[f"without_{name.lower()}_s"] <= found.seconds


def test_features_come_from_the_estimate() -> None:
    """Turns times and volumes into the analytic block."""
    found = estimate_gpu(make_product(), V100)
    vector = combine(found).as_dict()
    assert vector["analytic.estimate_s"] == found.seconds
    assert vector["analytic.dram_limiter_s"] == found.limiters["DRAM"]
    assert 0 < vector["analytic.largest_limiter_ratio"] <= 1
    assert vector["analytic.l1_miss_ratio"] > 0
    assert "analytic.special_limiter_s" not in vector
    assert "analytic.l1_miss_ratio" in combine(estimate_gpu(make_copy(), V100)).absent


def test_a_machine_without_bandwidth_is_refused() -> None:
    """Names the command that measures what is missing."""
    with pytest.raises(InputError, match="calibrate --only bandwidth"):
        estimate_gpu(make_copy(), replace(V100, memories=()))
