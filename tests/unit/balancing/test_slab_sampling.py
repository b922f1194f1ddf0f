"""Slabs that are sampled are done, and tell the speed early."""

from collections.abc import Sequence

import pytest

from kernelcast.balancing.messages import Sample
from kernelcast.balancing.slab_sampling import SlabLaunch, sample_slabs
from kernelcast.records.balance import SlabSpace
from kernelcast.records.ndrange import GroupBox, NDRange
from support.builders import make_description


class _Runner:
    """Takes 1 ms for each work-group."""

    def run(self, boxes: Sequence[GroupBox]) -> list[float]:
        """Give the times."""
        return [1e-3 * box.work_group_count for box in boxes]


def _sample(count: int, stops_after: int | None = None) -> tuple[SlabLaunch, list[float]]:
    space = SlabSpace(
        ndrange=NDRange(global_size=(8 * count,), local_size=(4,)), axis=0, thickness=2
    )
    hints: list[float] = []
    slabs = SlabLaunch(
        launch=_Runner(), space=space, device=make_description(), kernel_digest="0",
        tell=hints.append,
    )  # fmt: skip
    if stops_after is not None:
        slabs.is_stopped = lambda: len(slabs.spans) >= stops_after
    return slabs, hints


@pytest.mark.parametrize("count", [8, 50, 96, 1000])
def test_speed_of_even_work_is_found(count: int) -> None:
    """A slab of two work-groups takes 2 ms, whatever their number; no slab runs twice."""
    slabs, hints = _sample(count)
    found = sample_slabs(slabs, Sample(space=slabs.space, budget=0.02, seed=0))
    assert found.interval is not None
    assert found.interval.seconds == pytest.approx(2e-3 * count, rel=0.01)
    assert hints[0] == pytest.approx(500, rel=0.01)
    assert len(hints) <= 4
    slabs_run = [slab for first, stop in found.spans for slab in range(first, stop)]
    assert len(slabs_run) == len(set(slabs_run))


def test_few_slabs_are_not_sampled() -> None:
    """A handful is divided without."""
    slabs, _ = _sample(7)
    found = sample_slabs(slabs, Sample(space=slabs.space, budget=0.02, seed=0))
    assert found.spans == ()
    assert found.interval is None


def test_samples_end_when_told() -> None:
    """What has been run by then counts; there is no estimate."""
    slabs, _ = _sample(1000, stops_after=3)
    found = sample_slabs(slabs, Sample(space=slabs.space, budget=0.02, seed=0))
    assert len(found.spans) == 3
    assert found.interval is None
