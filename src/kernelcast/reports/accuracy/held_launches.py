"""Launches that a store holds, each once, beside what is known to have been predicted of them.

Two predictions need no model: the linear model's, which is stored with the samples, and the one
that observations of the same launch gave just before its newest one, as the tier ``history``
answers. A launch that was observed 100,000 times counts as one that was observed twice does.
"""

from collections.abc import Mapping, Sequence
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

MOST_LAUNCHES: Final = 1000
"""Launches of a kernel that are looked at, those that were measured last."""
MOST_TIMES: Final = 100
"""Times of each launch that its history is drawn of, the newest."""
# The newest one is answered from those before. 1,000 launches take 0.25 s so, and a lasting shift
# is seen after three to six.
_REPLAYED: Final = 12
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

    key: str
    kernel: str
    """``suite/application/kernel``, as far as they are known."""
    device_id: str
    """Where it ran."""
    changed: int
    """Grows from launch to launch as they change."""
    observations: int
    """How many were summed up."""
    seconds: float
    """Their median time of the whole launch."""
    noise: float | None
    """Half the 10-90 % spread of their times over the median; of a single one, its own."""
    when: datetime | None
    """When the newest was measured."""
    sampled_key: str | None
    """Key of the newest observation with samples."""
    linear_s: float | None
    """The linear model's time from these, in seconds."""
    remembered: Remembered | None
    """What history is worth here; None of a launch that was observed once."""
    shifted_at: datetime | None
    """When it became certain that the launch takes another time than before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchDetails:
    """Sizes of launches, and when they took how many seconds, by the launches' keys."""

    sizes: Mapping[str, tuple[int, ...]]
    times: Mapping[str, tuple[tuple[datetime, float], ...]]


def read_launch_details(store: Store, launches: Sequence[HeldLaunch]) -> LaunchDetails:
    """Read the sizes of launches and their newest times, oldest of them first."""
    keys = [one.key for one in launches]
    rows = read_newest_times(store, keys, _JUDGED, most=MOST_TIMES) if keys else []
    times: dict[str, list[tuple[datetime, float]]] = {}
    for row in rows:
        when = load_time(row.measured_at_us)
        if when is not None:
            times.setdefault(row.launch_key, []).append((when, row.seconds))
    return LaunchDetails(
        sizes=find_sizes(store, keys) if keys else {},
        times={key: tuple(own) for key, own in times.items()},
    )


def read_kernel_launches(store: Store, kernel: str) -> tuple[HeldLaunch, ...]:
    """Read the launches of a kernel, that were measured last first; it is named as they name it."""
    name = kernel.rpartition("/")[2]
    found = _read(store, list_newest(store, _JUDGED, kernel=name, most=MOST_LAUNCHES))
    return tuple(one for one in found if one.kernel == kernel)


def _read(store: Store, rows: Sequence[Any]) -> list[HeldLaunch]:
    """Read launches, in the order of their rows; those without observations that count are out."""
    keys = [one.launch_key for one in rows]
    if not keys:
        return []
    sums = {one.launch_key: one for one in sum_up_launches(store, keys, _JUDGED)}
    samples = {one.launch_key: one for one in find_newest_samples(store, keys, _JUDGED)}
    times = read_newest_times(store, keys, _JUDGED, most=_REPLAYED)
    replays = {key: _replay(list(own)) for key, own in groupby(times, lambda one: one.launch_key)}
    return [
        _describe(one, sums[one.launch_key], samples.get(one.launch_key), replays[one.launch_key])
        for one in rows
        if one.launch_key in sums and one.launch_key in replays
    ]


@dataclass(slots=True)
class _Replay:
    remembered: Remembered | None = None
    shifted_at: datetime | None = None


def _replay(rows: Sequence[Any]) -> _Replay:
    """Answer the newest observation of a launch from those before it."""
    history, found = LaunchHistory(), _Replay()
    for place, one in enumerate(rows, 1):
        when = load_time(one.measured_at_us)
        if place == len(rows) and (answer := history.answer(DEFAULT_COVERAGE)) is not None:
            found.remembered = Remembered(answer=answer, measured_s=one.seconds)
        noise = one.noise if one.run_count > 1 else None
        if history.add(Seen(seconds=one.seconds, noise=noise, when=when)).has_shifted:
            found.shifted_at = when
    return found


def _describe(launch: Any, sums: Any, sampled: Any, replay: _Replay) -> HeldLaunch:  # noqa: ANN401 - rows
    spread = (sums.high_s - sums.low_s) / 2 / sums.seconds
    return HeldLaunch(
        key=launch.launch_key,
        kernel="/".join(filter(None, (launch.suite, launch.application, launch.kernel))),
        device_id=launch.device_id,
        changed=launch.changed,
        observations=sums.observations,
        seconds=sums.seconds,
        noise=spread if sums.observations > 1 else sums.noise,
        when=load_time(sums.measured_at_us),
        sampled_key=None if sampled is None else sampled.key,
        linear_s=None if sampled is None or not sampled.linear_s > 0 else sampled.linear_s,
        remembered=replay.remembered,
        shifted_at=replay.shifted_at,
    )
