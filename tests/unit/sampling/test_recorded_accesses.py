from collections import Counter
from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.sampling.instrumented import CountedBox, place_work_items, read_log

NDRANGE = NDRange(global_size=(8, 2), local_size=(2, 2))
BOXES = (GroupBox(start=(0, 0), shape=(1, 1)), GroupBox(start=(2, 0), shape=(2, 1)))
COLUMNS = ("sites", "groups", "local_ids", "sequences", "offsets_bytes")
Row = tuple[int, int, int, int, int]


@st.composite
def logs(draw: st.DrawFn) -> list[CountedBox]:
    """Draw what boxes of work-groups may have written down."""
    capacity = draw(st.integers(1, 6))
    counted = []
    for box in BOXES:
        items = 4 * box.work_group_count
        counts = draw(st.lists(st.integers(0, 8), min_size=items, max_size=items))
        # Where the buffer is not known, drivers give addresses up to the last of 64 bits.
        words = st.tuples(st.integers(0, 5), st.integers(0, 40) | st.just(2**64 - 16))
        log = draw(st.lists(words, min_size=items * capacity, max_size=items * capacity))
        counted.append(
            CountedBox(
                box=box,
                counts=np.array([[7] * items, counts], dtype=np.uint32),
                log=np.array(log, dtype=np.uint64).reshape(items, capacity, 2),
            )
        )
    return counted


def read_slowly(counted: Sequence[CountedBox]) -> list[Row]:
    """Read logs entry by entry."""
    found: list[Row] = []
    for one in counted:
        before: Counter[tuple[int, int]] = Counter()
        groups, items = place_work_items(NDRANGE, one.box)
        for row, (group, item) in enumerate(zip(groups.tolist(), items.tolist(), strict=True)):
            used = min(int(one.counts[1, row]), one.log.shape[1])
            for site, address in one.log[row, :used].astype(np.int64).tolist():
                found.append((site, group, item, before[row, site], address))
                before[row, site] += 1
    return found


@given(logs())
def test_logs_are_read_as_entry_by_entry(counted: list[CountedBox]) -> None:
    """Whatever was written: sites, repetitions and offsets are those of a plain loop."""
    found = read_log(NDRANGE, counted)
    rows = zip(*(getattr(found, name).tolist() for name in COLUMNS), strict=True)
    assert list(rows) == read_slowly(counted)
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
    log[..., 0] = site, site - 1, site
    counted = CountedBox(box=box, counts=np.full((1, 4), 3, dtype=np.uint32), log=log)
    found = read_log(NDRANGE, [counted])
    assert found.sites.tolist() == [site, site - 1, site] * 4
    assert found.sequences.tolist() == [0, 0, 1] * 4
