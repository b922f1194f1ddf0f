"""Runs one launch over devices: shares by estimates, corrected by what is measured.

1. Every device builds the kernel, takes the buffers and runs a slab: drivers do at the first launch
   what they have put off. No device is given more until all are so far.
2. Devices without an estimate run a few slabs at the same places and at the same time, which tell
   their speeds and where work lies. A device that is done goes on in small parts.
3. Once all speeds are known, a device gets most of its fair share, less where its speed is in
   doubt. The first and the last device work from the two ends of the index space towards each
   other.
4. What is left is divided by the speeds measured by then, in ever smaller parts, so that all finish
   together. A device gets its next part while it runs the last launch that it has: with all cores
   at work, the host's answer takes milliseconds.
5. A device with nothing left to do hands its results over.

No slab is run by two devices, but for those of a device that fails or is left out: the others do
again what it has not handed over.
"""

import copy
import math
from collections.abc import Callable, Sequence
from enum import Enum, auto

import numpy as np
import numpy.typing as npt

from kernelcast.balancing.device_processes import DeviceProcesses
from kernelcast.balancing.launch_buffers import (
    BoolArray,
    Failed,
    LaunchBuffers,
    Prepare,
    Reply,
    Run,
)
from kernelcast.balancing.settings import BalanceSettings
from kernelcast.records.balance import Activity, Bar, SlabSpace, Span
from kernelcast.records.errors import DeviceError, InputError, KernelcastError
from kernelcast.records.estimates import Interval
from kernelcast.sampling.plan import GOLDEN

FloatArray = npt.NDArray[np.float64]
Slabs = npt.NDArray[np.intp]
"""Numbers of slabs, ascending."""
# The share of a device's time for its work that samples take at most.
_MOST_SAMPLED = 0.1
# A device that would do less than this share of the work is left out: devices that share
# processors or memory take more from each other than that.
_LEAST_SHARE = 0.05
# So many times what is worth a launch are given at once, without a rest, or in one launch.
_LITTLE = 4.0


class WorkQueue:
    """Slabs that no device has been given yet."""

    def __init__(self, count: int, weights: FloatArray | None, *, is_even: bool) -> None:
        self._is_free = np.ones(count, dtype=np.bool_)
        self._weights = np.ones(count) if weights is None else weights
        self.is_even = is_even
        self.is_weighed = weights is not None

    @property
    def weight(self) -> float:
        return float(self._weights[self._is_free].sum())

    @property
    def is_empty(self) -> bool:
        return not self._is_free.any()

    def weigh(self, weights: FloatArray) -> None:
        self._weights, self.is_even = weights, False

    def weight_of(self, slabs: Slabs) -> float:
        return float(self._weights[slabs].sum())

    def put_back(self, slabs: BoolArray) -> None:
        self._is_free |= slabs

    def take(self, weight: float, *, anchor: float) -> Slabs:
        """Take slabs of about a weight: from the first one on (anchor 0), from the last one on
        downwards (1), or the nearest first."""
        free = np.flatnonzero(self._is_free)
        if anchor >= 1:
            order = free[::-1]
        else:
            place = anchor * self._is_free.size
            order = np.concatenate([free[free >= place], free[free < place][::-1]])
        total = np.cumsum(self._weights[order])
        # The slab that the limit falls into is taken if more than half of it is wanted.
        chosen = int(np.searchsorted(total - 0.5 * self._weights[order], weight))
        taken = np.sort(order[: max(1, chosen)])
        self._is_free[taken] = False
        return taken


def spans_of(slabs: Slabs) -> list[Span]:
    """Join ascending numbers of slabs that follow each other."""
    if not slabs.size:
        return []
    breaks = np.flatnonzero(np.diff(slabs) != 1) + 1
    return [(int(run[0]), int(run[-1]) + 1) for run in np.split(slabs, breaks)]


def cut(slabs: Slabs, share: float, *, from_end: bool) -> list[Slabs]:
    """Cut slabs in two, the first part from the end at which the device begins."""
    middle = round(share * slabs.size)
    parts = np.split(slabs, [slabs.size - middle if from_end else middle])
    return [part for part in (parts[::-1] if from_end else parts) if part.size]


def weigh_slabs(samples: Sequence[Sequence[tuple[float, float]]], count: int) -> FloatArray:
    """Estimate how work is spread over slabs from what devices have sampled."""
    points = [
        (place, seconds / (sum(s for _, s in one) / len(one)))
        for one in samples
        if one
        for place, seconds in one
    ]
    if not points:
        return np.ones(count)
    points.sort()
    places, work = (np.array(column) for column in zip(*points, strict=True))
    if places.size >= 3:
        # Each place with its neighbours: a single disturbed launch is no region of heavy work.
        padded = np.concatenate([work[:1], work, work[-1:]])
        work = np.median(np.stack([padded[:-2], padded[1:-1], padded[2:]]), axis=0)
    middles = (np.arange(count) + 0.5) / count
    found = np.interp(middles, places, work)
    return np.asarray(found * (count / found.sum()), dtype=np.float64)


class Stage(Enum):
    PREPARING = auto()
    WARMING = auto()
    SAMPLING = auto()
    RUNNING = auto()
    IDLE = auto()
    COLLECTING = auto()
    OUT = auto()
    """Nothing more in this launch: it has failed, or is too slow to be of use."""


class DeviceState:
    """A device and what it has done; it takes slabs from its `anchor` on, 0 the first, 1 the last.

    Its `estimate` is what the whole launch takes on it alone, as far as that is known before.
    """

    def __init__(
        self, number: int, anchor: float, slabs: int, estimate: Interval | None, stage: Stage
    ) -> None:
        self.number, self.anchor = number, anchor
        self.estimate, self.stage = estimate, stage
        self.owned: BoolArray = np.zeros(slabs, dtype=np.bool_)
        """Slabs that its results are, or will be, taken of."""
        self.collected: BoolArray = np.zeros(slabs, dtype=np.bool_)
        """Those whose results are in the shared memory."""
        self.queued: list[tuple[Slabs, float]] = []
        """Slabs that it has been given and has not reported, and their work."""
        self.rate: float | None = None
        """Work per second while it runs, without the transfer of results."""
        self.doubt = 1.0
        """By which factor its speed may differ from that, either way."""
        self.samples: list[tuple[Slabs, float]] = []
        self.runs: list[tuple[Slabs, float]] = []
        """What it ran at each place that all devices sample, and beyond that; how long it took."""
        self.transfer_s = 0.0
        """Time that the results of a unit of work take, in seconds."""
        self.begun_s = 0.0
        """When it began what it is at, about."""
        self.estimated_share = self.real_s = 0.0
        self.error: KernelcastError | None = None
        self.is_gone = False
        """Whether it has failed for good, and not this launch alone."""
        self.is_left_out = False

    @property
    def owed(self) -> BoolArray:
        """Slabs whose results are still to be handed over."""
        return self.owned & ~self.collected

    @property
    def effective_rate(self) -> float | None:
        """Work per second, transfer of results included; None while it is not known."""
        return None if self.rate is None else 1 / (1 / self.rate + self.transfer_s)

    @property
    def known_rate(self) -> float | None:
        """The rate by which work is given out: not known while it samples."""
        return None if self.stage is Stage.SAMPLING else self.effective_rate

    @property
    def free_at_s(self) -> float:
        """When it will have done what it has been given, about."""
        owed = self.owed
        for slabs, _ in self.queued:
            owed[slabs] = False
        known = self.effective_rate
        working_s = sum(work for _, work in self.queued) / known if known else 0.0
        return self.begun_s + working_s + int(owed.sum()) * self.transfer_s

    def learn(self, weigh: Callable[[Slabs], float]) -> None:
        """Tell its speed, the latest runs first; a light place does not make a device fast."""
        paces = [(weigh(slabs), spent_s) for slabs, spent_s in self.samples + self.runs]
        if not paces:
            return
        self.rate = sum(work for work, _ in paces) / sum(spent_s for _, spent_s in paces)
        if self.runs:
            self.doubt, lately = 1.0, 0.0
            for work, spent_s in paces[len(self.samples) :]:
                lately = (lately + spent_s / work) / 2 if lately else spent_s / work
            self.rate = min(self.rate, 1 / lately)
        else:
            self.doubt = _spread([spent_s / work for work, spent_s in paces])

    def list_paces(self) -> list[tuple[float, float]]:
        """List the middle of each sample as a share of the slabs, and its seconds per slab."""
        return [
            (float(slabs[0] + slabs[-1] + 1) / 2 / self.owned.size, spent_s / slabs.size)
            for slabs, spent_s in self.samples
        ]

    def predict(self) -> None:
        if self.rate is not None and self.samples:
            factor = _spread([pace for _, pace in self.list_paces()])
            self.estimate = Interval.within(factor, self.owned.size / self.rate, 0.9)


class Scheduler:
    """Runs one launch on the devices whose stage is not `Stage.OUT`; times are by their clock."""

    def __init__(
        self,
        devices: DeviceProcesses,
        prepare: Prepare,
        buffers: LaunchBuffers,
        space: SlabSpace,
        queue: WorkQueue,
        states: Sequence[DeviceState],
        settings: BalanceSettings,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._devices = devices
        self._prepare, self._buffers = prepare, buffers
        self._space, self._queue = space, queue
        self._settings = settings
        self._report = report
        self.states = states
        self.bars: list[Bar] = []
        self.estimated_end_s: float | None = None
        """When all results would be there, said once all speeds were known."""
        self.first_s = self.last_s = 0.0
        """When all devices were prepared, and when the last results were there."""
        shares = settings.fixed_shares  # one for each device, or none
        edges = [round(space.count * sum(shares[:n])) for n in range(len(shares) + 1)]
        self._fixed = {n: float(edges[n + 1] - edges[n]) for n in range(len(shares))}
        self._has_begun = False

    def run(self) -> None:
        for state in self._working():
            state.begun_s = self._devices.now_s()
            self._devices.send(state.number, self._prepare)
        self._report("preparing")
        while not self._is_done():
            is_watched = any(
                one.stage in (Stage.WARMING, Stage.SAMPLING) for one in self._working()
            )
            heard = self._devices.receive(0.0 if is_watched else None)
            if heard is None:
                self._leave_out()
                # Between two looks at devices that warm up or sample.
                heard = self._devices.receive(20e-3)
            if heard is not None:
                number, reply = heard
                self._take(self.states[number], reply)
            if not self._has_begun:
                self._begin()
            for state in self.states if self._has_begun else ():
                if state.stage is not Stage.IDLE:
                    continue
                weight = 0.0 if self._queue.is_empty else self._allot(state)
                if weight > 0:
                    self._send_parts(state, weight)
                elif state.owed.any():
                    state.stage = Stage.COLLECTING
                    collect = self._buffers.collect(state.number, state.owed)
                    self._devices.send(state.number, collect)
                    self._report("collecting results")

    def _working(self) -> list[DeviceState]:
        return [one for one in self.states if one.stage is not Stage.OUT]

    def _is_done(self) -> bool:
        return self._queue.is_empty and not any(one.owed.any() for one in self.states)

    def _take(self, state: DeviceState, reply: Reply) -> None:
        if isinstance(reply, Failed):
            state.error, state.is_gone = reply.error, reply.is_final
            if state.stage is not Stage.OUT:
                self._lose(state)
                self._fixed.clear()
                if not self._is_done() and not self._working():
                    raise join_errors([one.error for one in self.states if one.error])
        elif state.stage is Stage.OUT:
            return
        elif state.stage is Stage.PREPARING:
            self._draw(state, Activity.PREPARE, reply)
            if reply.uploaded_bytes:
                returned = self._buffers.count_returned(reply.in_place)
                returning_s = returned * reply.upload_s / reply.uploaded_bytes
                state.transfer_s = returning_s / self._space.count
            state.stage, state.begun_s = Stage.IDLE, reply.end_s
            if not self._settings.fixed_shares and not self._queue.is_empty:
                self._run(state, [self._queue.take(0.0, anchor=state.anchor)], Stage.WARMING)
        elif state.stage is Stage.COLLECTING:
            self._draw(state, Activity.COLLECT, reply)
            self.last_s = max(self.last_s, reply.end_s)
            state.collected |= state.owned
            state.stage = Stage.IDLE
        else:
            self._take_ran(state, reply)

    def _begin(self) -> None:
        """Have devices sample, or start at once where they have estimates, when all are warm."""
        working = self._working()
        if any(one.stage in (Stage.PREPARING, Stage.WARMING) for one in working):
            return
        self._has_begun = True
        self.first_s = self._devices.now_s()
        if self._settings.fixed_shares:
            return
        # Fewer than four slabs for each device are divided without samples.
        is_sampled = self._queue.weight >= 4 * len(working)
        for state in working:
            if state.estimate is not None:
                state.rate = self._space.count / state.estimate.seconds
                state.doubt = math.sqrt(state.estimate.high / state.estimate.low)
            elif is_sampled:
                self._report("sampling")
                self._sample(state, [0], 1.0)
        self._estimate_end()

    def _sample(self, state: DeviceState, places: Sequence[int], work: float) -> None:
        """Have a device run slabs at each of some places, which are the same for all."""
        taken = [self._queue.take(work, anchor=(0.31 + one * GOLDEN) % 1) for one in places]
        self._run(state, [slabs for slabs in taken if slabs.size], Stage.SAMPLING)

    def _take_ran(self, state: DeviceState, reply: Reply) -> None:
        slabs, work = state.queued.pop(0)
        stage, state.begun_s = state.stage, reply.end_s
        spent_s = max(reply.end_s - reply.start_s, 1e-9)
        activity = Activity.RUN if stage is Stage.RUNNING else Activity.SAMPLE
        self._draw(state, activity, reply, spans_of(slabs))
        state.real_s += spent_s
        if not state.queued:
            state.stage = Stage.IDLE
        if stage is Stage.RUNNING:
            state.runs.append((slabs, spent_s))
            state.learn(self._queue.weight_of)
            if len(state.queued) == 1 and not self._queue.is_empty and not self._fixed:
                # It gets more before its last launch ends, so that it need not wait for the host.
                self._send_parts(state, self._allot(state))
            return
        if stage is Stage.WARMING:
            state.rate = work / spent_s
            return
        state.samples.append((slabs, spent_s))
        state.learn(self._queue.weight_of)
        state.predict()
        if len(state.samples) == 1:
            # Have it go on at other places, as its share of the work allows.
            count = self._space.count
            rate = state.rate or 0.0
            share_s = count / sum(one.rate or 0.0 for one in self._working() if one.samples)
            # At most eight places more are sampled; a launch at each should last 0.2 ms.
            places = min(8, int(_MOST_SAMPLED * rate * share_s))
            if places:
                wanted_s = min(places * 0.2e-3, _MOST_SAMPLED * share_s)
                work = max(1.0, rate * max(self._settings.budget * share_s, wanted_s) / places)
                self._sample(state, range(1, places + 1), work)
        self._estimate_end()

    @property
    def _shortest_s(self) -> float:
        """The least that is worth a launch, in seconds: twice as long where work is even."""
        return self._settings.shortest_s * (2.0 if self._queue.is_even else 1.0)

    def _allot(self, state: DeviceState) -> float:
        """Say how much of the work left a device gets next."""
        if self._fixed:
            return self._fixed.pop(state.number, 0.0)
        left, rate, weight = self._queue.weight, state.effective_rate, 0.0
        if rate is None or rate * state.doubt >= _LEAST_SHARE * self._add_up_others(state):
            weight = self._find_part(state, left)
        is_last = all(one.stage in (Stage.IDLE, Stage.COLLECTING) for one in self._working())
        # No other device is at work that could take what this one is too slow for.
        return left if is_last and weight <= 0 else weight

    def _find_part(self, state: DeviceState, left: float) -> float:
        """Find a device's next part: all that is left where that is next to nothing, none if the
        others are done before it could help; what was given out cannot be taken back."""
        own, working, now_s = state.known_rate, self._working(), self._devices.now_s()
        if own is None:
            return left / len(working)
        least = own * self._shortest_s
        if any(one.known_rate is None for one in working):
            # While a speed is not known, a hundredth of the work left is given at a time.
            return least + 0.01 * left
        fair = own * (_find_finish(working, left, now_s) - max(state.free_at_s, now_s))
        if fair >= left - least and left <= _LITTLE * least:
            return left
        # Less than half of the least that is worth a launch is left to others.
        if fair < 0.5 * least:
            return 0.0
        if fair <= 2 * least:
            return fair
        # Parts of a fair share where speeds have been seen at work: small parts cost time, large
        # ones are a risk where work differs from place to place.
        later = 0.7 if self._queue.is_even else 0.5
        part = later if state.runs else self._settings.first_share
        # Without harm it can be given this much if it is slower and all others are faster.
        slow = own / state.doubt
        fast = sum((one.known_rate or 0.0) * one.doubt for one in working) - own * state.doubt
        return max(min(part * min(fair, left), left * slow / (slow + fast)), least)

    def _send_parts(self, state: DeviceState, weight: float) -> None:
        """Send slabs; what may be uneven in two launches, so that its speed is known half-way."""
        if weight <= 0:
            return
        slabs = self._queue.take(weight, anchor=state.anchor)
        is_sampling = any(one.stage is Stage.SAMPLING for one in self._working())
        is_short = weight < _LITTLE * (state.effective_rate or 0.0) * self._shortest_s
        is_telling = not is_short and not (state.runs and self._queue.is_even)
        is_cut = not self._settings.fixed_shares and (is_sampling or is_telling)
        # A part that is run in two launches: the share of the first one.
        parts = cut(slabs, 0.6, from_end=state.anchor >= 1) if is_cut else [slabs]
        self._run(state, parts, Stage.RUNNING)
        self._report("running")

    def _run(self, state: DeviceState, parts: Sequence[Slabs], stage: Stage) -> None:
        """Have a device run slabs that were taken for it, each part by a command of its own."""
        if not state.queued:
            state.begun_s = self._devices.now_s()
        state.stage = stage
        for part in parts:
            state.owned[part] = True
            state.queued.append((part, self._queue.weight_of(part)))
            boxes = tuple(self._space.box(span) for span in spans_of(part))
            self._devices.send(state.number, Run(boxes=boxes))

    def _leave_out(self) -> None:
        """Do without devices that are too slow to be of use: the others do what they were given."""
        now_s = self._devices.now_s()
        for state in self._working():
            others = [one for one in self._working() if one is not state]
            if state.stage not in (Stage.WARMING, Stage.SAMPLING) or not others:
                continue
            rate = self._add_up_others(state)
            if state.stage is Stage.SAMPLING:
                spent_s = now_s - state.begun_s
                work = sum(work for _, work in state.queued)
                # What short launches cost beside their work tells nothing of long ones: a sample
                # may take so long.
                is_hopeless = spent_s > 50e-3 and work < _LEAST_SHARE * rate * spent_s
            else:
                spent_s = now_s - max(one.begun_s for one in (state, *others))
                is_idle = all(one.stage is Stage.IDLE for one in others)
                is_hopeless = is_idle and spent_s * rate > state.owned.size
            if is_hopeless:
                state.is_left_out = True
                self._lose(state)

    def _add_up_others(self, state: DeviceState) -> float:
        return sum(one.effective_rate or 0.0 for one in self._working() if one is not state)

    def _lose(self, state: DeviceState) -> None:
        state.stage = Stage.OUT
        self._queue.put_back(state.owed)
        state.owned &= state.collected
        state.queued.clear()
        if self._has_begun:
            self._estimate_end()

    def _estimate_end(self) -> None:
        """Weigh slabs and say when all will be done, once all have sampled."""
        working, count = self._working(), self._space.count
        if (
            self.estimated_end_s is not None
            or any(one.stage is Stage.SAMPLING for one in working)
            or not all(one.estimate for one in working)
        ):
            return
        sampled = [one for one in working if one.samples]
        if sampled and not self._queue.is_weighed:
            most = max(len(one.samples) for one in sampled)
            weights = weigh_slabs(
                [one.list_paces() for one in sampled if 2 * len(one.samples) > most], count
            )
            # Places whose work differs by less differ by the machine's noise.
            if weights.max() > 1.5 * weights.min():
                self._queue.weigh(weights)
        for one in sampled:
            one.learn(self._queue.weight_of)
            one.predict()
        now_s = self._devices.now_s()
        end_s = _find_finish(working, self._queue.weight, now_s)
        self.estimated_end_s = end_s
        left = copy.deepcopy(self._queue)
        for one in working:
            more = (one.known_rate or 0.0) * max(0.0, end_s - max(now_s, one.free_at_s))
            more_slabs = left.take(more, anchor=one.anchor).size if more else 0
            one.estimated_share = float(one.owned.sum() + more_slabs) / count

    def _draw(
        self, state: DeviceState, activity: Activity, reply: Reply, spans: Sequence[Span] = ()
    ) -> None:
        self.bars.append(
            Bar(
                device=state.number,
                activity=activity,
                start_s=reply.start_s,
                end_s=reply.end_s,
                work_groups=self._space.work_groups(spans),
            )
        )


def _find_finish(devices: Sequence[DeviceState], left: float, now_s: float) -> float:
    """Say when all would be done at the same time if the work left is divided so, in seconds."""
    rates = [(one.free_at_s, one.known_rate) for one in devices]
    known = sorted((max(free_at_s, now_s), rate) for free_at_s, rate in rates if rate is not None)
    rate, started = 0.0, 0.0
    finish = now_s
    for place, (free_at_s, own) in enumerate(known):
        rate += own
        started += own * free_at_s
        finish = (left + started) / rate
        if place + 1 == len(known) or finish <= known[place + 1][0]:
            break
    return finish


def _spread(paces: Sequence[float]) -> float:
    """Find the factor by which the mean of some times may be off: two standard errors."""
    if len(paces) < 2:
        # The speed of a single sample may be wrong by this factor either way.
        return 2.0
    error = float(np.std(paces, ddof=1) / np.mean(paces)) / math.sqrt(len(paces))
    return 1 + 2 * error


def join_errors(errors: Sequence[KernelcastError]) -> KernelcastError:
    """Make one error of the devices' errors: the launch's fault if every device refuses it."""
    if len(errors) == 1 or all(isinstance(one, InputError) for one in errors):
        return errors[0]
    return DeviceError("; ".join(str(one) for one in errors))
