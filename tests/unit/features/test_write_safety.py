"""Which launches may be split over devices, and which bytes each part writes."""

import re
from collections.abc import Mapping
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.features.write_safety import SplitSafety, assess_split
from kernelcast.records.balance import MergeRule, SlabSpace
from kernelcast.records.ndrange import NDRange
from support.kernel_facts import facts_of

_HEAD = "int i = get_global_id(0), j = get_global_id(1);"


def _assess(
    body: str,
    *,
    size: tuple[int, ...] = (1024,),
    local: tuple[int, ...] = (16,),
    axis: int = 0,
    thickness: int = 1,
    count: int = 1 << 20,
    scalars: Mapping[str, int] | None = None,
    vouches: bool = False,
) -> SplitSafety:
    """Assess a kernel with buffers of floats x and y, indices p, and two numbers."""
    source = (
        "kernel void k(global float *x, global float *y, global int *p, int W, int H)"
        f"{{ {_HEAD} {body} }}"
    )
    ndrange = NDRange(global_size=size, local_size=local)
    return assess_split(
        facts_of(source),
        SlabSpace(ndrange=ndrange, axis=axis, thickness=thickness),
        scalars or {"W": 1000, "H": 60},
        dict.fromkeys("xyp", 4 * count),
        assumes_independence=vouches,
    )


@pytest.mark.parametrize(
    ("body", "space"),
    [
        ("y[i] = x[i] + x[i + 1];", {}),
        ("y[i] = 2 * y[i];", {"thickness": 3}),
        ("if (i < W) for (int k = 0; k < H; k++) y[k * W + i] += x[i];", {}),
        ("int r = i / W, c = i % W; y[r * W + c] += 1;", {}),
        ("int z = i / (8 * 4), v = i / 4 % 8, u = i % 4; y[z * 32 + v * 4 + u] += 1;", {}),
        ("if (get_local_id(0) == 0) y[get_group_id(0)] = x[i];", {}),
        ("y[2 * i] = x[i]; y[2 * i + 1] = -x[i];", {}),
        ("if (i >= W || j >= H) return; y[j * W + i] *= 2;",
         {"size": (1024, 64), "local": (16, 4), "axis": 1}),
        ("if (i >= W || j >= H) return; y[i * H + j] *= 2;",
         {"size": (1024, 64), "local": (16, 4), "axis": 1}),
        ("if (i >= W || j >= H) return; y[i * H + j] *= 2;",
         {"size": (1024, 64), "local": (16, 4), "axis": 0}),
        ("if (i > W) y[i] = 1; else y[i] = 2;", {}),
        ("for (int k = 0; k <= i; k++) y[i * (i + 1) / 2 + k] += x[k];", {"thickness": 2}),
        ("if (j <= i) y[i * (i + 1) / 2 + j] += 1;", {"size": (64, 64), "local": (4, 4)}),
        ("if (x[i] > 0) y[i] = 1;", {}),
        ("for (int n = i; n < W * H; n += get_global_size(0)) y[n] += 1;", {"count": 60_000}),
        ("local int s[1]; if (get_local_id(0) == 0) s[0] = 0; barrier(1); atomic_inc(s);"
         "barrier(1); y[get_group_id(0)] = x[s[0]];", {}),
    ],
)  # fmt: skip
def test_own_places_are_recognised(body: str, space: dict[str, object]) -> None:
    found = _assess(body, **space)  # type: ignore[arg-type]
    assert found.refusals == ()
    assert found.rules["y"] is MergeRule.RANGES
    assert found.rules["x"] is MergeRule.READ


@pytest.mark.parametrize(
    ("body", "rule", "unread"),
    [
        ("y[p[i]] = 1;", MergeRule.COMPARE, set()),
        ("y[i / 64] = 1;", MergeRule.COMPARE, set()),
        ("y[i * i % 77] = 1;", MergeRule.COMPARE, set()),
        ("y[i & 255] = i;", MergeRule.COMPARE, set()),
        ("y[i] = x[i];", MergeRule.RANGES, {"y"}),
        ("y[i] += x[i];", MergeRule.RANGES, set()),
        ("y[i] = x[i]; if (y[i] > 0) x[i] = 1;", MergeRule.RANGES, set()),
    ],
)
def test_unproven_writes_are_compared(body: str, rule: MergeRule, unread: set[str]) -> None:
    """A buffer that is only written merges by its changes where its places are not known; those
    that merge by ranges and are never read are told."""
    found = _assess(body)
    assert found.refusals == ()
    assert (found.rules["y"], found.unread) == (rule, unread)
    assert found.is_proven == (rule is MergeRule.RANGES)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("y[0] += x[i];", r"y\[0\] is read and written.*sums would be lost"),
        ("y[i] = y[i + 1];", r"y\[i \+ 1\] may read what another work-group writes to y"),
        ("y[p[i]] += 1;", "read and written"),
        ("y[i] = x[i]; x[p[i]] = y[i];", "may read what another work-group writes to x"),
        ("atomic_add(p + i % 4, 1);", "atomic operation on global memory"),
        ("global float *q = p[i] ? x : y; q += p[i]; *q = q[1];", ""),
    ],
)
def test_dependent_work_groups_are_refused(body: str, reason: str) -> None:
    """A launch whose work-groups may need each other's results is not split, with the line."""
    found = _assess(body)
    assert found.refusals
    assert any(re.search(reason, one) for one in found.refusals), found.refusals


def test_caller_may_vouch() -> None:
    """What cannot be proven may be vouched for; atomic operations still may not."""
    assert _assess("y[p[i]] += 1;", vouches=True).refusals == ()
    assert _assess("y[p[i]] += 1;", vouches=True).rules["y"] is MergeRule.COMPARE
    assert _assess("atomic_inc(p);", vouches=True).refusals


@given(
    width=st.integers(1, 40),
    height=st.integers(1, 40),
    local=st.sampled_from([(1, 1), (4, 2), (2, 8)]),
    axis=st.sampled_from([0, 1]),
    thickness=st.integers(1, 4),
    address=st.sampled_from(["j * W + i", "i * H + j", "2 * (j * W + i) + 1", "i * 3 + j * W * 5",
                             "(j * W + i) / 2", "W * H - 1 - j * W - i"]),
)  # fmt: skip
def test_ranges_hold_what_slabs_write(
    width: int, height: int, local: tuple[int, int], axis: int, thickness: int, address: str
) -> None:
    counts = [-(-n // m) for n, m in zip((width, height), local, strict=True)]
    size = tuple(n * m for n, m in zip(counts, local, strict=True))
    found = _assess(
        f"if (i < W && j < H) y[{address}] = 1;",
        size=size, local=local, axis=axis, thickness=thickness,
        scalars={"W": width, "H": height},
    )  # fmt: skip
    if found.rules["y"] is not MergeRule.RANGES:
        return
    slabs = np.arange(found.space.count)
    spans = [found.footprints["y"].spans(slabs == slab) for slab in slabs]
    for i, j in product(range(width), range(height)):
        names = {"i": i, "j": j, "W": width, "H": height}
        start = 4 * eval(address.replace("/", "//"), {}, names)
        own = spans[(i, j)[axis] // local[axis] // thickness]
        assert any(low <= start and start + 4 <= high for low, high in own)
    every = sorted(span for each in spans for span in each)
    assert all(before[1] <= after[0] for before, after in pairwise(every))


def test_neighbouring_slabs_give_few_spans() -> None:
    """Untouched bytes between stretches of one device's slabs do not cut them apart."""
    found = _assess(
        "if (i > 0 && i < W - 1 && j < H) y[j * W + i] = 1;",
        size=(1024, 64), local=(16, 4), axis=1,
    )  # fmt: skip
    first = np.arange(found.space.count) < 7
    spans = found.footprints["y"].spans(first)
    assert spans == [(4, 4 * (7 * 4 * 1000 - 1))]


_TILE = (
    "int c = get_group_id(0) * 10 + get_local_id(0) - 3, r = get_group_id(1) * 4 + "
    "get_local_id(1) - {shift}; if (c >= 0 && c < W{more} && r >= 0 && r < H) y[r * W + c] = 1;"
)


@pytest.mark.parametrize(("shift", "more", "is_known"), [(0, "", True), (0, " + 1", False),
                                                         (1, "", False)])  # fmt: skip
def test_guards_limit_sums(shift: int, more: str, *, is_known: bool) -> None:
    """A column that is compared as a sum stays in its row; rows that overlap are seen."""
    found = _assess(
        _TILE.format(shift=shift, more=more),
        size=(1024, 16 * (4 + shift)), local=(16, 4 + shift), axis=1, count=60_000,
        scalars={"W": 600, "H": 60},
    )  # fmt: skip
    assert (found.rules["y"] is MergeRule.RANGES) == is_known
    if is_known:
        spans = found.footprints["y"].spans(np.arange(found.space.count) == 2)
        assert spans == [(4 * 8 * 600, 4 * 12 * 600)]
