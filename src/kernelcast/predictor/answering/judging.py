"""Judges observations as they come, by what is known of their launches just then.

The verdict is stored as a flag: a process that does not know the samples that an observation
contradicted still knows that it did. Answers judge anew, by all that is known when they are made.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from kernelcast.predictor.answering.launch_history import LaunchHistory, Seen
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.observation import Observation, ObservationFlag

_MOST: Final = 4096
# Others observe the same launches, and estimate them.
_STANDS_S: Final = 5.0
_KEPT_APART: Final = frozenset({ObservationFlag.FIRST_LAUNCH, ObservationFlag.CONTAMINATED})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What is known of a launch for a while; `believed` holds keys of what agreed with it."""

    history: LaunchHistory
    ends_s: float
    believed: set[str] = field(default_factory=set)


class Judge:
    """Judges observations; not for several threads at once.

    Parameters
    ----------
    recall : callable
        Gives what is known of a launch.
    """

    def __init__(self, recall: Callable[[LaunchIdentity], LaunchHistory]) -> None:
        self._recall = recall
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def judge(self, one: Observation) -> tuple[Observation, str]:
        """Flag an observation that contradicts what is known; say what it contradicts.

        Raises
        ------
        KernelcastError
            If the store cannot be read.
        """
        if one.flags & _KEPT_APART:
            return one, ""
        known = self._find(one.launch)
        if one.key in known.believed:
            return one, ""
        if known.history.agrees_with(one.seconds):  # nearly all: need not be learned from here
            known.believed.add(one.key)
            return one, ""
        verdict = known.history.add(
            Seen(
                key=one.key,
                seconds=one.seconds,
                noise=one.runs.noise,
                when=one.measured_at,
            )
        )
        if not verdict.doubt:
            return one, ""
        return replace(one, flags=one.flags | {ObservationFlag.DOUBTED}), verdict.doubt

    def forget(self) -> None:
        """Forget what was observed, since some of it was removed."""
        self._known.clear()

    def _find(self, launch: LaunchIdentity) -> _Known:
        now_s = time.monotonic()
        found = self._known.get(launch.key)
        if found is not None and now_s < found.ends_s:
            return found
        found = _Known(history=self._recall(launch), ends_s=now_s + _STANDS_S)
        self._known[launch.key] = found
        self._known.move_to_end(launch.key)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        return found
