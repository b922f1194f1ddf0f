"""How much to sample, and where in the index space: no device is needed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import GroupBox

DEFAULT_BUDGET = 0.05
"""Share of the predicted time that sampling may take unless another is asked for."""
SAMPLER = 6
"""Revision of how launches are sampled, kept with observations; models refuse samples of revisions
that they have not learned from. 1: windows anywhere; 2: rows of tiles, places by counted work (ADR
0016 to 0019), compiled as the whole (ADR 0004); 3: pages read before (ADR 0020); 4: two moments
(ADR 0032), pairs of warmed windows on GPUs (ADR 0039); 5: slabs (ADR 0042); 6: one slab
and a shorter one, kernels told what they lack (ADR 0042), threads' own clocks (ADR 0045)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingPlan:
    budget: float = DEFAULT_BUDGET
    """Share of the predicted time; short launches get a millisecond or two, half of it at most."""
    min_launch_s: float = 100e-6
    """Below which a launch is mostly noise."""
    moments: int = 1
    seed: int = 0
    is_known_even: bool = False
    """Whether all work-groups, or those at the places, are known to do the same."""
    places: tuple[float, ...] = ()
    """Where to sample, as shares of the work-groups in order; anywhere if there are none."""
    place_weight: float = 1.0
    """Work of the work-groups there, over that of the mean work-group."""

    def __post_init__(self) -> None:
        if not 0 < self.budget <= 1:
            msg = f"budget {self.budget}: give a share of the predicted time, above 0, at most 1"
            raise InputError(msg)


GOLDEN = (math.sqrt(5) - 1) / 2
"""The golden ratio's fraction: multiples of it fall nowhere twice near the same place."""


def box_near(position: int, work_groups: int, group_counts: Sequence[int]) -> GroupBox:
    """Give a box of about so many work-groups that follow each other in dispatch order, moved as
    far as needed to stay inside: a piece of a row, whole rows or whole planes."""
    counts = tuple(group_counts)
    shape, row = [1] * len(counts), 1
    for axis, count in enumerate(counts):
        if work_groups < row * count or axis == len(counts) - 1:
            shape[axis] = min(count, max(1, round(work_groups / row)))
            break
        shape[axis] = count
        row *= count
    place = map(int, np.unravel_index(position % math.prod(counts), counts, order="F"))
    start = tuple(
        max(0, min(p, count - n)) for p, n, count in zip(place, shape, counts, strict=True)
    )
    return GroupBox(start=start, shape=tuple(shape))


def find_free_box(
    position: int, work_groups: int, group_counts: Sequence[int], taken: Sequence[GroupBox]
) -> GroupBox | None:
    """Give the nearest box that shares no work-group with those taken; None if there is none."""
    total = math.prod(group_counts)
    step = max(box_near(position, work_groups, group_counts).work_group_count, work_groups)
    for ring in range(min(-(-total // step), 2048) + 1):
        for candidate in dict.fromkeys((position + ring * step, position - ring * step)):
            if 0 <= candidate < total:
                box = box_near(candidate, work_groups, group_counts)
                if not any(box.overlaps(other) for other in taken):
                    return box
    return None


def cut_slab(box: GroupBox, grain: int) -> tuple[GroupBox, ...]:
    """Cut a box along its slowest dimension into a warm-up, a slab of three times its length, and
    one as long as the warm-up; what has fewer than five grains, of the work-groups that run at
    once, into a warm-up and a slab, or not at all: three work-groups on two threads take as long as
    four."""
    axis = max((axis for axis, extent in enumerate(box.shape) if extent > 1), default=0)
    extent = box.shape[axis]
    grain //= math.gcd(grain, box.work_group_count // extent)
    grains = extent // grain
    fifth = max(1, round(grains / 5)) * grain
    edges = [0, extent]
    if grains >= 2:
        edges[1:1] = [fifth] if grains < 5 else [fifth, extent - fifth]
    parts = []
    for begin, end in pairwise(edges):
        start, shape = [*box.start], [*box.shape]
        start[axis] += begin
        shape[axis] = end - begin
        parts.append(GroupBox(start=tuple(start), shape=tuple(shape)))
    return tuple(parts)


def spread_positions(windows: int, group_counts: Sequence[int], *, shift: int) -> list[int]:
    """Give one place per stratum of the last dimension, in the others by the golden ratio's
    recurrence or its two-dimensional relative's; places scatter around the strata's middle, so that
    work that grows linearly is summed without error."""
    counts = [int(count) for count in group_counts]
    last = max((axis for axis, count in enumerate(counts) if count > 1), default=0)
    steps = np.arange(windows) + shift
    places = (0.5 + steps * GOLDEN) % 1.0
    if windows > 1:  # a single one has no others to be balanced with
        places = 0.5 + (places - places.mean()) * 0.8
    places = np.clip(places, 0.02, 0.98)
    coordinates = [np.zeros(windows, dtype=int) for _ in counts]
    coordinates[last] = ((np.arange(windows) + places) / windows * counts[last]).astype(int)
    for axis in range(last):
        # Inverse of the plastic number: the golden ratio's relative for two dimensions.
        alpha = GOLDEN if last == 1 else 0.7548776662466927 ** (axis + 1)
        coordinates[axis] = ((0.5 + steps * alpha) % 1.0 * counts[axis]).astype(int)
    return [int(one) for one in np.ravel_multi_index(coordinates, counts, order="F")]


def position_of(box: GroupBox, group_counts: Sequence[int]) -> int:
    return int(np.ravel_multi_index(box.start, tuple(group_counts), order="F"))
