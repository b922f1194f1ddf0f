"""Takes observed times: each is judged at once, and written beside the program."""

import itertools
import math
import threading
import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import Final

from kernelcast.predictor.answering.launch_history import Seen
from kernelcast.predictor.answering.memory import Memory
from kernelcast.predictor.answering.writer import ObservationWriter
from kernelcast.predictor.answers import Answers
from kernelcast.records.errors import InputError
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.observation import Observation, ObservationFlag, Origin
from kernelcast.records.observed_times import MachineState, RunTimes
from kernelcast.sampling.machine_state import read_load
from kernelcast.sampling.plan import SAMPLER

_MOST: Final = 100_000


class Observer:
    """Takes observed times, which change answers and are kept in memory; threads share one."""

    def __init__(self, answers: Answers, memory: Memory) -> None:
        self._answers = answers
        self._writer = ObservationWriter(lambda: memory.open(may_create=True))
        self._run, self._number = uuid.uuid4().hex, itertools.count()
        self._lock = threading.Lock()
        self._started: set[tuple[str, tuple[int, ...], str]] = set()
        self._keys: dict[str, None] = {}
        self.flush, self.close = self._writer.flush, self._writer.close

    def observe(
        self,
        identity: LaunchIdentity,
        measured_s: float,
        *,
        is_first: bool | None,
        key: str,
        slowdown: float | None,
    ) -> frozenset[ObservationFlag]:
        """Judge an observation and keep it; see `kernelcast.Predictor.observe`."""
        if not 0 < measured_s < math.inf:
            msg = f"measured time {measured_s} s: give positive seconds"
            raise InputError(msg)
        if slowdown is not None and not 1 <= slowdown < math.inf:
            msg = f"slowdown {slowdown}: give how many times as long as alone it took, at least 1"
            raise InputError(msg)
        if key and not self._take_key(key):
            return frozenset()
        is_new = self._is_first(identity)
        if slowdown is None:
            alone_s = self._find_alone(identity.device.id, float(measured_s))
        else:
            alone_s = float(measured_s) / slowdown
        slowdown = float(measured_s) / alone_s
        one = Observation(
            launch=identity,
            runs=RunTimes(median_s=alone_s, durations_s=(alone_s,)),
            origin=Origin.OBSERVED,
            measurement=key or f"{self._run}-{next(self._number)}",
            machine_state=MachineState(
                load=read_load(), slowdown=slowdown if slowdown > 1 else None
            ),
            versions=_list_versions(),
            measured_at=datetime.now(UTC),
        )
        seen = Seen(
            key=one.key,
            seconds=one.seconds,
            when=one.measured_at,
            is_first=is_new if is_first is None else is_first,
        )
        flags = self._answers.take(identity, seen)
        self._writer.add(replace(one, flags=flags))
        return flags

    def _find_alone(self, device_id: str, seconds: float) -> float:
        """Measure what a launch that has just ended would have taken alone."""
        meter = self._answers.meter
        seen = None if meter is None else meter.judge_run(device_id, seconds)
        return seen.find_alone(seconds) if seen is not None and seen.is_noticeable else seconds

    def _is_first(self, identity: LaunchIdentity) -> bool:
        """Tell whether a kernel's launches with this local size begin with this one."""
        local = identity.ndrange.local_size if identity.ndrange else None
        name = (identity.kernel.digest, local or (), identity.device.id)
        with self._lock:
            if name in self._started:
                return False
            if len(self._started) >= _MOST:
                self._started.clear()
            self._started.add(name)
            return True

    def _take_key(self, key: str) -> bool:
        """Remember a key; tell whether it is new."""
        with self._lock:
            if key in self._keys:
                return False
            self._keys[key] = None
            if len(self._keys) > _MOST:
                del self._keys[next(iter(self._keys))]
            return True


@cache
def _list_versions() -> Mapping[str, str]:
    return {"kernelcast": version("kernelcast"), "sampler": str(SAMPLER)}
