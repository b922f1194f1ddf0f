"""Bounds of addresses by guards and loops hold every address that is touched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.expressions import Symbol, SymbolKind
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.analysis import analyse
from kernelcast.features.overruns import LimitedOffset
from kernelcast.features.touched_ranges import bind_launch, bind_loops
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange

PADDED = "int i = get_global_id(0); if (i < n) a[i] = 1.0f;"
PLANE = """int x = get_global_id(0), y = get_global_id(1);
    if (x >= m && x < n && y < n) a[y * n + x - m] = 1.0f;"""
STRIDED = "for (int k = get_local_id(0); k < n; k += get_local_size(0)) a[k] = 1.0f;"
TURNED = "int i = get_global_id(0); if (i < n) a[n - 1 - i] = 1.0f;"
SHIFTED = "int i = get_global_id(0) - m; if (i >= 0 && i + m < n) a[2 * i] = 1.0f;"
SIGNED = "int y = get_global_id(1); if (y < n) a[m * y] = 1.0f;"
SOURCES = (PADDED, PLANE, STRIDED, TURNED, SHIFTED, SIGNED)
LAUNCH = NDRange(global_size=(12, 6), local_size=(4, 3))


@pytest.mark.parametrize("source", SOURCES)
@given(n=st.integers(1, 14), m=st.integers(-2, 6))
def test_bounds_hold_all_addresses(source: str, n: int, m: int) -> None:
    """Whatever the scalars are, and as tightly as guard and loops say where none is negative."""
    (access,) = _read_facts(source).accesses
    assert access.offset_bytes is not None
    known = bind_loops(access, bind_launch(LAUNCH, {"n": n, "m": m}))
    low, high = LimitedOffset(access.offset_bytes, access).bound(known or {})
    touched = [
        int(access.offset_bytes.evaluate(values))
        for values in _list_work_items(n, m)
        if access.guard.evaluate(values) and all(x.condition.evaluate(values) for x in access.loops)
    ]
    assert all(low <= one <= high for one in touched)
    if touched and source in (PADDED, TURNED, STRIDED) and n <= 12:
        assert high == 4 * n - 4


def _list_work_items(n: int, m: int) -> list[dict[Symbol, int]]:
    """Give ids of all work-items, with up to as many iterations as the longest loop."""
    scalars = {Symbol(SymbolKind.SCALAR, "n"): n, Symbol(SymbolKind.SCALAR, "m"): m}
    names = {one.name for source in SOURCES for one in _read_facts(source).loops}
    found = []
    for x in range(12):
        for y in range(6):
            for turn in range(5):
                ids = {}
                for axis, (item, local) in enumerate(((x, 4), (y, 3))):
                    values = {
                        SymbolKind.GLOBAL_ID: item, SymbolKind.LOCAL_ID: item % local,
                        SymbolKind.GROUP_ID: item // local, SymbolKind.LOCAL_SIZE: local,
                    }  # fmt: skip
                    ids |= {Symbol(kind, axis=axis): value for kind, value in values.items()}
                ids |= {Symbol(SymbolKind.LOOP, name): turn for name in names}
                found.append(ids | scalars)
    return found


def _read_facts(source: str) -> KernelFacts:
    text = f"kernel void f(global float *a, int n, int m) {{ {source} }}"
    return analyse(Kernel(name="f", source=text)).facts
