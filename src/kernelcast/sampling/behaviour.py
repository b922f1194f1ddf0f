"""How a device behaves as a whole, measured once per session by probe kernels."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kernelcast.sampling.probes import Probe

_GROUP_COUNTS = (1, 2, 4, 8, 16, 32)
# A device is full when twice the work-groups take so many times as long, and half of them nearly
# did: a GPU of 132 compute units is not with 32 work-groups, nor is a processor of 64 cores.
_FULL_GROWTH, _NEARLY_FULL_GROWTH = 1.5, 1.3
_MOST_GROUPS = 16384
# Below this share of the largest launch the line through two launches is noise.
_LEAST_SHARE = 0.5
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
# A GPU takes so long to raise its clock, in steps of at most the second number.
LONGEST_WAKING_S, WAKING_STEP_S = 0.5, 0.06
_BETTER = 0.97
_MOST_PROBES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceBehaviour:
    """What the probes found."""

    saturated_from: int
    """Work-groups from which on a launch runs at full rate (steps of t(n)): runtimes that hand
    work-groups to threads by the handful need more than one per thread."""
    settle_steps: int
    """Steps of the probe kernel that last about 0.3 ms, or several times an empty launch."""
    settled_s: float
    """Best time of that probe, in seconds."""


def measure_behaviour(
    probe: Probe, nothing_s: float, *, longest_s: float = _LONGEST_SETTLING_S
) -> DeviceBehaviour:
    """Run the probes: some tens of milliseconds, once per session.

    Parameters
    ----------
    probe : Probe
        Of the device.
    nothing_s : float
        Time of a launch that does nothing, in seconds.
    longest_s : float
        What the device takes to run at its usual rate after it was idle, at most.
    """
    steps = _choose_steps(probe, nothing_s)
    settled_s = _find_settled(probe, steps, longest_s)
    return DeviceBehaviour(
        saturated_from=find_saturated(_time_steps(probe, steps)),
        settle_steps=steps,
        settled_s=settled_s,
    )


def _time_steps(probe: Probe, steps: int) -> dict[int, float]:
    """Time launches of more and more work-groups until the device is full."""

    def run(groups: int) -> float:
        return min(probe.run((groups,), steps=steps).duration_s for _ in range(_REPEATS))

    times = {groups: run(groups) for groups in _GROUP_COUNTS}
    largest = _GROUP_COUNTS[-1]
    while not _is_full(times, largest) and largest < _MOST_GROUPS:
        largest *= 2
        times[largest] = run(largest)
    return times


def _is_full(times_s: Mapping[int, float], groups: int) -> bool:
    half_s, quarter_s = times_s[groups // 2], times_s[groups // 4]
    return times_s[groups] >= _FULL_GROWTH * half_s and half_s >= _NEARLY_FULL_GROWTH * quarter_s


def find_saturated(times_s: Mapping[int, float]) -> int:
    """Read the least launch that runs at full rate off the steps of t(n).

    Parameters
    ----------
    times_s : mapping of int to float
        Work-groups of equal work to the time of their launch, in seconds.

    Examples
    --------
    >>> find_saturated({1: 2.1, 2: 2.1, 4: 4.1, 8: 8.1, 16: 16.1})
    2

    A device that is not full with 16 work-groups takes as long for one:

    >>> find_saturated({1: 2.1, 8: 2.1, 16: 2.2})
    16
    """
    *_, n1, n2 = sorted(times_s)
    rate_s = (times_s[n2] - times_s[n1]) / (n2 - n1)
    if rate_s * n2 < _LEAST_SHARE * times_s[n2]:  # not full, or noise hid the step
        return n2
    overhead_s = max(times_s[n2] - rate_s * n2, 0.0)
    saturated = [
        n for n, time_s in times_s.items() if time_s - overhead_s <= _FULL_RATE * rate_s * n
    ]
    return min(saturated, default=n1)


def settle(
    run: Callable[[], float], settled_s: float, *, longest_s: float = _LONGEST_SETTLING_S
) -> None:
    """Repeat a launch until the device runs it at its usual rate.

    After the device has idled, or the host has compiled, an operating system may put two threads
    of a CPU device on one core for up to 10 ms (PoCL: exactly twice the time per work-group until
    then). A whole run of the kernel hardly notices; a sample of 2 ms would see nothing else.

    Parameters
    ----------
    run : callable
        Runs the launch; returns its time in seconds.
    settled_s : float
        Its usual time, in seconds.
    longest_s : float
        When to give up, in seconds; later where launches are slow.
    """
    begin = time.perf_counter()
    good = 0
    longest_s = _longest_settling_s(settled_s, longest_s)
    while good < _SETTLED_IN_A_ROW and time.perf_counter() - begin < longest_s:
        good = good + 1 if run() <= _SETTLED * settled_s else 0


def _find_settled(probe: Probe, steps: int, longest_s: float) -> float:
    """Find the best time of the probe, long enough after any start and after it last got better.

    A GPU that was idle raises its clock in steps for some tenths of a second.
    """
    begin = time.perf_counter()
    best_s = probe.run((SETTLE_GROUPS,), steps=steps).duration_s
    wait_s = _longest_settling_s(best_s, longest_s)
    last = begin
    while (now := time.perf_counter()) - last < wait_s and now - begin < wait_s + LONGEST_WAKING_S:
        duration_s = probe.run((SETTLE_GROUPS,), steps=steps).duration_s
        if duration_s < _BETTER * best_s:
            last = now
        best_s = min(best_s, duration_s)
    return best_s


def _longest_settling_s(probe_s: float, longest_s: float) -> float:
    """Give up after this time; a device of slow launches needs longer for as many probes."""
    return max(longest_s, _MOST_PROBES * probe_s)


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
