"""Turns counters and sites of the instrumented source into those of the compiled code.

Both name places in the source: a block of the code is executed as often as the innermost statement
or expression around it. Of a helper function that is called at several places the source counts all
calls together; each takes the same share.
"""

from bisect import bisect_left
from collections import Counter

import numpy as np

from kernelcast.expressions.accesses import AccessKind
from kernelcast.expressions.kernel_facts import ONCE
from kernelcast.features.analysis import Analysis
from kernelcast.records.software_counters import CounterSample


def translate_sample(analysis: Analysis, sample: CounterSample) -> CounterSample:
    """Give the counters that the facts name, of counters that the source counted."""
    facts, blocks = analysis.facts, analysis.blocks
    starts = _find_line_starts(analysis.tree.places.source)
    places = sorted(blocks.places)
    copies = Counter(facts.counter_places)
    counts = np.zeros((*sample.counts.shape[:2], facts.counter_count))
    counted = np.nan_to_num(sample.counts)
    for counter, where in enumerate(facts.counter_places):
        offset = _find_offset(starts, where)
        around = _find_innermost(places, offset)
        terms = blocks.blocks[blocks.places[around]].count.terms if around else ((ONCE, 1),)
        for one, factor in terms:
            number = 1.0 if one == ONCE else counted[..., one]
            counts[..., counter] += factor * number / copies[where]
    counts[~sample.is_present] = np.nan
    return CounterSample(
        work_groups=sample.work_groups, counts=counts, is_exact=(True,) * facts.counter_count,
        work_items=tuple(int(one) for one in sample.is_present.sum(axis=1)),
    )  # fmt: skip


def number_sites(analysis: Analysis) -> tuple[int, ...]:
    """Give the facts' number of each site of the source; those that no access has follow them."""
    facts = analysis.facts
    starts = _find_line_starts(analysis.tree.places.source)
    kinds = {access.site: access.kind for access in facts.accesses}
    spans: dict[bool, dict[tuple[int, int], int]] = {False: {}, True: {}}
    for site in analysis.blocks.sites:
        span = site.node.span
        if span is not None:
            spans[site.is_store][span.start, span.end] = site.id
    found: dict[int, int] = {}
    for number, where in enumerate(facts.site_places):
        own = spans[kinds.get(number, AccessKind.LOAD) is not AccessKind.LOAD]
        around = _find_innermost(sorted(own), _find_offset(starts, where))
        if around is not None:
            found.setdefault(own[around], number)
    return tuple(
        found.get(site.id, len(facts.site_places) + site.id) for site in analysis.blocks.sites
    )


def _find_line_starts(source: bytes) -> list[int]:
    return [0, *(place + 1 for place, one in enumerate(source) if one == ord("\n"))]


def _find_offset(starts: list[int], where: tuple[int, int]) -> int:
    line, column = where
    return starts[line - 1] + max(0, column - 1) if 0 < line <= len(starts) else -1


def _find_innermost(places: list[tuple[int, int]], offset: int) -> tuple[int, int] | None:
    """Find the shortest of some ranges, in order, around a byte."""
    ahead = places[: bisect_left(places, (offset + 1, 0))]
    around = [one for one in ahead if offset < one[1]]
    return min(around, key=lambda one: one[1] - one[0], default=None)
