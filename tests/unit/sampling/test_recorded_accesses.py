from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.software_counters import InstrumentedKernel
from kernelcast.sampling.counting import CountedBox, place_work_items, read_log

KERNEL = Kernel(name="k", source="kernel void k(global int *a) { a[0] = 1; }")
NDRANGE = NDRange(global_size=(8, 2), local_size=(2, 2))
BOXES = (GroupBox(start=(0, 0), shape=(1, 1)), GroupBox(start=(2, 0), shape=(2, 1)))
COLUMNS = ("sites", "groups", "local_ids", "sequences", "buffers", "offsets_bytes")
Row = tuple[int, int, int, int, int, int]


@st.composite
def logs(
    draw: st.DrawFn,
) -> tuple[InstrumentedKernel, list[CountedBox], dict[int, str | None], dict[str, int]]:
    """Draw what boxes of work-groups may have written down."""
    places = draw(st.lists(st.integers(0, 5), max_size=4))
    bases = draw(st.lists(st.sampled_from(["a", "b", "tile"]), max_size=3, unique=True))
    capacity = draw(st.integers(1, 6))
    known = len(places) + len(bases)
    counted = []
    for box in BOXES:
        items = 4 * box.work_group_count
        counts = draw(st.lists(st.integers(0, 8 if known else 0), min_size=items, max_size=items))
        numbers = st.integers(0, max(known - 1, 0))
        # Drivers give addresses up to the last of 64 bits.
        words = st.tuples(numbers, st.integers(0, 40) | st.just(2**64 - 16))
        log = draw(st.lists(words, min_size=items * capacity, max_size=items * capacity))
        counted.append(
            CountedBox(
                box=box,
                counts=np.array([[7] * items, counts], dtype=np.uint32),
                log=np.array(log, dtype=np.uint64).reshape(items, capacity, 2),
            )
        )
    instrumented = InstrumentedKernel(
        kernel=KERNEL, header="", counter_count=1,
        places=tuple(places), bases=tuple(bases),
    )  # fmt: skip
    names = st.none() | st.sampled_from(["a", "b", "tile", "stranger"])
    owners = draw(st.dictionaries(st.integers(0, 5), names))
    numbers_of = draw(st.dictionaries(st.sampled_from(["a", "b", "tile"]), st.integers(0, 9)))
    return instrumented, counted, owners, numbers_of


def list_entries(
    counted: CountedBox, instrumented: InstrumentedKernel
) -> Iterator[tuple[int, int, int, int, int]]:
    """Give row, work-group, local id, place and signed address of each entry, one by one."""
    assert counted.log is not None
    groups, items = place_work_items(NDRANGE, counted.box)
    for row, (group, item) in enumerate(zip(groups.tolist(), items.tolist(), strict=True)):
        used = min(int(counted.counts[instrumented.counter_count, row]), counted.log.shape[1])
        for place, address in counted.log[row, :used].astype(np.int64).tolist():
            yield row, group, item, place, address


def read_slowly(
    counted: Sequence[CountedBox],
    instrumented: InstrumentedKernel,
    owners: Mapping[int, str | None],
    numbers: Mapping[str, int],
) -> list[Row]:
    """Read logs entry by entry."""
    found: list[Row] = []
    for one in counted:
        starts: dict[tuple[int, str], int] = {}
        for _, group, _, place, address in list_entries(one, instrumented):
            if place >= len(instrumented.places):
                name = instrumented.bases[place - len(instrumented.places)]
                starts.setdefault((group, name), address)
        before: Counter[tuple[int, int]] = Counter()
        for row, group, item, place, address in list_entries(one, instrumented):
            if place >= len(instrumented.places):
                continue
            site = instrumented.places[place]
            owner = owners.get(site) or ""
            start = starts.get((group, owner), -1)
            where = (numbers.get(owner, -1), address - start) if start >= 0 else (-1, address)
            found.append((site, group, item, before[row, site], *where))
            before[row, site] += 1
    return found


@given(logs())
def test_logs_are_read_as_entry_by_entry(
    drawn: tuple[InstrumentedKernel, list[CountedBox], dict[int, str | None], dict[str, int]],
) -> None:
    """Whatever was written: sites, repetitions, buffers and offsets are those of a plain loop."""
    instrumented, counted, owners, numbers = drawn
    found = read_log(NDRANGE, counted, instrumented, owners, numbers)
    rows = zip(*(getattr(found, name).tolist() for name in COLUMNS), strict=True)
    assert list(rows) == read_slowly(counted, instrumented, owners, numbers)
    assert found.work_groups == (0, 2, 3)
    assert found.work_items == (4, 4, 4)
    assert {getattr(found, one.name).dtype for one in fields(found) if one.name in COLUMNS} == {
        np.dtype(np.int64)
    }


@pytest.mark.parametrize("site", [3, 2**16, 2**40])
def test_repetitions_count_for_any_number_of_a_site(site: int) -> None:
    """Numbers beyond those that are sorted by digits are counted alike."""
    box = BOXES[0]
    log = np.zeros((4, 3, 2), dtype=np.uint64)
    log[:, 1, 0] = 1
    counted = CountedBox(box=box, counts=np.full((1, 4), 3, dtype=np.uint32), log=log)
    instrumented = InstrumentedKernel(
        kernel=KERNEL, header="", counter_count=0, places=(site, site - 1)
    )
    found = read_log(NDRANGE, [counted], instrumented, {}, {})
    assert found.sites.tolist() == [site, site - 1, site] * 4
    assert found.sequences.tolist() == [0, 0, 1] * 4


def test_a_box_without_a_log_has_no_accesses() -> None:
    """Its work-groups are named all the same."""
    counted = CountedBox(box=BOXES[1], counts=np.zeros((1, 8), dtype=np.uint32), log=None)
    instrumented = InstrumentedKernel(kernel=KERNEL, header="", counter_count=0)
    found = read_log(NDRANGE, [counted], instrumented, {}, {})
    assert (found.work_groups, found.sites.size) == ((2, 3), 0)
