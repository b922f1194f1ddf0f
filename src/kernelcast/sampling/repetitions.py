"""Tells heavy work from a disturbed machine: a disturbance does not repeat, a heavy region does."""

from collections.abc import Sequence
from statistics import median

import numpy as np

from kernelcast.records.samples import PILOT_WINDOW, TimedLaunch
from kernelcast.sampling.evenness import rates_of
from kernelcast.sampling.sample_state import Sampling
from kernelcast.sampling.windows import position_of

_MOST_REPEATED = 3
# Share of all time spent, beyond what its work-groups usually take.
_GOOD_PART = 0.15


def is_heavy_again(sampling: Sampling, heavy: Sequence[TimedLaunch], most_s: float) -> bool:
    """Tell whether a slow place is slow again when its neighbours run.

    A picture whose work lies in a tenth of its area looks even to a survey in which one place is
    slow; a disturbed launch looks the same.
    """
    repeated = _repeat_beside(sampling, heavy[:_MOST_REPEATED])
    return bool((rates_of(repeated) > most_s).any())


def repeat_outliers(sampling: Sampling) -> None:
    """Repeat single launches that took a good part of what a moment of uneven work was given.

    Work that differs this much is rare, a core that was taken away for milliseconds is not. The
    neighbour goes into the mean of the window, so that neither is believed alone.
    """
    ours = sampling.timed[sampling.first :]
    timed = [one for one in ours if one.window != PILOT_WINDOW]
    if not timed:
        return
    times = np.array([one.duration_s for one in timed])
    usual_s = median(rates_of(timed)) * np.array([one.box.work_group_count for one in timed])
    excess = (times - usual_s) / times.sum()
    worst = np.argsort(excess)[::-1][:_MOST_REPEATED]
    _repeat_beside(sampling, [timed[index] for index in worst if excess[index] > _GOOD_PART])


def _repeat_beside(sampling: Sampling, launches: Sequence[TimedLaunch]) -> list[TimedLaunch]:
    """Run a neighbour of each launch, of the same size, as part of the same window; give them."""
    counts = sampling.launch.ndrange.group_counts
    places = [
        (one.window, position_of(one.box, counts) + one.box.work_group_count // 2)
        for one in launches
    ]
    repeated = []
    for one, place in zip(launches, places, strict=True):
        repeated += sampling.run_places(
            [place],
            one.box.work_group_count,
            is_warmed=not (sampling.is_slow or sampling.is_spread),
        )
    return repeated
