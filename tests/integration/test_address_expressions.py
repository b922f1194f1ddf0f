"""Addresses that kernels really touch, against the expressions that the analysis gives for them.

Each kernel marks an index by `AT`: for the analysis that is the index itself; in the copy that
runs, it also notes line, work-item and index. No line holds two of them. A comment that says
"exact" demands that every marked access is described exactly.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from kernelcast.expressions import Expr, Symbol, SymbolKind
from kernelcast.expressions.accesses import AddressPattern, LoopFacts, MemoryAccess
from kernelcast.features.analysis import read_facts
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.session import DeviceSession

KERNELS = {
    path.stem: path.read_text()
    for path in sorted(Path(__file__).with_name("address_kernels").glob("*.cl"))
}
GLOBAL, LOCAL = (12, 6), (4, 3)
SCALARS = {"n": 13, "m": -9, "u": 5}
COUNT = 1024
_LONGEST_LOOP = 200
_AS_IT_IS = ("'-DAT(i)=(i)'", "-DLOG=", "-DPASS=")
_RECORDING = """
long kc_note(global int *kc_log, int line, long index) {
  int at = 3 * atomic_inc(kc_log);
  int item = get_global_id(0) + get_global_size(0) * get_global_id(1);
  if (at + 3 < 300000) { kc_log[at + 1] = line; kc_log[at + 2] = item; kc_log[at + 3] = index; }
  return clamp(index, 0L, 1023L);
}
#define AT(i) kc_note(kc_log, __LINE__, (long)(i))
#define LOG , global int *kc_log
#define PASS , kc_log
#line 1
"""
Touched = dict[int, set[tuple[int, int]]]


def make_input() -> np.ndarray:
    """Give the content of the buffer that kernels read: small numbers in no order."""
    return (np.arange(COUNT, dtype=np.int32) * 7919 + 3) % 61


def run(session: DeviceSession, source: str) -> Touched:
    """Run a kernel and give work-items and indices by line."""
    program = cl.Program(session.context, _RECORDING + source).build()
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    data, log = make_input(), np.zeros(300_000, np.int32)
    buffers = [cl.Buffer(session.context, flags, hostbuf=one) for one in (data, log)]
    kernel = cl.Kernel(program, "k")
    kernel(session.queue, GLOBAL, LOCAL, buffers[0], np.int32(SCALARS["n"]),
           np.int32(SCALARS["m"]), np.uint32(SCALARS["u"]), buffers[1])  # fmt: skip
    cl.enqueue_copy(session.queue, log, buffers[1])
    assert log[0] < 90_000, "the log is too short"
    touched: Touched = {}
    for line, item, index in log[1 : 1 + 3 * log[0]].reshape(-1, 3).tolist():
        touched.setdefault(line, set()).add((item, index))
    return touched


def predict(accesses: list[MemoryAccess]) -> set[tuple[int, int]]:
    """Evaluate the expressions of a line's accesses for all work-items."""
    ndrange = NDRange(global_size=GLOBAL, local_size=LOCAL)
    found: set[tuple[int, int]] = set()
    for item in product(*(range(size) for size in ndrange.global_size)):
        number = item[0] + GLOBAL[0] * item[1]
        for access in accesses:
            assert access.offset_bytes is not None
            for bindings in iterate(access.loops, bind(item)):
                if access.guard.evaluate(bindings):
                    offset = access.offset_bytes.evaluate(bindings)
                    assert offset % 4 == 0
                    found.add((number, offset // 4))
    return found


def bind(item: tuple[int, ...]) -> dict[Symbol, int]:
    """Give the values of all symbols but the loops'."""
    values = {Symbol(SymbolKind.SCALAR, name): value for name, value in SCALARS.items()}
    for axis, (place, size, local) in enumerate(
        zip((*item, 0), (*GLOBAL, 1), (*LOCAL, 1), strict=True)
    ):
        values |= {
            Symbol(SymbolKind.GLOBAL_ID, axis=axis): place,
            Symbol(SymbolKind.LOCAL_ID, axis=axis): place % local,
            Symbol(SymbolKind.GROUP_ID, axis=axis): place // local,
            Symbol(SymbolKind.GLOBAL_SIZE, axis=axis): size,
            Symbol(SymbolKind.LOCAL_SIZE, axis=axis): local,
            Symbol(SymbolKind.GROUP_COUNT, axis=axis): size // local,
            Symbol(SymbolKind.GLOBAL_OFFSET, axis=axis): 0,
        }
    return values


def iterate(
    loops: tuple[LoopFacts, ...], bindings: dict[Symbol, int]
) -> Iterator[dict[Symbol, int]]:
    """Give the values of the loops' symbols, too: iterations run while the condition holds."""
    if not loops:
        yield bindings
        return
    loop, symbol = loops[0], Symbol(SymbolKind.LOOP, loops[0].name)
    count: int | None = None
    if isinstance(loop.trip_count, Expr):
        count = int(loop.trip_count.evaluate(bindings))
    for number in range(_LONGEST_LOOP if count is None else count):
        inner = bindings | {symbol: number}
        holds = loop.condition.evaluate(inner)
        if not holds:
            assert count is None or not loop.is_exact, f"{loop}: fewer iterations than the count"
            break
        yield from iterate(loops[1:], inner)


@pytest.mark.device
@pytest.mark.parametrize("name", KERNELS)
def test_touches_what_the_expressions_say(session: DeviceSession, name: str) -> None:
    """Touches exactly the addresses of exact expressions, and none but those of others."""
    source = KERNELS[name]
    by_line: dict[int, list[MemoryAccess]] = {}
    for access in read_facts(Kernel(name="k", source=source, build_options=_AS_IT_IS)).accesses:
        if "AT(" in access.text:
            by_line.setdefault(access.line, []).append(access)
    touched = run(session, source)
    assert set(touched) <= set(by_line), "an access is missing"
    wanted_exact = "exact" in source
    for line, accesses in by_line.items():
        if any(one.offset_bytes is None for one in accesses):
            assert not wanted_exact, f"line {line}: {accesses[0].reason or accesses[0].pattern}"
            continue
        predicted, really = predict(accesses), touched.get(line, set())
        if all(one.is_exact for one in accesses):
            assert predicted == really, f"line {line}: {accesses[0].offset_bytes}"
        else:
            assert not wanted_exact, f"line {line} is not exact: {accesses[0]}"
            assert really <= predicted, f"line {line}: {accesses[0].offset_bytes}"


def test_kernels_cover_every_pattern() -> None:
    """Holds kernels of every pattern but unknown, and at least as many as were promised."""
    assert len(KERNELS) >= 20
    found = {
        access.pattern
        for source in KERNELS.values()
        for access in read_facts(Kernel(name="k", source=source, build_options=_AS_IT_IS)).accesses
    }
    assert found >= set(AddressPattern) - {AddressPattern.UNKNOWN}
