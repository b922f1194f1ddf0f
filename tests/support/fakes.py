"""A device that exists only as a formula, so that sampling can be judged against the truth."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcast.records.contention import Contention
from kernelcast.records.device import DeviceDescription, SaturationPoint, Trait, TraitSource
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.samples import SampleRun
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.sampler import PreparedLaunch, Sampler
from kernelcast.sampling.warmed_windows import WarmedSampler
from support.builders import make_description

Coordinates: TypeAlias = tuple[npt.NDArray[np.int64], ...]
"""Work-group numbers per dimension, each of the shape of a box."""
Cost: TypeAlias = Callable[[Coordinates], npt.ArrayLike]
"""Device time in seconds that each work-group of these coordinates adds to a launch."""

_CONCURRENCY = 2
_FEWEST_TO_SPARE_ONE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """What keeps a device from taking the same time twice."""

    noise: float = 0.0
    """Relative standard deviation of each launch's time, log-normal."""
    spike_share: float = 0.0
    """Share of launches that are hit by a spike."""
    spike_factor: float = 3.0
    """How many times as long a launch takes that is hit."""
    hidden_overhead_s: float = 0.0
    """What every launch costs on top of what it is said to cost, in seconds."""
    seed: int = 0


class SyntheticLaunch:
    """A `PreparedLaunch` that takes ``launch_overhead_s + sum(cost)``, whole runs as well."""

    def __init__(
        self,
        ndrange: NDRange,
        cost: Cost | float,
        *,
        launch_overhead_s: float = 2e-6,
        disturbance: Disturbance | None = None,
    ) -> None:
        self.ndrange = ndrange
        self.launch_overhead_s = launch_overhead_s
        self.device: DeviceDescription = make_description(compute_units=_CONCURRENCY)
        self.saturation = SaturationPoint(
            p_sat=Trait(value=1, source=TraitSource.MEASURED),
            concurrency=_CONCURRENCY,
            measured=1,
        )
        self.asked: list[GroupBox] = []
        self._cost = cost
        self._disturbance = disturbance or Disturbance()
        self._rng = np.random.default_rng(self._disturbance.seed)

    @property
    def true_s(self) -> float:
        """Undisturbed time of the whole launch, in seconds."""
        counts = self.ndrange.group_counts
        return self._undisturbed_s(GroupBox(start=(0,) * len(counts), shape=counts))

    def warm_up(self, box: GroupBox) -> None:
        """Take the box: what warmed up is warm; where there are few, it must be timed too."""
        if self.ndrange.work_group_count >= _FEWEST_TO_SPARE_ONE:
            self._take([box])

    def settle(self, *, keeps_contents: bool = False) -> None:
        """Do nothing: a formula runs at its usual rate."""

    def time_boxes(self, boxes: Sequence[GroupBox]) -> list[float]:
        """Compute the time of each box."""
        self._take(boxes)
        return [self._disturb(self._undisturbed_s(box)) for box in boxes]

    def measure_contention(self) -> Contention | None:
        """Give none: nothing else runs in a formula."""
        return None

    def time_whole(self, begin: Callable[[], object] = lambda: None) -> float:
        """Compute the time of the whole launch."""
        begin()
        return self._disturb(self.true_s)

    def _take(self, boxes: Sequence[GroupBox]) -> None:
        for box in boxes:
            self.ndrange.work_items_of(box)
        for index, box in enumerate(boxes):
            for other in (*self.asked, *boxes[:index]):  # its data would be in the cache
                assert not box.overlaps(other), f"{box} shares work-groups with {other}"
        self.asked += boxes

    def _undisturbed_s(self, box: GroupBox) -> float:
        fixed_s = self.launch_overhead_s + self._disturbance.hidden_overhead_s
        if not callable(self._cost):  # whatever the size of the box
            return fixed_s + self._cost * box.work_group_count
        inside = np.indices(box.shape, dtype=np.int64)
        at = tuple(axis + first for axis, first in zip(inside, box.start, strict=True))
        costs = np.broadcast_to(np.asarray(self._cost(at), dtype=float), box.shape)
        return fixed_s + float(costs.sum())

    def _disturb(self, duration_s: float) -> float:
        spiked = self._rng.random() < self._disturbance.spike_share
        factor = float(np.exp(self._rng.normal(0.0, self._disturbance.noise)))
        return duration_s * factor * (self._disturbance.spike_factor if spiked else 1.0)


def sample(
    launch: PreparedLaunch,
    plan: SamplingPlan,
    make: Callable[[PreparedLaunch, SamplingPlan], Sampler | WarmedSampler] = Sampler,
) -> SampleRun:
    """Time a few work-groups of a launch in one moment."""
    run = make(launch, plan).take_moment()
    assert run is not None
    return run
