import math
from dataclasses import replace

import pytest

from kernelcast.analytic.gpu.estimate import estimate_gpu
from kernelcast.expressions.accesses import AccessKind
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.features.vector import combine
from kernelcast.launches.machines import find_machine
from kernelcast.records.feature_vector import check_name
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import NumberClass, Operation, OperationCounts
from kernelcast.records.operations import OperationKind as Kind
from support.accesses import K, X, Y, make_access, make_launch

V100 = find_machine("v100")
SIDE = 1024


def make_copy(items: int = 2**26) -> ModelledLaunch:
    return make_launch(
        make_access("a", 4 * X), make_access("b", 4 * X, AccessKind.STORE),
        items=(items,), local=(256,), registers=16,
    )  # fmt: skip


def make_product() -> ModelledLaunch:
    """Make the plain product of two square matrices."""
    one = Operation(kind=Kind.FUSED, number=NumberClass.FLOAT, bits=32)
    return make_launch(
        make_access("a", 4 * (SIDE * Y + K), trips=SIDE),
        make_access("b", 4 * (SIDE * K + X), trips=SIDE),
        make_access("c", 4 * (SIDE * Y + X), AccessKind.STORE),
        items=(SIDE, SIDE), local=(16, 16),
        executed=OperationCounts(operations={one: SIDE}, memory={}),
    )  # fmt: skip


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
    """Reads each row and column many times, from caches; fills the analytic features."""
    found = estimate_gpu(make_product(), V100)
    assert found.limiter in {"L1", "L2", "fp32", "latency"}
    flops = 2.0 * SIDE**3
    assert 0.3e12 < flops / found.seconds < 14.1e12
    for name, value in found.quantities.items():
        check_name(f"analytic.{name}")
        assert math.isfinite(value), name
    for name in found.limiters:
        assert found.quantities[f"without_{name.lower()}_s"] <= found.seconds
    vector = combine(found).as_dict()
    assert vector["analytic.estimate_s"] == found.seconds
    assert vector["analytic.dram_limiter_s"] == found.limiters["DRAM"]
    assert 0 < vector["analytic.largest_limiter_ratio"] <= 1
    assert vector["analytic.l1_miss_ratio"] > 0
    assert "analytic.special_limiter_s" not in vector
    assert "analytic.l1_miss_ratio" in combine(estimate_gpu(make_copy(), V100)).absent
