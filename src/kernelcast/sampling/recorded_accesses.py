"""Reads the log of a counting copy: who touched what, relative to which buffer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.records.instrumented_kernel import InstrumentedKernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.recorded_addresses import RecordedAddresses
from kernelcast.sampling.counted_samples import place_work_items
from kernelcast.sampling.counting import CountedBox

_NO_BUFFER = -1
_Integers = npt.NDArray[np.int64]


def read_log(
    ndrange: NDRange,
    counted: Sequence[CountedBox],
    instrumented: InstrumentedKernel,
    owners: Mapping[int, str | None],
    buffer_numbers: Mapping[str, int],
) -> RecordedAddresses:
    """Give the addresses that boxes of work-groups have written down.

    Parameters
    ----------
    ndrange : NDRange
        The whole launch.
    counted : sequence of CountedBox
        With logs.
    instrumented : InstrumentedKernel
        Says what places and bases are.
    owners : mapping of int to str or None
        The buffer that each site touches, where the source tells.
    buffer_numbers : mapping of str to int
        Numbers of the buffers.

    Returns
    -------
    RecordedAddresses
        Of a work-item that had more accesses than the log could hold, the first.
    """
    parts = [_read_box(ndrange, one, instrumented, owners, buffer_numbers) for one in counted]
    columns = [np.concatenate([part[index] for part in parts]) for index in range(6)]
    placed = [place_work_items(ndrange, one.box)[0] for one in counted]
    sizes = [np.unique(groups, return_counts=True) for groups in placed]
    return RecordedAddresses(
        work_groups=tuple(number for numbers, _ in sizes for number in numbers.tolist()),
        work_items=tuple(size for _, each in sizes for size in each.tolist()),
        sites=columns[0], groups=columns[1], local_ids=columns[2], sequences=columns[3],
        buffers=columns[4], offsets_bytes=columns[5],
    )  # fmt: skip


def _capacity(counted: CountedBox) -> int:
    return 0 if counted.log is None else counted.log.shape[1]


def _read_box(
    ndrange: NDRange,
    counted: CountedBox,
    instrumented: InstrumentedKernel,
    owners: Mapping[int, str | None],
    buffer_numbers: Mapping[str, int],
) -> tuple[_Integers, ...]:
    if counted.log is None:
        return (np.empty(0, dtype=np.int64),) * 6
    groups, items = place_work_items(ndrange, counted.box)
    used = np.minimum(counted.counts[instrumented.counter_count], _capacity(counted))
    rows, positions = np.nonzero(np.arange(_capacity(counted)) < used[:, None])
    place = counted.log[rows, positions, 0].astype(np.int64)
    address = counted.log[rows, positions, 1].astype(np.int64)
    bases = _find_bases(groups[rows], place, address, instrumented)
    kept = place < len(instrumented.places)
    rows, place, address = rows[kept], place[kept], address[kept]
    sites, spread = _spread_sites(place, instrumented)
    rows, address, group = rows[spread], address[spread], groups[rows[spread]]
    known = _Bases(bases, instrumented, owners, buffer_numbers)
    buffer, offset = _relate(sites, address, group, known)
    return sites, group, items[rows], _count_repetitions(rows, sites), buffer, offset


def _find_bases(
    group: _Integers, place: _Integers, address: _Integers, instrumented: InstrumentedKernel
) -> dict[int, dict[int, int]]:
    """Give each base's address per work-group: local memory lies elsewhere in each."""
    first = len(instrumented.places)
    found: dict[int, dict[int, int]] = {}
    for index in range(len(instrumented.bases)):
        chosen = place == first + index
        numbers, where = np.unique(group[chosen], return_index=True)
        at = address[chosen][where]
        found[index] = dict(zip(numbers.tolist(), at.tolist(), strict=True))
    return found


def _spread_sites(
    place: _Integers, instrumented: InstrumentedKernel
) -> tuple[_Integers, _Integers]:
    """Give the sites of each row: a place that loads and stores becomes two rows."""
    repeats = np.array([len(sites) for sites in instrumented.places], dtype=np.int64)
    spread = np.repeat(np.arange(place.size), repeats[place]) if place.size else place
    table = np.full((len(instrumented.places), max(repeats, default=1)), -1, dtype=np.int64)
    for index, sites in enumerate(instrumented.places):
        table[index, : len(sites)] = sites
    found = table[place]
    return found[found >= 0], spread


@dataclass(frozen=True, slots=True)
class _Bases:
    """Where buffers begin, and which one each site touches."""

    starts: dict[int, dict[int, int]]
    instrumented: InstrumentedKernel
    owners: Mapping[int, str | None]
    numbers: Mapping[str, int]


def _relate(
    sites: _Integers, address: _Integers, group: _Integers, bases: _Bases
) -> tuple[_Integers, _Integers]:
    """Give each row's buffer, and its offset within."""
    buffer = np.full(sites.shape, _NO_BUFFER, dtype=np.int64)
    offset = address.copy()
    index_of = {name: index for index, name in enumerate(bases.instrumented.bases)}
    for site in np.unique(sites):
        owner = bases.owners.get(int(site))
        if owner is None or owner not in index_of:
            continue
        starts, rows = bases.starts[index_of[owner]], np.flatnonzero(sites == site)
        own = np.array([starts.get(number, -1) for number in group[rows].tolist()], dtype=np.int64)
        known = rows[own >= 0]
        buffer[known] = bases.numbers.get(owner, _NO_BUFFER)
        offset[known] = address[known] - own[own >= 0]
    return buffer, offset


def _count_repetitions(rows: _Integers, sites: _Integers) -> _Integers:
    """Count how often the work-item had executed the site before."""
    order = np.lexsort((np.arange(rows.size), sites, rows))
    sorted_rows, sorted_sites = rows[order], sites[order]
    is_new = np.ones(rows.size, dtype=bool)
    is_new[1:] = (sorted_rows[1:] != sorted_rows[:-1]) | (sorted_sites[1:] != sorted_sites[:-1])
    starts = np.maximum.accumulate(np.where(is_new, np.arange(rows.size), 0))
    numbers = np.empty(rows.size, dtype=np.int64)
    numbers[order] = np.arange(rows.size) - starts
    return numbers
