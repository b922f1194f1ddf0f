"""Launches that a store holds, each once, beside what is known to have been predicted of them.

Two predictions need no model: the linear model's, which is stored with the samples, and the one
that observations of the same launch gave just before its newest one, as the tier ``history``
answers. A launch that was observed 100,000 times counts as one that was observed twice does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, Final

from kernelcast.predictor.answering.launch_history import LaunchHistory, Seen
from kernelcast.records.contention import DEFAULT_COVERAGE
from kernelcast.records.estimates import Interval
from kernelcast.records.observation import ObservationFlag, Origin
from kernelcast.training_data.store import Selection, Store
from kernelcast.training_data.store.launches import (
    find_newest_samples,
    find_sizes,
    list_newest,
    read_newest_times,
    sum_up_launches,
)
from kernelcast.training_data.store.schema import load_time

# A first launch holds compilation, a busy machine's times hold other people's work; imported rows
# are of other machines.
_JUDGED: Final = Selection(
    origins=(Origin.COLLECTED, Origin.OBSERVED),
    without_flags=frozenset(
        {ObservationFlag.FIRST_LAUNCH, ObservationFlag.CONTAMINATED, ObservationFlag.DOUBTED}
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What observations of a launch gave just before its newest one."""

    answer: Interval
    measured_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLaunch:
    """A launch and what its newest observations say."""

    kernel: str
    """``suite/application/kernel``, as far as they are known."""
    device_id: str
    global_size: tuple[int, ...] | None
    observations: int
    """How many were summed up."""
    seconds: float
    """Their median time of the whole launch."""
    noise: float | None
    """Half the 10-90 % spread of their times over the median; of a single one, its own."""
    when: datetime | None
    """When the newest was measured."""
    linear_s: float | None
    """The linear model's time from the newest samples, in seconds."""
    times: Sequence[tuple[datetime, float]]
    """When its newest observations took how many seconds, oldest of them first."""
    remembered: Remembered | None
    """What history is worth here; None of a launch that was observed once."""
    shifted_at: datetime | None
    """When it became certain that the launch takes another time than before."""


def read_kernel_launches(store: Store, kernel: str) -> tuple[HeldLaunch, ...]:
    """Read the launches of a kernel, that were measured last first; it is named as they name it."""
    name = kernel.rpartition("/")[2]
    # Those that were measured last are looked at.
    found = _read(store, list_newest(store, _JUDGED, kernel=name, most=1000))
    return tuple(one for one in found if one.kernel == kernel)


def _read(store: Store, rows: Sequence[Any]) -> list[HeldLaunch]:
    """Read launches, in the order of their rows; those without observations that count are out."""
    keys = [one.launch_key for one in rows]
    if not keys:
        return []
    sums = {one.launch_key: one for one in sum_up_launches(store, keys, _JUDGED)}
    samples = {one.launch_key: one.linear_s for one in find_newest_samples(store, keys, _JUDGED)}
    # The history of each launch is drawn of its newest times.
    newest = read_newest_times(store, keys, _JUDGED, most=100)
    times = {key: list(own) for key, own in groupby(newest, lambda one: one.launch_key)}
    sizes = find_sizes(store, keys)
    found = []
    for launch in rows:
        key = launch.launch_key
        if key not in sums or key not in times:
            continue
        held, linear_s = sums[key], samples.get(key) or 0.0
        # The newest one is answered from those before. 1,000 launches take 0.25 s so, and a lasting
        # shift is seen after three to six.
        remembered, shifted_at = _replay(times[key][-12:])
        found.append(HeldLaunch(
            kernel="/".join(filter(None, (launch.suite, launch.application, launch.kernel))),
            device_id=launch.device_id,
            global_size=sizes.get(key),
            observations=held.observations,
            seconds=held.seconds,
            noise=(held.high_s - held.low_s) / 2 / held.seconds
            if held.observations > 1 else held.noise,
            when=load_time(held.measured_at_us),
            linear_s=linear_s if linear_s > 0 else None,
            times=[
                (when, one.seconds) for one in times[key] if (when := load_time(one.measured_at_us))
            ],
            remembered=remembered,
            shifted_at=shifted_at,
        ))  # fmt: skip
    return found


def _replay(rows: Sequence[Any]) -> tuple[Remembered | None, datetime | None]:
    """Answer the newest observation of a launch from those before it; tell when times shifted."""
    history, remembered, shifted_at = LaunchHistory(), None, None
    for place, one in enumerate(rows, 1):
        when = load_time(one.measured_at_us)
        if place == len(rows) and (answer := history.answer(DEFAULT_COVERAGE)) is not None:
            remembered = Remembered(answer=answer, measured_s=one.seconds)
        noise = one.noise if one.run_count > 1 else None
        if history.add(Seen(seconds=one.seconds, noise=noise, when=when)).has_shifted:
            shifted_at = when
    return remembered, shifted_at
