"""Schedules one launch over devices: samples, first shares, corrections, results.

1. Every device builds the kernel, takes the buffers and runs a slab: drivers do at the first launch
   what they have put off. Nobody is given more until all are so far.
2. All run a few slabs at the same places and at the same time, which tell their speeds. Who is done
   goes on in small parts.
3. Once all speeds are known, a device gets most of its fair share. The first and the last device
   work from the two ends of the index space towards each other.
4. What is left is divided by the speeds seen by then, in ever smaller parts, so that all finish
   together. A device gets its next part while it runs the last launch that it has: with all cores
   at work, the host's answer takes milliseconds.
5. Whoever has nothing left to do hands its results over.

No slab is run by two devices, but for those of a device that fails or rests: the others do again
what it has not handed over.
"""

import copy
from collections.abc import Callable, Sequence

import numpy as np

from kernelcast.balancing.device_processes import Devices
from kernelcast.balancing.device_state import DeviceState, Execution, SplitLaunch, Stage
from kernelcast.balancing.messages import (
    Collected,
    Command,
    Failed,
    Prepared,
    Ran,
    Reply,
    Run,
)
from kernelcast.balancing.settings import BalanceSettings
from kernelcast.balancing.shares import DeviceSpeed, SharePolicy, finish_time
from kernelcast.balancing.work_queue import WorkQueue, count_fixed, cut, mark, spans_of, weigh_slabs
from kernelcast.records.balance import Activity, Bar, Span
from kernelcast.records.errors import KernelcastError
from kernelcast.sampling.windows import GOLDEN

_FIRST_PART = 0.6
# Fewer slabs for each device are divided without samples.
_FEWEST_SLABS = 4
# Places that are sampled, and what a launch at each should last at least, in seconds.
_MOST_PLACES, _WORTH_S = 8, 0.2e-3
# Share of a device's time for its part of the work that samples take at most.
_MOST_SAMPLED = 0.1
# Places whose work differs by less differ by the machine's noise.
_UNEVEN = 1.5
_LOOK_S = 20e-3
"""So often devices that sample are looked after."""


class Scheduler:
    """Runs one launch; of the devices those `taking_part` do, the others have failed before."""

    def __init__(
        self,
        devices: Devices,
        launch: SplitLaunch,
        settings: BalanceSettings,
        taking_part: Sequence[int],
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._devices = devices
        self._launch = launch
        self._settings = settings
        self._report = report
        self._policy = SharePolicy.make(settings, is_known_even=launch.is_known_even)
        count = launch.space.count
        last = max(1, devices.size - 1)
        states = [DeviceState.make(count, number / last) for number in range(devices.size)]
        for number, state in enumerate(states):
            if number not in taking_part:
                state.stage = Stage.FAILED
        self._queue = WorkQueue(count)
        self._fixed = count_fixed(settings.fixed_shares, count)
        self._has_begun = False
        self.execution = Execution(states=states)

    def run(self) -> Execution:
        """Run the launch.

        Raises
        ------
        InputError
            If every device refuses the launch itself.
        DeviceError
            If no device is left to do the work; says which failed and why.
        """
        for number, state in self._alive():
            state.begun_s = self._devices.now_s()
            self._send(number, self._launch.prepare)
        self._report("preparing")
        try:
            while not self._is_done():
                is_watched = any(
                    one.stage in (Stage.WARMING, Stage.SAMPLING) for one in self._working()
                )
                if is_watched and not self._devices.has_reply(0.0):
                    self._leave_out()
                if not is_watched or self._devices.has_reply(_LOOK_S):
                    self._take(*self._devices.receive())
                if not self._has_begun:
                    self._begin()
                for number, _ in self._alive():
                    self._give(number)
        finally:
            for number, state in enumerate(self.execution.states):
                if state.is_left_out:
                    self._devices.wake(number)
        return self.execution

    def _alive(self) -> list[tuple[int, DeviceState]]:
        return [(n, one) for n, one in enumerate(self.execution.states) if one.is_alive]

    def _working(self) -> list[DeviceState]:
        return [one for one in self.execution.states if one.can_work]

    def _is_sampling(self) -> bool:
        return any(one.stage is Stage.SAMPLING for one in self._working())

    def _is_done(self) -> bool:
        return self._queue.is_empty and not any(
            (one.owned & ~one.collected).any() for one in self.execution.states
        )

    def _take(self, number: int, reply: Reply) -> None:
        state = self.execution.states[number]
        state.outstanding -= 1
        if isinstance(reply, Failed):
            state.is_gone = reply.is_final
            self._note_failure(number, reply.error)
        elif state.is_alive:
            match reply:
                case Prepared():
                    self._take_prepared(number, reply)
                case Ran():
                    self._take_ran(number, reply)
                case Collected():
                    self._draw(number, Activity.COLLECT, reply)
                    self.execution.last_s = max(self.execution.last_s, reply.end_s)
                    state.collected |= state.handed_over
                    state.stage = Stage.IDLE
                case _:  # what an earlier launch left
                    return

    def _take_prepared(self, number: int, reply: Prepared) -> None:
        state, launch = self.execution.states[number], self._launch
        self._draw(number, Activity.PREPARE, reply)
        if reply.uploaded_bytes:
            returned = sum(
                size for index, size in launch.result_bytes.items() if index not in reply.in_place
            )
            returning_s = returned * reply.upload_s / reply.uploaded_bytes
            state.transfer_s = returning_s / launch.space.count
        state.stage, state.begun_s = Stage.IDLE, reply.end_s
        if not self._settings.fixed_shares and not self._queue.is_empty:
            self._run(number, [self._queue.take(1.0, anchor=state.anchor)], Stage.WARMING)

    def _begin(self) -> None:
        """Have devices sample as soon as all are warm."""
        working = self._working()
        if any(one.stage in (Stage.PREPARING, Stage.WARMING) for one in working):
            return
        self._has_begun = True
        self.execution.first_s = self._devices.now_s()
        is_sampled = self._queue.weight >= _FEWEST_SLABS * len(working)
        if is_sampled and not self._settings.fixed_shares:
            self._report("sampling")
            for number, state in self._alive():
                if state.can_work:
                    self._sample(number, [0], 1)

    def _sample(self, number: int, places: Sequence[int], slabs: int) -> None:
        """Have a device run so many slabs at each of some places, which are the same for all."""
        taken = [self._queue.take(slabs, anchor=(0.31 + one * GOLDEN) % 1) for one in places]
        self._run(number, [spans for spans in taken if spans], Stage.SAMPLING)

    def _take_ran(self, number: int, reply: Ran) -> None:
        state = self.execution.states[number]
        spans, _ = state.queued.pop(0)
        stage, state.begun_s = state.stage, reply.end_s
        spent_s = reply.end_s - reply.start_s
        is_run = stage is Stage.RUNNING
        self._draw(number, Activity.RUN if is_run else Activity.SAMPLE, reply, spans)
        state.real_s += spent_s
        if not state.queued:
            state.stage = Stage.IDLE
        if state.is_left_out:
            return
        if stage is Stage.WARMING:
            state.rate = 1 / max(spent_s, 1e-9)
        elif is_run:
            state.runs.append((spans, spent_s))
            state.learn(self._queue.weight_of)
            if len(state.queued) == 1:
                self._give_ahead(number)
        else:
            state.samples.append((spans, sum(reply.durations_s)))
            state.learn(self._queue.weight_of)
            if len(state.samples) == 1:
                self._sample_on(number)
            self._note_samples()

    def _sample_on(self, number: int) -> None:
        """Have a device go on at other places, as its share of the work allows.

        That follows from its speed beside the others' at the first place, as far as it is known.
        """
        state, count = self.execution.states[number], self._launch.space.count
        rate = state.rate or 0.0
        known = sum(one.rate or 0.0 for one in self._working() if one.samples)
        share_s = count / known
        places = min(_MOST_PLACES, int(_MOST_SAMPLED * rate * share_s))
        if places:
            wanted_s = min(places * _WORTH_S, _MOST_SAMPLED * share_s)
            slabs = max(1, int(rate * max(self._settings.budget * share_s, wanted_s) / places))
            self._sample(number, range(1, places + 1), slabs)

    def _give(self, number: int) -> None:
        """Give a device that waits its next part, or have it hand its results over."""
        state = self.execution.states[number]
        if not (self._has_begun and state.stage is Stage.IDLE and state.can_work):
            return
        weight = 0.0 if self._queue.is_empty else self._allot(number)
        if weight > 0:
            self._send_parts(number, weight)
        elif (state.owned & ~state.collected).any():
            state.handed_over, state.stage = state.owned.copy(), Stage.COLLECTING
            self._send(number, self._launch.collect(number, state.owned & ~state.collected))
            self._report("collecting results")

    def _give_ahead(self, number: int) -> None:
        """Give a device more before its last launch ends, so that it need not wait for us."""
        if not self._queue.is_empty and not self._settings.fixed_shares:
            weight = self._allot(number)
            if weight > 0:
                self._send_parts(number, weight)

    def _allot(self, number: int) -> float:
        if self._fixed:
            return self._fixed.pop(number, 0.0)
        state, working = self.execution.states[number], self._working()
        weight = 0.0
        if not state.is_too_slow(self._add_up_others(state)):
            weight = self._policy.allot(
                [_describe_speed(one) for one in working],
                [one is state for one in working].index(True),
                self._queue.weight,
                self._devices.now_s(),
                is_first=not state.runs,
            )
        is_last = all(one.stage in (Stage.IDLE, Stage.COLLECTING) for one in working)
        # Nobody else is at work who could take what this one is too slow for.
        return self._queue.weight if is_last and weight <= 0 else weight

    def _send_parts(self, number: int, weight: float) -> None:
        """Send slabs; what may be uneven in two launches, so that its speed is known half-way."""
        state = self.execution.states[number]
        spans = self._queue.take(weight, anchor=state.anchor)
        rate, is_first = state.effective_rate, not state.runs
        parts = [spans]
        if not self._settings.fixed_shares and (
            self._is_sampling() or self._policy.cuts(weight, rate, is_first=is_first)
        ):
            parts = cut(spans, _FIRST_PART, from_end=state.anchor >= 1)
        self._run(number, parts, Stage.RUNNING)
        self._report("running")

    def _run(self, number: int, parts: Sequence[Sequence[Span]], stage: Stage) -> None:
        """Have a device run slabs that were taken for it, each part by a command of its own."""
        state = self.execution.states[number]
        if not state.queued:
            state.begun_s = self._devices.now_s()
        for part in parts:
            slabs = mark(part, state.given.size)
            state.given |= slabs
            state.owned |= slabs
            state.stage = stage
            state.queued.append((tuple(part), self._queue.weight_of(part)))
            self._send(number, Run(space=self._launch.space, spans=tuple(part)))

    def _leave_out(self) -> None:
        """Have devices rest that are too slow to be of use; the others do what they were given."""
        now_s = self._devices.now_s()
        for number, state in self._alive():
            others = [one for one in self._working() if one is not state]
            if not state.can_work or not others:
                continue
            if state.stage is Stage.SAMPLING:
                is_hopeless = state.is_hopeless(now_s, sum(one.slowest_rate for one in others))
            else:
                # Waiting for it would take longer than to do everything without it.
                since_s = max(one.begun_s for one in (state, *others))
                is_hopeless = (
                    state.stage is Stage.WARMING
                    and all(one.stage is Stage.IDLE for one in others)
                    and (now_s - since_s) * self._add_up_others(state) > state.given.size
                )
            if is_hopeless:
                state.is_left_out = True
                self._devices.rest(number)
                self._queue.put_back(state.owned)
                state.owned = np.zeros_like(state.owned)
                self._note_samples()

    def _add_up_others(self, state: DeviceState) -> float:
        """Add up the rates of the others, as far as they are known."""
        others = [one for _, one in self._alive() if one.can_work and one is not state]
        return sum(one.effective_rate or 0.0 for one in others)

    def _note_failure(self, number: int, error: KernelcastError) -> None:
        """Have others do what a device has not handed over."""
        state = self.execution.states[number]
        if not state.is_alive:
            return
        state.error, state.stage = error, Stage.FAILED
        self._fixed.clear()
        self._queue.put_back(state.owned & ~state.collected)
        state.owned &= state.collected
        state.queued.clear()
        if not self._working():
            self._wake()
        if not self._is_done() and not self._working():
            raise self.execution.explain_end()
        self._note_samples()

    def _wake(self) -> None:
        """Have devices that were left out go on: nobody else can."""
        for number, state in self._alive():
            state.is_left_out = False
            self._devices.wake(number)
            state.owned = state.given & self._queue.free
            self._queue.remove(spans_of(np.flatnonzero(state.owned)))

    def _note_samples(self) -> None:
        """Weigh slabs and say when all will be done, once all have sampled.

        Said once: what comes later is no estimate.
        """
        working, count = self._working(), self._launch.space.count
        if (
            self.execution.estimated_end_s is not None
            or not any(one.samples for one in working)
            or self._is_sampling()
        ):
            return
        most = max(len(one.samples) for one in working)
        paces = [one.list_paces() for one in working if 2 * len(one.samples) > most]
        weights = weigh_slabs(paces, count)
        if weights.max() > _UNEVEN * weights.min():
            self._queue.weigh(weights)
            self._policy = SharePolicy.make(self._settings, is_known_even=False)
        for one in working:
            one.learn(self._queue.weight_of)
            one.predict(count)
        speeds = [_describe_speed(one) for one in working]
        now_s = self._devices.now_s()
        end_s = finish_time(speeds, self._queue.weight, now_s)
        self.execution.estimated_end_s = end_s
        left = copy.deepcopy(self._queue)
        for one in working:
            more = (one.effective_rate or 0.0) * max(0.0, end_s - max(now_s, one.free_at_s))
            slabs = one.owned | mark(left.take(more, anchor=one.anchor) if more else (), count)
            one.estimated_share = float(slabs.mean())

    def _draw(
        self, number: int, activity: Activity, reply: Reply, spans: Sequence[Span] = ()
    ) -> None:
        self.execution.bars.append(
            Bar(
                device=number,
                activity=activity,
                start_s=reply.start_s,
                end_s=reply.end_s,
                work_groups=self._launch.space.work_groups(spans),
            )
        )

    def _send(self, number: int, command: Command) -> None:
        self.execution.states[number].outstanding += 1
        self._devices.send(number, command)


def _describe_speed(state: DeviceState) -> DeviceSpeed:
    is_known = state.stage is not Stage.SAMPLING
    return DeviceSpeed(
        rate=state.effective_rate if is_known else None,
        free_at_s=state.free_at_s,
        doubt=state.doubt,
    )
