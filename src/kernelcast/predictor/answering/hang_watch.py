"""Notices that a sampled launch hangs long before the time limit, where something speaks for it.

A launch that takes long need not hang: without evidence only the time limit ends it. Evidence is a
loop that waits for other work-groups, or earlier launches of the same kernel that were over in no
time.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from typing import Final, Self

from kernelcast.features.analysis import analyse
from kernelcast.features.wait_loops import find_wait_loop
from kernelcast.records.contention import Contention
from kernelcast.records.errors import EstimateTimeoutError, InputError, KernelcastError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox
from kernelcast.sampling.backend import PreparedLaunch

GiveUp = Callable[[KernelcastError], None]
"""Ends the process, with an error as its answer."""

_LEAST_S: Final = 10.0
"""What any launch may take. Samples are made to last some milliseconds."""
_TIMES: Final = 1000.0
"""How many times as long as the longest before it a launch may take, beyond that."""
_LOOK_S: Final = 1.0


class HangWatch:
    """Looks once a second whether a launch takes longer than it can."""

    def __init__(self, kernel: Kernel, device_id: str, give_up: GiveUp) -> None:
        self._device_id = device_id
        self._give_up = give_up
        self._waits = _find_wait(kernel)
        self._longest_s: float | None = None
        self._begun_s: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    @contextmanager
    def launching(self) -> Iterator[None]:
        started_s = self._begun_s = time.monotonic()
        try:
            yield
        finally:
            self._begun_s = None
            self._longest_s = max(self._longest_s or 0.0, time.monotonic() - started_s)

    def find_limit(self) -> tuple[float, str] | None:
        """Say what the next launch may take, in seconds, and why; None without evidence."""
        if self._waits:
            return _LEAST_S, f"{self._waits}, and it may wait for ever"
        if self._longest_s is None:
            return None
        limit_s = _LEAST_S + _TIMES * self._longest_s
        return limit_s, f"none before it took longer than {self._longest_s:.2g} s"

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_S):
            begun_s, limit = self._begun_s, self.find_limit()
            if begun_s is None or limit is None or time.monotonic() - begun_s < limit[0]:
                continue
            msg = (
                f"{self._device_id}: a launch of some sampled work-groups has not ended within "
                f"{limit[0]:.3g} s: {limit[1]}. Its process was stopped"
            )
            self._give_up(EstimateTimeoutError(msg))
            return


class WatchedLaunch:
    """A `PreparedLaunch` that is watched while its work-groups run."""

    def __init__(
        self, launch: PreparedLaunch, watch: HangWatch | None, check: Callable[[], None]
    ) -> None:
        self._launch, self._check = launch, check
        self._launching = nullcontext if watch is None else watch.launching
        self.kernel_digest = launch.kernel_digest
        self.device = launch.device
        self.ndrange = launch.ndrange
        self.saturation = launch.saturation
        self.launch_overhead_s = launch.launch_overhead_s

    def warm_up(self, box: GroupBox) -> None:
        self._check()
        with self._launching():
            self._launch.warm_up(box)

    def settle(self, *, keeps_contents: bool = False) -> None:
        """Settle the real device."""
        self._check()
        self._launch.settle(keeps_contents=keeps_contents)

    def time_boxes(self, boxes: Sequence[GroupBox]) -> list[float]:
        self._check()
        with self._launching():
            return self._launch.time_boxes(boxes)

    def measure_contention(self) -> Contention | None:
        """Ask the real device."""
        return self._launch.measure_contention()

    def time_whole(self) -> float:
        """Time the whole launch, which may take as long as it does."""
        return self._launch.time_whole()


@lru_cache(maxsize=64)
def _find_wait(kernel: Kernel) -> str:
    try:
        return str(find_wait_loop(analyse(kernel)) or "")
    except (InputError, RecursionError):
        return ""
