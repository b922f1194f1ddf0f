"""Finds out what other programs leave to a CPU device: a launch of some length, and its waiting.

The samples themselves do not tell. A launch of a millisecond whose threads have slept is let in at
once, by schedulers' kindness to those who wake, and a whole run of a second is not: with four busy
programs on two processors samples took 1.1 to 1.4 times as long by the clock as by their work,
whole runs 4 times. Nor does the number of other programs tell: their weights (nice, groups of
processes) decide. So where more threads want to run than there are processors, a launch of a known
kernel runs on all of the device's threads, as freely as a whole run, and Linux says how long they
waited for a processor.
"""

import time
from datetime import UTC, datetime
from statistics import mean

from kernelcast.records.contention import Contention
from kernelcast.sampling.behaviour import SETTLE_GROUPS
from kernelcast.sampling.other_programs import count_others
from kernelcast.sampling.probes import Probe
from kernelcast.sampling.waiting import add_up_workers, read_waiting

# A launch alone lasts about so long: threads that have slept are favoured for some time slices
# (3 ms each), a whole run hardly is.
_LAUNCH_S = 40e-3
# Launches are repeated until so much time has passed; after one that did not wait, none is.
_TRIAL_S = 0.15
_WAITED_LITTLE = 0.05
_MOST_LAUNCHES = 8
_PAUSE_S = 1e-3


def measure_contention(probe: Probe, steps_per_s: float) -> Contention | None:
    """Try launches where other programs seem to be at work.

    Parameters
    ----------
    probe : Probe
        Of the device, its threads free to run on any processor.
    steps_per_s : float
        Steps of the probe kernel that a launch of `SETTLE_GROUPS` work-groups does per second.

    Returns
    -------
    Contention or None
        None where no other program wants to run, or the system does not tell.
    """
    if not count_others():
        return None
    time.sleep(_PAUSE_S)  # who was only woken has done what it had to
    seen = [count_others()]
    if not seen[0]:
        return None
    worked_s = waited_s = 0.0
    steps = max(1, round(steps_per_s * _LAUNCH_S))
    begin_s = time.perf_counter()
    for _ in range(_MOST_LAUNCHES):
        before = read_waiting()
        probe.run((SETTLE_GROUPS,), steps=steps)
        worked, waited = add_up_workers(before, read_waiting())
        worked_s, waited_s = worked_s + worked, waited_s + waited
        seen.append(count_others())
        is_long = time.perf_counter() - begin_s >= _TRIAL_S
        if is_long or waited_s <= _WAITED_LITTLE * worked_s:
            break
    if not worked_s > 0:
        return None
    return Contention(
        worked_s=worked_s,
        waited_s=waited_s,
        others=float(mean(seen)),
        measured_at=datetime.now(UTC),
    )
