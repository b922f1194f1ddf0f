"""A short kernel run between samples: when it is slow, the device or the machine was busy."""

import math
import time
from collections.abc import Sequence

import numpy as np

from kernelcast.sampling.behaviour import settle
from kernelcast.sampling.session import DeviceSession

_GROUPS = 32
_SLOW = 1.10
_USUAL_QUANTILE = 0.25
_PAUSE_S = 0.05
_BLOCK = 20
_FEWEST_BLOCKS = 5
_NORMAL_95 = 1.96
LEAST_SPREAD = 0.03
"""Two calibrations minutes apart see clocks that differ by up to 6 % (a cloud machine's)."""
_LARGEST_SPREAD = 0.05


class Reference:
    """The session's probe kernel, some tenths of a millisecond on all compute units.

    Parameters
    ----------
    patience_s : float
        How long to wait in total for a machine that others keep busy, in seconds.
    """

    def __init__(self, session: DeviceSession, patience_s: float) -> None:
        self._probe = session.probe
        self._behaviour = session.behaviour
        self._patience_s = patience_s
        self._times: list[float] = []

    @property
    def usual_s(self) -> float:
        """Lower quartile of its times so far, in seconds: right if a quarter was undisturbed."""
        return float(np.quantile(self._times, _USUAL_QUANTILE))

    @property
    def spread(self) -> float:
        """Half width of the 95 % interval of its time from one minute to another, as a share."""
        return read_spread(self._times)

    def is_slow(self, seconds: float) -> bool:
        """Tell whether a run took more than 10 % longer than usual."""
        return seconds > _SLOW * self.usual_s

    def time(self) -> float:
        """Run once and give the time in seconds."""
        seconds = self._probe.run((_GROUPS,), steps=self._behaviour.settle_steps).duration_s
        self._times.append(seconds)
        return seconds

    def wait_until_usual(self) -> None:
        """Keep the device busy until it is as fast as usual, while there is patience left.

        Threads of a CPU device that woke on one core need up to 30 ms; other users of the machine
        may need longer, and once patience is spent, slow is how the device is.
        """
        start_s = time.perf_counter()
        while (elapsed_s := time.perf_counter() - start_s) < self._patience_s:
            settle(self._probe, self._behaviour)
            if not self.is_slow(self.time()):
                break
            time.sleep(_PAUSE_S)
        self._patience_s = max(0.0, self._patience_s - elapsed_s)


def read_spread(times_s: Sequence[float]) -> float:
    """Read how much a device's speed drifts, beyond the noise of single runs.

    Parameters
    ----------
    times_s : sequence of float
        The reference's times in their order, in seconds.

    Returns
    -------
    float
        1.96 standard deviations of the logarithms of the medians of 20 runs each, between 3 %,
        which a short series cannot show, and 5 %, since a machine that others use is no drift.

    Examples
    --------
    >>> read_spread([1.0, 1.001] * 100)
    0.03
    """
    blocks = len(times_s) // _BLOCK
    if blocks < _FEWEST_BLOCKS:
        return LEAST_SPREAD
    used = np.asarray(times_s[: blocks * _BLOCK], dtype=np.float64).reshape(blocks, _BLOCK)
    medians = np.median(used, axis=1)
    spread = _NORMAL_95 * float(np.std(np.log(medians), ddof=1))
    return min(max(spread, LEAST_SPREAD), _LARGEST_SPREAD) if math.isfinite(spread) else 0.0
