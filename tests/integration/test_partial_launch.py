"""Boxes that run for real, on buffers whose stretches are read back."""

import numpy as np
import pytest

from kernelcast.records.arguments import BufferArgument, ElementType
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.sampling.partial_launch import InPlace, PartialLaunch
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


def test_arrays_in_place_need_no_reading_back(session: DeviceSession) -> None:
    """A device that works in the host's memory leaves results there; others hand them over."""
    before, after = (np.full(_ITEMS, -1, np.int32) for _ in range(2))
    arrays = [one.view(np.uint8) for one in (before, after)]
    source = "kernel void twice(global const int *a, global int *b)"
    with PartialLaunch(
        session,
        Kernel(name="twice", source=source + "{ int i = get_global_id(0); b[i] = 2 * a[i] + i; }"),
        NDRange(global_size=(_ITEMS,), local_size=(64,)),
        [BufferArgument(element=ElementType("int32"), count=_ITEMS)] * 2,
        [InPlace(array=one) for one in arrays],
    ) as launch:
        launch.run([GroupBox(start=(0,), shape=(250,))])
        launch.read(1, [(0, arrays[1].size)], arrays[1])
        there = np.arange(_ITEMS)
        assert np.array_equal(after, np.where(there < 250 * 64, there - 2, -1))
        elsewhere = np.zeros_like(arrays[1])
        launch.read(1, [(0, elsewhere.size)], elsewhere)
        assert np.array_equal(elsewhere, arrays[1])
    assert np.all(before == -1)
