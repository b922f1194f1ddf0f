"""Samples launches again that were asked for, while nobody waits: the next answer is better.

Moments err for the most part independently of each other (ADR 0032). What a refinement takes is
followed by a pause of so many times as long that all together take no more than a share of the
time.
"""

import asyncio
import time
from typing import Final

from kernelcast.service.estimating import Estimating
from kernelcast.service.logs import log
from kernelcast.service.metrics import Metrics

_APART_S: Final = 1.0
"""Between two refinements, and after a launch was asked for, at least: moments that lie close
together share what disturbs them."""


class Refining:
    """Refines kept answers in turn.

    Parameters
    ----------
    estimating : Estimating
        Has the answers.
    metrics : Metrics
        Count what was done.
    share : float
        Of the time, which refinements may take; 0: there are none.
    """

    def __init__(self, estimating: Estimating, metrics: Metrics, share: float) -> None:
        self._estimating = estimating
        self._metrics = metrics
        self._share = share

    async def run(self) -> None:
        """Refine now and then until cancelled."""
        pause_s = _APART_S
        while self._share > 0:
            await asyncio.sleep(pause_s)
            taken_s = await self._refine_next()
            pause_s = max(_APART_S, taken_s * (1.0 / self._share - 1.0))

    async def _refine_next(self) -> float:
        """Refine the answer that has waited longest, if no request waits; give the seconds."""
        waiting = self._estimating.refinable
        if not waiting or self._estimating.queues.length:
            return 0.0
        key, wanted = waiting.popitem(last=False)
        started_s = time.perf_counter()
        try:
            is_open = await self._estimating.refine(wanted)
        except Exception as error:  # noqa: BLE001 - it goes on with others, whatever it is
            log("a refinement failed", level=30, device=wanted.ask.device.id, error=repr(error))
            is_open = False
        taken_s = time.perf_counter() - started_s
        self._metrics.count_refinement(wanted.ask.device.id, taken_s)
        if is_open:
            waiting.setdefault(key, wanted)
        return taken_s
