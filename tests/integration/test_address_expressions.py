"""Addresses that kernels really touch, against the expressions that the analysis gives for them.

Each kernel marks an index by `AT`: for the analysis that is the index itself; in the copy that
runs, it also notes line, work-item and index. No line holds two of them. A comment that says
"exact" demands that every marked access is described exactly.
"""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.features.analysis import read_facts
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.session import DeviceSession
from support.address_sets import bind_item, enumerate_offsets
from support.device_queues import put, read

KERNELS = {
    path.stem: path.read_text()
    for path in sorted(Path(__file__).with_name("address_kernels").glob("*.cl"))
}
NDRANGE = NDRange(global_size=(12, 6), local_size=(4, 3))
SCALARS = {"n": 13, "m": -9, "u": 5}
COUNT = 1024
_AS_IT_IS = ("'-DAT(i)=(i)'", "-DLOG=", "-DPASS=")
_RECORDING = """
long kc_note(global int *kc_log, int line, long index) {
  int at = 3 * atomic_inc(kc_log);
  int group = get_group_id(0) + get_num_groups(0) * get_group_id(1);
  int item = group * 12 + get_local_id(0) + get_local_size(0) * get_local_id(1);
  if (at + 3 < 300000) { kc_log[at + 1] = line; kc_log[at + 2] = item; kc_log[at + 3] = index; }
  return clamp(index, 0L, 1023L);
}
#define AT(i) kc_note(kc_log, __LINE__, (long)(i))
#define LOG , global int *kc_log
#define PASS , kc_log
#line 1
"""
Touched = dict[int, set[tuple[int, int]]]


def run(session: DeviceSession, source: str) -> Touched:
    """Run a kernel and give work-items and indices by line."""
    program = cl.Program(session.context, _RECORDING + source).build()
    data = (np.arange(COUNT, dtype=np.int32) * 7919 + 3) % 61  # small numbers in no order
    log = np.zeros(300_000, np.int32)
    buffers = [put(session.queue, one) for one in (data, log)]
    kernel = cl.Kernel(program, "k")
    sizes = NDRANGE.global_size, NDRANGE.local_size
    scalars = np.int32(SCALARS["n"]), np.int32(SCALARS["m"]), np.uint32(SCALARS["u"])
    kernel(session.queue, *sizes, buffers[0], *scalars, buffers[1])
    log = read(session.queue, buffers[1], log)
    assert log[0] < 90_000, "the log is too short"
    touched: Touched = {}
    for line, item, index in log[1 : 1 + 3 * log[0]].reshape(-1, 3).tolist():
        touched.setdefault(line, set()).add((item, index))
    return touched


def predict(accesses: list[MemoryAccess]) -> set[tuple[int, int]]:
    """Evaluate the expressions of a line's accesses for all work-items."""
    found: set[tuple[int, int]] = set()
    for group, item in product(range(NDRANGE.work_group_count), range(NDRANGE.work_group_size)):
        bound = bind_item(NDRANGE, group, item, SCALARS)
        for access in accesses:
            offsets = np.array(sorted(enumerate_offsets(access, bound)), dtype=int)
            assert not (offsets % 4).any()
            number = group * NDRANGE.work_group_size + item
            found |= {(number, index) for index in (offsets // 4).tolist()}
    return found


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
