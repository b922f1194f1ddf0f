"""Observations that a store holds, beside what is known to have been predicted of them.

Two predictions need no model: the linear model's, which is stored with the samples, and the one
that observations of the same launch would have given just before. The latter is replayed: every
observation is answered from those before it, as the tier ``history`` answers, and added then.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from kernelcast.predictor.answering.launch_history import LaunchHistory, Seen
from kernelcast.predictor.data_store import open_data_store
from kernelcast.records.estimates import Interval
from kernelcast.records.observation import ObservationFlag, Origin
from kernelcast.training_data.store import Selection
from kernelcast.training_data.store.newest import read_newest
from kernelcast.training_data.store.plain import load_flags, load_time

MOST_ROWS: Final = 5000
"""Observations that are looked at, the newest ones."""
_COVERAGE: Final = 0.9
_COLUMNS: Final = (
    "key", "launch_key", "kernel", "application", "suite", "device_id", "origin", "flags",
    "seconds", "noise", "run_count", "linear_s", "measured_at_us",
)  # fmt: skip
# A first launch holds compilation, a busy machine's times hold other people's work.
_NOT_JUDGED: Final = frozenset({ObservationFlag.FIRST_LAUNCH, ObservationFlag.CONTAMINATED})


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRow:
    """An observation.

    Parameters
    ----------
    key : str
        Its key in the store.
    kernel : str
        ``suite/application/kernel``, as far as they are known.
    device_id : str
        Where it ran.
    seconds : float
        Measured time of the whole launch.
    noise : float or None
        Half the 10-90 % spread over the median of several runs.
    when : datetime or None
        When it was measured.
    linear_s : float or None
        The linear model's time, in seconds, from samples of this launch.
    remembered : Interval or None
        What observations of the same launch gave just before this one.
    has_shifted : bool
        Whether this one made certain that the launch takes another time than before.
    """

    key: str
    kernel: str
    device_id: str
    seconds: float
    noise: float | None
    when: datetime | None
    linear_s: float | None
    remembered: Interval | None
    has_shifted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRows:
    """Observations of a store.

    Parameters
    ----------
    rows : tuple of HeldRow
        The newest that can be judged, oldest first: no first launches, none of busy machines.
    total : int
        All that the store holds.
    devices : tuple of str
        Ids of the devices of `rows`, sorted.
    """

    rows: tuple[HeldRow, ...]
    total: int
    devices: tuple[str, ...]


def read_held_rows(database: str, *, most: int = MOST_ROWS) -> HeldRows:
    """Read what a store holds.

    Parameters
    ----------
    database : str
        The store.
    most : int
        Observations to look at, the newest ones.

    Raises
    ------
    StoreError
        If the store does not answer.
    """
    wanted = Selection(origins=(Origin.COLLECTED, Origin.OBSERVED))
    with open_data_store(database) as store:
        found = read_newest(store, _COLUMNS, wanted=wanted, most=most)
        total = store.count(wanted)
    rows = tuple(_replay(found))
    return HeldRows(rows=rows, total=total, devices=tuple(sorted({one.device_id for one in rows})))


def _replay(found: Sequence[dict[str, Any]]) -> list[HeldRow]:
    """Answer every observation from those of its launch before it."""
    histories: dict[str, LaunchHistory] = {}
    rows = []
    for one in found:
        if load_flags(one["flags"]) & _NOT_JUDGED:
            continue
        when = load_time(one["measured_at_us"])
        noise = one["noise"] if one["run_count"] > 1 else None
        history = histories.setdefault(one["launch_key"], LaunchHistory())
        remembered = history.answer(_COVERAGE)
        verdict = history.add(Seen(seconds=one["seconds"], noise=noise, when=when))
        rows.append(
            HeldRow(
                key=one["key"],
                kernel="/".join(filter(None, (one["suite"], one["application"], one["kernel"]))),
                device_id=one["device_id"],
                seconds=one["seconds"],
                noise=noise,
                when=when,
                linear_s=one["linear_s"],
                remembered=remembered,
                has_shifted=verdict.has_shifted,
            )
        )
    return rows
