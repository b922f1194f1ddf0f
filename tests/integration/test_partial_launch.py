"""Boxes that run for real, on buffers whose stretches are read back."""

import numpy as np
import pytest

from kernelcast.records.arguments import BufferArgument, ElementType
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.sampling.partial_launch import PartialLaunch
from kernelcast.sampling.session import DeviceSession

pytestmark = pytest.mark.device

_ITEMS = 64 * 500
_KERNEL = Kernel(
    name="number",
    source="kernel void number(global int *a) { a[get_global_id(0)] = get_global_id(0) + 1; }",
)


@pytest.mark.parametrize("stretches", [1, 5, 200])
def test_stretches_are_read_to_their_places(session: DeviceSession, stretches: int) -> None:
    """Few are copied one by one, many out of the mapped buffer; what lies between stays."""
    before = np.full(_ITEMS, -1, np.int32)
    into = np.full(_ITEMS, -2, np.int32)
    starts = np.linspace(64, _ITEMS - 64, stretches, endpoint=False).astype(int)
    spans = [(4 * int(start), 4 * (int(start) + 7)) for start in starts]
    with PartialLaunch(
        session,
        _KERNEL,
        NDRange(global_size=(_ITEMS,), local_size=(64,)),
        [BufferArgument(element=ElementType("int32"), count=_ITEMS)],
        [before],
    ) as launch:
        launch.run([GroupBox(start=(0,), shape=(250,))])
        launch.read(0, spans, into.view(np.uint8))
    expected = np.full(_ITEMS, -2, np.int32)
    for start in starts:
        there = np.arange(start, start + 7)
        expected[there] = np.where(there < 250 * 64, there + 1, -1)
    assert np.array_equal(into, expected)
