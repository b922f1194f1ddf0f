"""Reads the log of a counting copy: who touched what, relative to which buffer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.records.instrumented_kernel import InstrumentedKernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.recorded_addresses import RecordedAddresses
from kernelcast.sampling.counting import CountedBox, place_work_items

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
    owners : mapping of int to str or None
        The buffer that each site touches, where the source tells.

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
    used = np.minimum(counted.counts[instrumented.counter_count], counted.log.shape[1])
    rows = np.repeat(np.arange(used.size), used)
    # Rows of the log are long and few: to copy their beginnings beats any index.
    log = np.concatenate([own[:count] for own, count in zip(counted.log, used, strict=True)])
    place, address = log[:, 0].astype(np.int64), log[:, 1].astype(np.int64)
    recorded = np.flatnonzero(place >= len(instrumented.places))
    bases = _find_bases(
        np.unique(groups),
        place[recorded] - len(instrumented.places),
        groups[rows[recorded]],
        address[recorded],
        count=len(instrumented.bases),
    )
    accesses = np.flatnonzero(place < len(instrumented.places))
    touched = _list_sites(instrumented, owners)
    which, spread = touched.find(place[accesses])
    accesses = accesses[spread]
    rows, address = rows[accesses], address[accesses]
    group, sites, base = groups[rows], touched.sites[which], touched.bases[which]
    begin = bases.find(base, group)
    is_known = begin >= 0
    numbers = [buffer_numbers.get(name, _NO_BUFFER) for name in instrumented.bases]
    buffer = np.array([*numbers, _NO_BUFFER], dtype=np.int64)[base]
    return (
        sites,
        group,
        items[rows],
        _count_repetitions(rows, sites),
        np.where(is_known, buffer, _NO_BUFFER),
        np.where(is_known, address - begin, address),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Bases:
    """Where buffers and arrays begin in each work-group: local memory lies elsewhere in each.

    `starts`, shape (bases + 1, work-groups), holds the first address that was written down, -1
    where none was; its last row stands for a buffer whose base is not known.
    """

    groups: _Integers
    starts: _Integers

    def find(self, base: _Integers, group: _Integers) -> _Integers:
        """Give the address of the base of each access."""
        if self.groups.size == 1:
            return self.starts[:, 0][base]
        found: _Integers = self.starts[base, np.searchsorted(self.groups, group)]
        return found


def _find_bases(
    known: _Integers, base: _Integers, group: _Integers, address: _Integers, *, count: int
) -> _Bases:
    """Give where bases begin, of what was written down of them, in the order of the log.

    Parameters
    ----------
    known : ndarray of int64, shape (work-groups,)
        Numbers of the work-groups, ascending.
    base, group, address : ndarray of int64, shape (n,)
        Base and work-group of each entry, and what it says.
    """
    starts = np.full((count + 1, known.size), -1, dtype=np.int64)
    backwards = np.flatnonzero(base < count)[::-1]  # of several entries the last one stays
    where = np.searchsorted(known, group[backwards])
    starts[base[backwards], where] = address[backwards]
    return _Bases(known, starts)


@dataclass(frozen=True, slots=True, eq=False)
class _Sites:
    """Sites of all places, one after the other, each with the base of the buffer it touches.

    A place that loads and stores has two; sites of place `p` begin at ``first[p]``.
    """

    sites: _Integers
    bases: _Integers
    first: _Integers
    counts: _Integers

    def find(self, place: _Integers) -> tuple[_Integers, _Integers]:
        """Give the sites of each access, and which access each of them is of."""
        if (self.counts == 1).all():
            return place, np.arange(place.size)
        counts = self.counts[place]
        spread = np.repeat(np.arange(place.size), counts)
        before = np.cumsum(counts) - counts
        return self.first[place][spread] + np.arange(spread.size) - before[spread], spread


def _list_sites(instrumented: InstrumentedKernel, owners: Mapping[int, str | None]) -> _Sites:
    index_of = {name: index for index, name in enumerate(instrumented.bases)}
    sites = [site for place in instrumented.places for site in place]
    bases = [index_of.get(owners.get(site) or "", len(index_of)) for site in sites]
    counts = np.array([len(place) for place in instrumented.places], dtype=np.int64)
    return _Sites(
        np.array(sites, dtype=np.int64),
        np.array(bases, dtype=np.int64),
        np.cumsum(counts) - counts,
        counts,
    )


def _count_repetitions(rows: _Integers, sites: _Integers) -> _Integers:
    """Count how often the work-item had executed the site before; `rows` ascend."""
    # NumPy sorts short integers by their digits, which is many times faster.
    is_short = int(sites.max(initial=0)) <= np.iinfo(np.uint16).max
    order = np.argsort(sites.astype(np.uint16) if is_short else sites, kind="stable")
    sorted_rows, sorted_sites = rows[order], sites[order]
    is_new = np.ones(rows.size, dtype=bool)
    is_new[1:] = (sorted_rows[1:] != sorted_rows[:-1]) | (sorted_sites[1:] != sorted_sites[:-1])
    starts = np.flatnonzero(is_new)
    numbers = np.empty(rows.size, dtype=np.int64)
    numbers[order] = np.arange(rows.size) - np.repeat(starts, np.diff(starts, append=rows.size))
    return numbers
