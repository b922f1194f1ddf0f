"""What may be used for an answer: what may run, which evidence and methods, how long."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kernelcast.launches.settings import DEFAULT_TIMEOUT_S, EstimateSettings
from kernelcast.records.errors import InputError, NoAnswerYetError
from kernelcast.records.explanation import Tier

BESIDE = ("two_point", "pooled_rate")
"""Methods that never answer themselves."""
METHODS = (*(one.value for one in Tier), *BESIDE)
"""Methods that need no name of their own in a registry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What an answer may be made of."""

    settings: EstimateSettings = field(default_factory=EstimateSettings)
    """Budget, coverage, seed; whether work-groups may run, and whether observations and learned
    models count."""
    methods: frozenset[str] | None = None
    """Which methods answer; None: all."""
    timeout_s: float = DEFAULT_TIMEOUT_S
    """Time limit of one sampling, in seconds."""
    spares_samples: bool = False
    """Whether a launch is sampled at fewer moments, or not at all, where other sizes of its kernel
    tell enough, though its answer is made anew."""

    def __post_init__(self) -> None:
        if self.methods is not None and not any(one.value in self.methods for one in Tier):
            raise InputError(
                f"methods {', '.join(sorted(self.methods)) or 'none'}: give at least one of "
                f"{', '.join(Tier)}, which the answer comes from"
            )

    def uses(self, method: str) -> bool:
        return self.methods is None or method in self.methods

    @property
    def models(self) -> tuple[str, ...]:
        """Other models of the registry that are wanted, by name."""
        return tuple(sorted((self.methods or frozenset()) - set(METHODS)))


BUSY = "waiting for another estimate on the device"
_LOOK_S = 0.05


class TimeLimit:
    """Counts the time that a caller waits, from now on."""

    def __init__(self, within_s: float, *, goes_on: bool = False) -> None:
        self.within_s, self.goes_on = within_s, goes_on
        self.ends_s = time.monotonic() + within_s
        self._stage = "describing the launch"
        self._is_stopped = False

    @property
    def left_s(self) -> float:
        return max(0.0, self.ends_s - time.monotonic())

    def stop(self) -> None:
        """End the work at its next step, whatever was asked for."""
        self._is_stopped = True

    def note(self, stage: str) -> None:
        is_over = self._is_stopped or not threading.main_thread().is_alive()
        if is_over or (not self.goes_on and not self.left_s):
            raise NoAnswerYetError(self.explain())
        self._stage = stage

    def explain(self) -> str:
        return f"{self.within_s:g} s were over at the stage: {self._stage}"


@contextmanager
def hold(
    lock: "threading.Lock | threading.RLock", limit: TimeLimit | None, stage: str
) -> Iterator[None]:
    """Hold a lock, for which no one waits longer than for the answer."""
    if limit is None:
        with lock:
            yield
        return
    wait_s = 0.0
    while not lock.acquire(timeout=wait_s):
        limit.note(stage)
        wait_s = _LOOK_S if limit.goes_on else min(_LOOK_S, limit.left_s)
    try:
        limit.note("beginning to sample")
        yield
    finally:
        lock.release()
