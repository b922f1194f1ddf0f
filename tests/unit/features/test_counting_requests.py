"""Sectors and bank conflicts of warps, against what paper and pencil give."""

import numpy as np
import pytest

from kernelcast.features.counting.summary import compute_requests, measure_requests
from kernelcast.records.ndrange import NDRange
from kernelcast.records.software_counters import RequestPattern
from support.accesses import record
from support.kernel_facts import facts_of

LINE = NDRange(global_size=(256,), local_size=(64,))


def compute(source: str, ndrange: NDRange = LINE, **scalars: int) -> tuple[RequestPattern, ...]:
    return compute_requests(facts_of(source).accesses, ndrange, scalars)


@pytest.mark.parametrize(
    ("element", "index", "sectors", "ideal"),
    [
        ("float", "g", 4, 4),
        ("float", "2 * g", 8, 4),
        ("float", "1024 * g", 32, 4),
        ("float", "7", 1, 4),
        ("float", "g + 1", 5, 4),
        ("float", "-g", 5, 4),
        ("float4", "g", 16, 16),
        ("double", "g", 8, 8),
        ("double8", "g", 64, 64),
        ("uchar", "g", 1, 1),
        ("float", "g / 32", 1, 4),
    ],
)
def test_sectors_of_a_warp_follow_the_stride(
    element: str, index: str, sectors: float, ideal: float
) -> None:
    """Neighbours share sectors, a column has none to share."""
    found = compute(
        f"kernel void k(global {element} *x) {{ int g = get_global_id(0); x[{index}] = 1; }}"
    )
    [pattern] = found
    assert pattern.sectors_per_request == sectors
    assert pattern.ideal_sectors_per_request == ideal
    assert (pattern.requests, pattern.is_store, pattern.is_measured) == (1, True, False)


def test_long_loops_are_sampled_without_losing_requests() -> None:
    """A million iterations are counted, and a few thousand of them looked at."""
    source = (
        "kernel void k(global float *x, int n) { int l = get_local_id(0);"
        " for (int i = 0; i < n; i++) x[l + i] = 1; }"
    )
    [pattern] = compute(source, n=1_000_000)
    assert pattern.requests == pytest.approx(1_000_000)
    assert pattern.sectors_per_request == pytest.approx(4 + 7 / 8, rel=0.01)


def test_addresses_that_need_what_is_not_given_are_left_out() -> None:
    """Neither an argument without value nor data makes a pattern."""
    source = (
        "kernel void k(global int *x, int n) { int g = get_global_id(0);"
        " x[n * g] = 1; x[x[g]] = 2; }"
    )
    assert [one.line for one in compute(source)] == [1]
    assert len(compute(source, n=3)) == 2


def test_recorded_addresses_tell_what_expressions_cannot() -> None:
    """An indirect access over scattered places touches a sector per lane."""
    facts = facts_of("kernel void k(global int *x, global int *p) { x[p[get_global_id(0)]] = 1; }")
    [site] = [one.site for one in facts.accesses if one.offset_bytes is None]
    scattered = 100 * np.random.default_rng(1).permutation(128).reshape(2, 64)
    [pattern] = measure_requests(
        facts.accesses, record(4 * scattered.T.ravel(), (0,), size=64, site=site)
    )
    assert (pattern.sectors_per_request, pattern.ideal_sectors_per_request) == (32, 4)
    assert (pattern.requests, pattern.buffer, pattern.is_measured) == (2, "x", True)
    assert not pattern.is_coalesced


def test_recorded_and_computed_requests_agree() -> None:
    """The same addresses give the same numbers, whichever way they are known."""
    facts = facts_of(
        "kernel void k(global float *x) { int l = get_local_id(0);"
        " for (int i = 0; i < 3; i++) x[3 * l + 100 * i] = 1; }"
    )
    [computed] = compute_requests(facts.accesses, LINE, {}, work_groups=[0])
    offsets = 3 * np.arange(64)[None, :] + 100 * np.arange(3)[:, None]
    recorded = record(4 * offsets.T.ravel(), (0,), size=64, site=computed.site)
    [measured] = measure_requests(facts.accesses, recorded)
    for name in ("requests", "sectors_per_request", "ideal_sectors_per_request"):
        assert getattr(measured, name) == getattr(computed, name)


@pytest.mark.parametrize(
    ("element", "index", "conflicts"),
    [
        ("float", "l", 0), ("float", "7", 0), ("float", "2 * l", 1), ("float", "32 * l", 31),
        ("float", "33 * l", 0), ("float4", "l", 0), ("float2", "32 * l", 30), ("uchar", "l / 5", 0),
    ],
)  # fmt: skip
def test_lanes_of_a_bank_wait_for_each_other(element: str, index: str, conflicts: int) -> None:
    """Each word of a bank but the first takes a pass of its own; wide ones are taken in parts."""
    [pattern] = compute(
        f"kernel void k(local {element} *t) {{ int l = get_local_id(0); t[{index}] = 1; }}"
    )
    assert pattern.bank_conflicts_per_request == conflicts
