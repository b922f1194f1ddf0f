"""Tries a device by a trivial kernel: whether it runs, whether its events tell the time, what a
launch costs, how fast it is at its usual rate.

The same launches tell how many processors of the host share the work of a CPU device. What a trial
has found is kept on disk, since the next process need not try again: it takes 0.1 to 0.2 s. What
other programs may have disturbed is not kept, and nothing for longer than `_STANDS_S`: virtual
machines get faster and slower.
"""

import json
import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kernelcast.records.device import DeviceDescription, DeviceKind, TimerCheck
from kernelcast.records.errors import BrokenDeviceError
from kernelcast.records.private_files import write_private
from kernelcast.sampling import read_source
from kernelcast.sampling.host import count_others, read_waiting, read_work
from kernelcast.sampling.opencl import cl

_WORK_ITEMS, TRIAL_LOCAL_SIZE = 4096, 64
_LONG_ENOUGH_S = 5e-3
_EMPTY_LAUNCHES = 9
# Share of a launch for which its cores work, or for which threads wait for them: less is done
# elsewhere, more by others too.
_LEAST_WORK, _MOST_WORK = 0.4, 1.6
SETTLING = 16
"""A launch of this part of a trial's steps tells whether a device runs at its usual rate."""
_SETTLED, _SETTLED_IN_A_ROW, _MOST_PROBES = 1.25, 2, 20
# So long a CPU takes to run at it again; a GPU raises its clock in steps of at most the third.
_LONGEST_SETTLING_S, _LONGEST_WAKING_S, _WAKING_STEP_S = 0.03, 0.5, 0.06
# Work-groups that show who gets which, launches of them, and how many must agree.
_MOST_GROUPS, _DEALT_TRIES, _DEALT_ALONE = 1022, 40, 3
_FORMAT = "kernelcast device trial 4"
_STANDS_S = 3600.0
TRIAL_SOURCE = read_source("device_trial.cl")
"""What every device is tried with. One kernel works, writes its work-items' numbers after no steps,
and reads memory: PoCL takes 50 ms to make one ready."""


def set_trial(
    kernel: cl.Kernel, out: cl.Buffer, steps: int, *, apart: int = 0, places: int = 0, each: int = 0
) -> None:
    """Set arguments: work-items write, the first `places` of them after so many steps (0: all of
    them), or read bytes of `out` at `places` some `apart`."""
    numbers = [np.uint64(one) for one in (apart, places, each)]
    kernel.set_args(out, np.int32(steps), out, *numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTrial(TimerCheck):
    steps: int
    """Of the kernel, with which it runs for some milliseconds."""
    settled_s: float
    """Best time of one with this part of its steps, `SETTLING`, by `TrialTimes.share_of`."""
    launch_overhead_s: float
    """Time of a launch that does next to nothing, in seconds."""
    asleep_s: float = 0.0
    """How much of it is no processor time of this process."""
    cores: int | None = None
    """Processors of the host that share the work; None where processor time does not tell."""
    is_dealt: bool | None = False
    """Whether each gets a contiguous part of a launch beforehand; None where others hid it."""


def recall_trial(
    description: DeviceDescription, folder: Path | None, find: Callable[[], DeviceTrial]
) -> DeviceTrial:
    """Read a trial of a device that still stands; else try it, and keep it in the folder."""
    if folder is None:
        return find()
    path = folder / "devices" / f"{description.id}.json"
    made_for = [_FORMAT, description.driver, os.cpu_count()]
    with suppress(OSError, ValueError, KeyError, TypeError):
        held = json.loads(path.read_bytes())
        is_new = 0 <= time.time() - path.stat().st_mtime <= _STANDS_S
        if held["made_for"] == made_for and is_new:
            return DeviceTrial(**held["trial"])
    found = find()
    # Other programs can only make a timer disagree, and hide who works.
    is_sure = found.agrees and found.cores is not None and found.is_dealt is not None
    if not is_sure:
        time.sleep(2e-3)  # our own threads wait by spinning for a while
    if is_sure or not count_others():
        with suppress(OSError):
            kept = {"made_for": made_for, "trial": asdict(found)}
            write_private(path, json.dumps(kept).encode())
    return found


class TrialTimes(NamedTuple):
    """One launch by events, by the host's clock, and in processor time of this process."""

    event_s: float
    host_s: float
    worked_s: float

    def share_of(self, cores: int | None) -> float:
        """Give what each of the processors worked, the clock's time where that is not known:
        threads that wake late lengthen a launch of tenths of a millisecond by half (PoCL)."""
        return self.worked_s / cores if cores else self.host_s


def event_seconds(event: cl.Event) -> float:
    return float(event.profile.end - event.profile.start) * 1e-9


def prepare_trial(
    queue: cl.CommandQueue, kernel: cl.Kernel, buffer: cl.Buffer | None = None
) -> Callable[[int], TrialTimes]:
    """Prepare launches of the trivial kernel; the steps of its loop are left open."""
    target = buffer or cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, size=4 * _WORK_ITEMS)

    def run(steps: int) -> TrialTimes:
        set_trial(kernel, target, steps)
        queue.finish()
        before, start_s = read_work(), time.perf_counter()
        # Enough work-groups for all threads; PoCL left to choose would make one of them all.
        event = cl.enqueue_nd_range_kernel(queue, kernel, (_WORK_ITEMS,), (TRIAL_LOCAL_SIZE,))
        queue.finish()
        host_s, after = time.perf_counter() - start_s, read_work()
        if before.keys() - after.keys():  # a thread has ended, and with it what it worked
            return run(steps)
        worked_s = sum(seconds - before.get(one, 0.0) for one, seconds in after.items())
        try:
            event_s = event_seconds(event)
        except cl.Error:  # profiling is refused or not available: the timer does not agree
            event_s = 0.0
        return TrialTimes(event_s, host_s, worked_s)

    return run


def settle(run: Callable[[], float], settled_s: float, kind: DeviceKind) -> float:
    """Repeat a launch until the device runs it at its usual rate, or for as long as is worth it;
    give its best time, in seconds."""
    longest_s = _LONGEST_WAKING_S if kind is DeviceKind.GPU else _LONGEST_SETTLING_S
    longest_s = max(longest_s, _MOST_PROBES * settled_s)  # where launches are slow
    begin_s, good, best_s = time.perf_counter(), 0, math.inf
    while good < _SETTLED_IN_A_ROW and time.perf_counter() - begin_s < longest_s:
        last_s = run()
        best_s, good = min(best_s, last_s), good + 1 if last_s <= _SETTLED * settled_s else 0
    return best_s


def find_settled(run: Callable[[], float], kind: DeviceKind) -> float:
    """Find the best time of some launches, in seconds; of a GPU, which raises its clock in steps
    for some tenths of a second, until long enough after it last got better."""
    best_s = min(run() for _ in range(_EMPTY_LAUNCHES))
    if kind is not DeviceKind.GPU:
        return best_s
    begin_s = last_s = now_s = time.perf_counter()
    wait_s = max(_WAKING_STEP_S, _MOST_PROBES * best_s)
    while now_s - last_s < wait_s and now_s - begin_s < wait_s + _LONGEST_WAKING_S:
        duration_s = run()
        if duration_s < 0.97 * best_s:
            last_s = now_s
        best_s, now_s = min(best_s, duration_s), time.perf_counter()
    return best_s


def try_device(
    description: DeviceDescription, queue: cl.CommandQueue, kernel: cl.Kernel
) -> DeviceTrial:
    """Run the trivial kernel for some milliseconds, check its result and its timer."""
    out = np.empty(_WORK_ITEMS, dtype=np.float32)
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, size=out.nbytes)
    run = prepare_trial(queue, kernel, buffer)

    steps = 64
    run(steps)  # the first launch compiles
    empty = [run(0) for _ in range(_EMPTY_LAUNCHES)]
    last = run(steps)
    while last.host_s < _LONG_ENOUGH_S and steps < 2**24:
        # What others disturbed may have been shorter than it seemed: at least twice as many.
        steps = int(steps * min(max(1.2 * _LONG_ENOUGH_S / last.host_s, 2.0), 16.0))
        last = run(steps)
    cl.enqueue_copy(queue, out, buffer)
    if not np.allclose(out, 2.0, rtol=1e-4):
        raise BrokenDeviceError(f"the device computes wrongly: {out[:3]} where 2.0 was expected")

    cores = None
    if description.kind is DeviceKind.CPU and hasattr(os, "sched_getaffinity"):  # Linux
        cores = min(description.compute_units, len(os.sched_getaffinity(0)))
    worked = busy = waited_s = 0.0
    # Other programs keep the waiting thread from a processor; a wrong timer agrees in no trial.
    for _ in range(8):
        # The host's clock also sees the launch itself: a third of a short kernel on slow drivers.
        agrees = abs(last.event_s - last.host_s) <= 0.35 * last.host_s
        # An event's time that is less than this share of the host's is none: llvmpipe gives 1 ns.
        is_decided = agrees or last.event_s < 0.05 * last.host_s
        if cores is not None:
            worked = max(worked, last.worked_s / (cores * last.host_s))
            busy = max(busy, (last.worked_s + waited_s) / (cores * last.host_s))
        if is_decided and (cores is None or busy >= _LEAST_WORK):
            break
        before = read_waiting() if cores is not None else {}
        last = run(steps)
        after = read_waiting() if cores is not None else {}
        waited_s = sum(after[one].waited_s - before[one].waited_s for one in before.keys() & after)
    if busy < _LEAST_WORK or worked > _MOST_WORK:
        cores = None
    believed = [one.event_s if agrees else one.host_s for one in empty]
    asleep = [
        seconds - one.worked_s / (cores or 1) for seconds, one in zip(believed, empty, strict=True)
    ]
    return DeviceTrial(
        event_s=last.event_s,
        host_s=last.host_s,
        agrees=agrees,
        steps=steps,
        settled_s=find_settled(lambda: run(steps // SETTLING).share_of(cores), description.kind),
        # Other programs only lengthen a launch, most of nine on a busy machine.
        launch_overhead_s=min(believed),
        asleep_s=max(min(asleep), 0.0),
        cores=cores,
        is_dealt=_is_dealt(queue, kernel, steps, cores) if cores and cores > 1 else False,
    )


def _is_dealt(queue: cl.CommandQueue, kernel: cl.Kernel, steps: int, cores: int) -> bool | None:
    """Tell whether the first part of the work-groups, which does all the work, runs in order while
    others have none left: one core then does it alone. None where others hide it."""
    # PoCL deals out 32 work-groups at once, and builds anew for launches of 65,536 work-items.
    part = max(_MOST_GROUPS // cores, 1)
    items = part * cores * TRIAL_LOCAL_SIZE
    taken = np.zeros(1 + part * cores, dtype=np.int32)
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, size=4 * items + taken.nbytes)
    set_trial(kernel, buffer, max(steps // 8, 1), places=part * TRIAL_LOCAL_SIZE)
    alone = 0
    for _ in range(_DEALT_TRIES):
        taken[0] = 0
        cl.enqueue_copy(queue, buffer, taken, dst_offset=4 * items)
        cl.enqueue_nd_range_kernel(queue, kernel, (items,), (TRIAL_LOCAL_SIZE,))
        cl.enqueue_copy(queue, taken, buffer, src_offset=4 * items)
        first, rest = taken[1 : 1 + part], taken[1 + part :]
        if (np.diff(first) < 0).any():
            return False
        # Threads that wake late may get nothing of it though they are free to.
        alone += int(rest.max() < first[part // 2])
        if alone == _DEALT_ALONE:
            return True
    return None
