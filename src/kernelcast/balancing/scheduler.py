"""Schedules one launch over devices: samples, first shares, corrections, results.

1. Every device prepares and samples a few slabs; these count as done.
2. A device gets most of its fair share by the estimates as soon as it has sampled. The first and
   the last device work from the two ends of the index space towards each other.
3. What is left is divided by the speeds seen by then, in ever smaller parts, so that all finish
   together. A device gets its next part while it runs the last launch that it has: with all cores
   at work, the host's answer takes milliseconds.
4. Whoever has nothing left to do hands its results over.

A device that fails loses what it has not handed over; the others do that again.
"""

from collections.abc import Callable, Sequence

import numpy as np

from kernelcast.balancing.device_processes import Devices
from kernelcast.balancing.device_state import DeviceState, Execution, SplitLaunch, Stage
from kernelcast.balancing.messages import (
    Collect,
    Collected,
    Command,
    Failed,
    Hint,
    Prepared,
    Ran,
    Reply,
    Run,
    Sample,
    Sampled,
)
from kernelcast.balancing.settings import BalanceSettings
from kernelcast.balancing.shares import DeviceSpeed, SharePolicy, finish_time
from kernelcast.balancing.work_queue import WorkQueue, count_fixed, cut, mark, spans_of, weigh_slabs
from kernelcast.records.balance import Activity, Bar, Span
from kernelcast.records.errors import KernelcastError

_FIRST_PART = 0.6
# Where work is known to be even, the first parts soon tell more than samples, and cost less.
_EVEN_BUDGET = 0.25


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
        self._is_collecting = False
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
                number, reply = self._devices.receive()
                self._take(number, reply)
                self._leave_out()
                # A device that waited for another one to be prepared has nothing that wakes it.
                for waiting, _ in self._alive():
                    self._give(waiting)
        finally:
            for number, state in enumerate(self.execution.states):
                if state.is_left_out:
                    self._devices.wake(number)
        return self.execution

    def _alive(self) -> list[tuple[int, DeviceState]]:
        return [(n, one) for n, one in enumerate(self.execution.states) if one.is_alive]

    def _is_done(self) -> bool:
        if not self._queue.is_empty:
            return False
        return all(
            not one.queued and not (one.owned & ~one.collected).any()
            for one in self.execution.states
        )

    def _take(self, number: int, reply: Reply) -> None:
        state = self.execution.states[number]
        if isinstance(reply, Hint):
            if state.stage is Stage.SAMPLING:
                state.note_hint(reply.rate)
            return
        state.outstanding -= 1
        if isinstance(reply, Failed):
            state.is_gone = reply.is_final
            self._note_failure(number, reply.error)
        elif state.is_alive:
            self._take_result(number, reply)

    def _take_result(self, number: int, reply: Reply) -> None:
        match reply:
            case Prepared():
                self._take_prepared(number, reply)
            case Sampled():
                self._take_sampled(number, reply)
            case Ran():
                self._take_ran(number, reply)
            case Collected():
                self._take_collected(number, reply)
            case _:  # what an earlier launch left
                return

    def _take_prepared(self, number: int, reply: Prepared) -> None:
        state = self.execution.states[number]
        self._draw(number, Activity.PREPARE, reply)
        if self._is_collecting:
            state.is_late, state.stage = True, Stage.IDLE
            return
        launch = self._launch
        if reply.uploaded_bytes:
            returned = sum(
                size for index, size in launch.result_bytes.items() if index not in reply.in_place
            )
            returning_s = returned * reply.upload_s / reply.uploaded_bytes
            state.transfer_s = returning_s / launch.space.count
        settings = self._settings
        if settings.fixed_shares:
            state.stage = Stage.IDLE
            self.execution.first_s = min(self.execution.first_s or reply.end_s, reply.end_s)
            return
        state.stage, state.begun_s = Stage.SAMPLING, reply.end_s
        seed = settings.seed * len(self.execution.states) + number
        order = Sample(
            space=launch.space,
            budget=settings.budget * (_EVEN_BUDGET if launch.is_known_even else 1.0),
            seed=seed,
            is_known_even=launch.is_known_even,
            restored=launch.restored,
        )
        self._send(number, order)
        self._report("sampling")

    def _take_sampled(self, number: int, reply: Sampled) -> None:
        state, samples = self.execution.states[number], reply.samples
        self._draw(number, Activity.SAMPLE, reply, samples.spans)
        if not self.execution.first_s:
            self.execution.first_s = reply.start_s
        state.sampled, state.stage = samples, Stage.IDLE
        mine = mark(samples.spans, state.ran.size)
        state.ran |= mine
        if state.is_left_out:  # it said so before it came to rest, and could not hand them over
            return
        state.owned |= mine & self._queue.free
        self._queue.remove(samples.spans)
        state.real_s += reply.end_s - reply.start_s
        if samples.interval is not None:
            state.note_sampled(float(mine.sum()), state.ran.size / samples.interval.seconds)
        self._note_spread()
        self._note_estimate()
        self._give(number)

    def _take_ran(self, number: int, reply: Ran) -> None:
        state = self.execution.states[number]
        self._draw(number, Activity.RUN, reply, reply.spans)
        _, weight = state.queued.pop(0)
        done = mark(reply.spans, state.ran.size)
        state.ran |= done
        state.owned |= done
        state.real_s += reply.end_s - reply.start_s
        state.note_speed(weight, reply.end_s - reply.start_s)
        state.has_begun, state.begun_s = True, reply.end_s
        self._note_estimate()
        if len(state.queued) == 1:
            self._give_ahead(number)
        if not state.queued:
            state.stage = Stage.IDLE
            self._give(number)

    def _take_collected(self, number: int, reply: Collected) -> None:
        state = self.execution.states[number]
        self._draw(number, Activity.COLLECT, reply)
        self.execution.last_s = max(self.execution.last_s, reply.end_s)
        state.collected |= state.handed_over
        state.stage = Stage.IDLE
        self._give(number)

    def _give(self, number: int) -> None:
        """Give a device that waits its next part, or have it hand its results over."""
        state = self.execution.states[number]
        if not (state.stage is Stage.IDLE and state.can_work):
            return
        weight = 0.0 if self._queue.is_empty else self._allot(number)
        if weight > 0:
            self._send_parts(number, weight)
        elif (state.owned & ~state.collected).any() and not self._is_waited_for():
            self._collect(number)
        if self._queue.is_empty:
            self._stop_samples()

    def _give_ahead(self, number: int) -> None:
        """Give a device more before its last launch ends, so that it need not wait for us.

        Not while somebody's speed is unknown: what has been given cannot be taken back.
        """
        are_known = all(one.rate is not None for _, one in self._alive() if one.can_work)
        is_wanted = are_known and not self._settings.fixed_shares
        weight = self._allot(number) if is_wanted and not self._queue.is_empty else 0.0
        if weight > 0:
            self._send_parts(number, weight)
        if self._queue.is_empty:
            self._stop_samples()

    def _is_waited_for(self) -> bool:
        """Tell whether somebody still takes the buffers that results would be written into."""
        is_preparing = any(one.stage is Stage.PREPARING for _, one in self._alive())
        return is_preparing and not self._queue.is_empty

    def _allot(self, number: int) -> float:
        if self._fixed:
            return self._fixed.pop(number, 0.0)
        working = [(n, one) for n, one in self._alive() if one.can_work]
        speeds = [
            DeviceSpeed(rate=one.effective_rate, free_at_s=one.free_at_s, doubt=one.doubt)
            for _, one in working
        ]
        weight = 0.0
        state = self.execution.states[number]
        if not state.is_too_slow(self._add_up_others(state)):
            weight = self._policy.allot(
                speeds,
                [n for n, _ in working].index(number),
                self._queue.weight,
                self._devices.now_s(),
                is_first=not state.has_begun,
            )
            if not self._launch.is_known_even and any(
                one.stage is Stage.SAMPLING for _, one in working
            ):
                # Whoever sampled at a heavy place only seems slow, and what is given is gone.
                weight = min(weight, self._queue.weight / (2 * len(working)))
        is_last = all(one.stage in (Stage.IDLE, Stage.COLLECTING) for _, one in working)
        # Nobody else is at work who could take what this one is too slow for.
        return self._queue.weight if is_last and weight <= 0 else weight

    def _send_parts(self, number: int, weight: float) -> None:
        """Send slabs; what may be uneven in two launches, so that its speed is known half-way."""
        state = self.execution.states[number]
        spans = self._queue.take(weight, anchor=state.anchor)
        rate, is_first = state.effective_rate, not state.has_begun
        parts = [spans]
        if not self._settings.fixed_shares and self._policy.cuts(weight, rate, is_first=is_first):
            parts = cut(spans, _FIRST_PART, from_end=state.anchor >= 1)
        if not state.queued:
            state.begun_s, state.stage = self._devices.now_s(), Stage.RUNNING
        for part in parts:
            state.queued.append((tuple(part), self._queue.weight_of(part)))
            self._send(number, Run(space=self._launch.space, spans=tuple(part)))
        self._report("running")

    def _collect(self, number: int) -> None:
        state = self.execution.states[number]
        self._is_collecting = True
        state.handed_over = state.owned.copy()
        state.stage = Stage.COLLECTING
        self._send(number, self._launch.collect(number, state.owned & ~state.collected))
        self._report("collecting results")

    def _stop_samples(self) -> None:
        """End the samples of devices too slow to be of use: all the work is given out."""
        for number, state in self._alive():
            if state.stage is Stage.SAMPLING and not state.is_told:
                state.is_told = True
                self._send(number, Collect(spans={}, targets={}))  # any command interrupts

    def _leave_out(self) -> None:
        """Have devices rest whose samples show that they are too slow to be of use."""
        for number, state in self._alive():
            is_sampling = state.stage is Stage.SAMPLING and state.can_work
            if is_sampling and state.is_hopeless(self._devices.now_s(), self._add_up_others(state)):
                state.is_left_out = True
                self._devices.rest(number)

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
        lost = state.owned & ~state.collected
        for spans, _ in state.queued:
            lost |= mark(spans, lost.size)
        state.queued.clear()
        state.owned &= state.collected
        others = self._list_others()
        for _, one in others:
            # It has run these too, as samples; they must not run twice on the same buffers.
            own = lost & one.ran
            one.owned |= own
            lost &= ~own
        self._queue.put_back(lost)
        if not self._is_done() and not others:
            raise self.execution.explain_end()
        for other, _ in others:
            self._give(other)

    def _list_others(self) -> list[tuple[int, DeviceState]]:
        """Give those who may take a failed device's work: who was left out, if nobody else can."""
        if not any(one.can_work for _, one in self._alive()):
            for number, state in self._alive():
                if state.is_left_out:
                    state.is_left_out = False
                    self._devices.wake(number)
                    sampled = state.ran & self._queue.free
                    state.owned |= sampled
                    self._queue.remove(spans_of(np.flatnonzero(sampled)))
        return [(n, one) for n, one in self._alive() if one.can_work]

    def _note_spread(self) -> None:
        """Weigh slabs by what samples say, where work is uneven."""
        seen = [one.sampled for one in self.execution.states if one.sampled is not None]
        if all(one.is_even for one in seen):
            return
        self._queue.weigh(weigh_slabs([one.rates for one in seen], self._launch.space.count))

    def _note_estimate(self) -> None:
        """Say once when all will be done, as soon as every speed is known."""
        working = [one for _, one in self._alive() if one.can_work]
        if self.execution.estimated_end_s is not None or any(
            one.rate is None or one.sampled is None for one in working
        ):
            return
        speeds = [DeviceSpeed(rate=one.effective_rate, free_at_s=one.free_at_s) for one in working]
        now_s, count = self._devices.now_s(), self._launch.space.count
        end_s = finish_time(speeds, self._queue.weight, now_s)
        self.execution.estimated_end_s = end_s
        for one, speed in zip(working, speeds, strict=True):
            more = (speed.rate or 0.0) * max(0.0, end_s - max(now_s, one.free_at_s))
            given = sum(self._queue.weight_of(spans) for spans, _ in one.queued)
            owned = self._queue.weight_of(spans_of(np.flatnonzero(one.owned)))
            one.estimated_share = (owned + given + more) / count

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
