"""Judges observations as they come, by what is known of their launches just then.

The verdict is stored as a flag: a process that does not know the samples that an observation
contradicted still knows that it did. Answers judge anew, by all that is known when they are made.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from cachetools import TTLCache

from kernelcast.predictor.answering.launch_history import LaunchHistory, Seen
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.observation import Observation, ObservationFlag

_MOST: Final = 4096
# Others observe the same launches, and estimate them.
_STANDS_S: Final = 5.0
_KEPT_APART: Final = frozenset({ObservationFlag.FIRST_LAUNCH, ObservationFlag.CONTAMINATED})


class Judge:
    """Judges observations; not for several threads at once."""

    def __init__(self, recall: Callable[[LaunchIdentity], LaunchHistory]) -> None:
        self._recall = recall
        self._known: TTLCache[str, LaunchHistory] = TTLCache(_MOST, _STANDS_S)

    def judge(self, one: Observation) -> tuple[Observation, str]:
        """Flag an observation that contradicts what is known; say what it contradicts."""
        if one.flags & _KEPT_APART:
            return one, ""
        history = self._known.get(one.launch.key)
        if history is None:
            history = self._known[one.launch.key] = self._recall(one.launch)
        if history.agrees_with(one.seconds):  # nearly all: need not be learned from here
            return one, ""
        verdict = history.add(
            Seen(key=one.key, seconds=one.seconds, noise=one.runs.noise, when=one.measured_at)
        )
        if not verdict.doubt:
            return one, ""
        return replace(one, flags=one.flags | {ObservationFlag.DOUBTED}), verdict.doubt

    def forget(self) -> None:
        """Forget what was observed, since some of it was removed."""
        self._known.clear()
