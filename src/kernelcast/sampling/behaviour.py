"""How a device behaves as a whole, measured once per session by probe kernels."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from kernelcast.records.device import DispatchOrder
from kernelcast.sampling.probes import Probe

_GROUP_COUNTS = (1, 2, 4, 8, 16, 32)
_REPEATS = 7
_TARGET_S = 150e-6
# Where launches are slow, a probe must still be work for the most part, or it tells nothing.
_TIMES_THE_OVERHEAD = 4.0
SETTLE_GROUPS = 32
_TRIALS = 3
_FULL_RATE = 1.2
"""A launch runs at full rate if its time per work-group is within this of the best."""
_SETTLED = 1.25
_SETTLED_IN_A_ROW = 2
_LONGEST_SETTLING_S = 0.03
_MOST_PROBES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceBehaviour:
    """What the probes found."""

    order: DispatchOrder
    """Order in which work-groups start."""
    launch_overhead_s: float
    """What a launch of many work-groups costs beside them, in seconds."""
    saturated_from: int
    """Work-groups from which on a launch runs at full rate (steps of t(n)): runtimes that hand
    work-groups to threads by the handful need more than one per thread."""
    settle_steps: int
    """Steps of the probe kernel that last about 0.3 ms, or several times an empty launch."""
    settled_s: float
    """Best time of that probe, in seconds."""


def measure_behaviour(probe: Probe) -> DeviceBehaviour:
    """Run the probes: some tens of milliseconds on a CPU, once per session."""
    order = probe.find_order()
    steps = _choose_steps(probe, probe.time_nothing())
    settled_s = _find_settled(probe, steps)
    times = {
        groups: min(probe.run((groups,), steps=steps).duration_s for _ in range(_REPEATS))
        for groups in _GROUP_COUNTS
    }
    overhead_s, saturated_from = read_steps(times)
    return DeviceBehaviour(
        order=order,
        launch_overhead_s=overhead_s,
        saturated_from=saturated_from,
        settle_steps=steps,
        settled_s=settled_s,
    )


def read_steps(times_s: Mapping[int, float]) -> tuple[float, int]:
    """Read the overhead of a launch and the least saturating launch off the steps of t(n).

    Parameters
    ----------
    times_s : mapping of int to float
        Work-groups of equal work to the time of their launch, in seconds.

    Returns
    -------
    overhead_s : float
        Intercept of the line through the two largest launches, at least 0, in seconds.
    saturated_from : int
        Fewest work-groups whose launch runs at full rate.

    Examples
    --------
    >>> overhead_s, groups = read_steps({1: 2.1, 2: 2.1, 4: 4.1, 8: 8.1, 16: 16.1})
    >>> round(overhead_s, 6), groups
    (0.1, 2)
    """
    *_, n1, n2 = sorted(times_s)
    rate_s = (times_s[n2] - times_s[n1]) / (n2 - n1)
    if rate_s <= 0:  # noise hid the step: no claim is made
        return 0.0, n1
    overhead_s = max(times_s[n2] - rate_s * n2, 0.0)
    saturated = [
        n for n, time_s in times_s.items() if time_s - overhead_s <= _FULL_RATE * rate_s * n
    ]
    return overhead_s, min(saturated, default=n1)


def settle(probe: Probe, behaviour: DeviceBehaviour) -> float:
    """Keep the device busy until it runs at its usual rate; give the time that took in seconds.

    After the device has idled, or the host has compiled, an operating system may put two threads
    of a CPU device on one core for up to 10 ms (PoCL: exactly twice the time per work-group until
    then). A whole run of the kernel hardly notices; a sample of 2 ms would see nothing else.
    """
    begin = time.perf_counter()
    good = 0
    longest_s = _longest_settling_s(behaviour.settled_s)
    while good < _SETTLED_IN_A_ROW and time.perf_counter() - begin < longest_s:
        duration_s = probe.run((SETTLE_GROUPS,), steps=behaviour.settle_steps).duration_s
        good = good + 1 if duration_s <= _SETTLED * behaviour.settled_s else 0
    return time.perf_counter() - begin


def _find_settled(probe: Probe, steps: int) -> float:
    """Find the best time of the probe, long enough after any start."""
    begin = time.perf_counter()
    best_s = probe.run((SETTLE_GROUPS,), steps=steps).duration_s
    while time.perf_counter() - begin < 2 * _longest_settling_s(best_s):
        best_s = min(best_s, probe.run((SETTLE_GROUPS,), steps=steps).duration_s)
    return best_s


def _longest_settling_s(probe_s: float) -> float:
    """Give up after this time; a device of slow launches needs longer for as many probes."""
    return max(_LONGEST_SETTLING_S, _MOST_PROBES * probe_s)


def _choose_steps(probe: Probe, overhead_s: float) -> int:
    """Choose how long the probe's work-groups work, by doubling."""
    steps = 64
    target_s = max(_TARGET_S, _TIMES_THE_OVERHEAD * overhead_s)
    while steps < 2**24:
        tried = (probe.run((SETTLE_GROUPS,), steps=steps).duration_s for _ in range(_TRIALS))
        if min(tried) - overhead_s >= target_s:
            break
        steps *= 2
    return steps
