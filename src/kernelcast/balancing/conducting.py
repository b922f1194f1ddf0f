"""Runs one launch on a crew of devices: samples, first shares, corrections, results.

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

from kernelcast.balancing.course import Course, LaunchOrders
from kernelcast.balancing.crew import Crew
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
from kernelcast.balancing.players import Player, Stage
from kernelcast.balancing.pool import Pool, count_fixed, cut, mark, spans_of, weigh_slabs
from kernelcast.balancing.settings import BalanceSettings
from kernelcast.balancing.shares import SharePolicy, Standing, finish_time
from kernelcast.records.balance import Activity, Bar, Span
from kernelcast.records.errors import KernelcastError

_FIRST_PART = 0.6
# Where work is known to be even, the first parts soon tell more than samples, and cost less.
_EVEN_BUDGET = 0.25


class Conductor:
    """Runs one launch on a crew.

    Parameters
    ----------
    crew : Crew
        The devices.
    orders : LaunchOrders
        The launch.
    settings : BalanceSettings
        How to balance.
    devices : sequence of int
        Devices that take part; the others have failed before.
    report : callable, optional
        Is told of each stage.
    """

    def __init__(
        self,
        crew: Crew,
        orders: LaunchOrders,
        settings: BalanceSettings,
        devices: Sequence[int],
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._crew = crew
        self._orders = orders
        self._settings = settings
        self._report = report
        self._policy = SharePolicy.make(settings, is_known_even=orders.is_known_even)
        count = orders.space.count
        last = max(1, crew.size - 1)
        players = [Player.make(count, number / last) for number in range(crew.size)]
        for number, player in enumerate(players):
            if number not in devices:
                player.stage = Stage.FAILED
        self._pool = Pool(count)
        self._fixed = count_fixed(settings.fixed_shares, count)
        self._is_collecting = False
        self.course = Course(players=players)

    def run(self) -> Course:
        """Run the launch.

        Raises
        ------
        InputError
            If every device refuses the launch itself.
        DeviceError
            If no device is left to do the work; says which failed and why.
        """
        for number, player in self._alive():
            player.begun_s = self._crew.now_s()
            self._orders.prepare(number)
            player.outstanding += 1
        self._report("preparing")
        try:
            while not self._is_done():
                number, reply = self._crew.receive()
                self._take(number, reply)
                self._leave_out()
        finally:
            for number, player in enumerate(self.course.players):
                if player.is_left_out:
                    self._crew.wake(number)
        return self.course

    def _alive(self) -> list[tuple[int, Player]]:
        return [(n, one) for n, one in enumerate(self.course.players) if one.is_alive]

    def _is_done(self) -> bool:
        if not self._pool.is_empty:
            return False
        return all(
            not one.queued and not (one.owned & ~one.collected).any() for one in self.course.players
        )

    def _take(self, number: int, reply: Reply) -> None:
        player = self.course.players[number]
        if isinstance(reply, Hint):
            if player.stage is Stage.SAMPLING:
                player.note_hint(reply.rate)
            return
        player.outstanding -= 1
        if isinstance(reply, Failed):
            player.is_gone = reply.is_final
            self._note_failure(number, reply.error)
        elif player.is_alive:
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
        player = self.course.players[number]
        self._draw(number, Activity.PREPARE, reply)
        if self._is_collecting:
            player.is_late, player.stage = True, Stage.IDLE
            return
        orders = self._orders
        if reply.uploaded_bytes:
            returned = sum(
                size for index, size in orders.result_bytes.items() if index not in reply.in_place
            )
            returning_s = returned * reply.upload_s / reply.uploaded_bytes
            player.transfer_s = returning_s / orders.space.count
        settings = self._settings
        if settings.fixed_shares:
            player.stage = Stage.IDLE
            self.course.first_s = min(self.course.first_s or reply.end_s, reply.end_s)
            self._give(number)
            for other, _ in self._alive():
                self._give(other)  # who was done before may hand over now
            return
        player.stage, player.begun_s = Stage.SAMPLING, reply.end_s
        seed = settings.seed * len(self.course.players) + number
        order = Sample(
            space=orders.space,
            budget=settings.budget * (_EVEN_BUDGET if orders.is_known_even else 1.0),
            seed=seed,
            is_known_even=orders.is_known_even,
        )
        self._send(number, order)
        self._report("sampling")

    def _take_sampled(self, number: int, reply: Sampled) -> None:
        player = self.course.players[number]
        self._draw(number, Activity.SAMPLE, reply, reply.spans)
        if not self.course.first_s:
            self.course.first_s = reply.start_s
        player.sampled, player.stage = reply, Stage.IDLE
        mine = mark(reply.spans, player.ran.size)
        player.ran |= mine
        if player.is_left_out:  # it said so before it came to rest, and could not hand them over
            return
        player.owned |= mine & self._pool.free
        self._pool.remove(reply.spans)
        player.real_s += reply.end_s - reply.start_s
        if reply.seconds is not None:
            player.note_sampled(float(mine.sum()), player.ran.size / reply.seconds)
        self._note_spread()
        self._note_estimate()
        self._give(number)

    def _take_ran(self, number: int, reply: Ran) -> None:
        player = self.course.players[number]
        self._draw(number, Activity.RUN, reply, reply.spans)
        _, weight = player.queued.pop(0)
        done = mark(reply.spans, player.ran.size)
        player.ran |= done
        player.owned |= done
        player.real_s += reply.end_s - reply.start_s
        player.note_speed(weight, reply.end_s - reply.start_s)
        player.has_begun, player.begun_s = True, reply.end_s
        self._note_estimate()
        if len(player.queued) == 1:
            self._give_ahead(number)
        if not player.queued:
            player.stage = Stage.IDLE
            self._give(number)

    def _take_collected(self, number: int, reply: Collected) -> None:
        player = self.course.players[number]
        self._draw(number, Activity.COLLECT, reply)
        self.course.last_s = max(self.course.last_s, reply.end_s)
        player.collected |= player.handed_over
        player.stage = Stage.IDLE
        self._give(number)

    def _give(self, number: int) -> None:
        """Give a device that waits its next part, or have it hand its results over."""
        player = self.course.players[number]
        if not (player.stage is Stage.IDLE and player.can_work):
            return
        weight = 0.0 if self._pool.is_empty else self._allot(number)
        if weight > 0:
            self._send_parts(number, weight)
        elif (player.owned & ~player.collected).any() and not self._is_waited_for():
            self._collect(number)
        if self._pool.is_empty:
            self._stop_samples()

    def _give_ahead(self, number: int) -> None:
        """Give a device more before its last launch ends, so that it need not wait for us.

        Not while somebody's speed is unknown: what has been given cannot be taken back.
        """
        are_known = all(one.rate is not None for _, one in self._alive() if one.can_work)
        is_wanted = are_known and not self._settings.fixed_shares
        weight = self._allot(number) if is_wanted and not self._pool.is_empty else 0.0
        if weight > 0:
            self._send_parts(number, weight)
        if self._pool.is_empty:
            self._stop_samples()

    def _is_waited_for(self) -> bool:
        """Tell whether somebody still takes the buffers that results would be written into."""
        is_preparing = any(one.stage is Stage.PREPARING for _, one in self._alive())
        return is_preparing and not self._pool.is_empty

    def _allot(self, number: int) -> float:
        if self._fixed:
            return self._fixed.pop(number, 0.0)
        working = [(n, one) for n, one in self._alive() if one.can_work]
        standings = [
            Standing(rate=one.effective_rate, free_at_s=one.free_at_s, doubt=one.doubt)
            for _, one in working
        ]
        weight = 0.0
        player = self.course.players[number]
        if not player.is_too_slow(self._add_up_others(player)):
            weight = self._policy.allot(
                standings,
                [n for n, _ in working].index(number),
                self._pool.weight,
                self._crew.now_s(),
                is_first=not player.has_begun,
            )
            if not self._orders.is_known_even and any(
                one.stage is Stage.SAMPLING for _, one in working
            ):
                # Whoever sampled at a heavy place only seems slow, and what is given is gone.
                weight = min(weight, self._pool.weight / (2 * len(working)))
        is_last = all(one.stage in (Stage.IDLE, Stage.COLLECTING) for _, one in working)
        # Nobody else is at work who could take what this one is too slow for.
        return self._pool.weight if is_last and weight <= 0 else weight

    def _send_parts(self, number: int, weight: float) -> None:
        """Send slabs; what may be uneven in two launches, so that its speed is known half-way."""
        player = self.course.players[number]
        spans = self._pool.take(weight, anchor=player.anchor)
        rate, is_first = player.effective_rate, not player.has_begun
        parts = [spans]
        if not self._settings.fixed_shares and self._policy.cuts(weight, rate, is_first=is_first):
            parts = cut(spans, _FIRST_PART, from_end=player.anchor >= 1)
        if not player.queued:
            player.begun_s, player.stage = self._crew.now_s(), Stage.RUNNING
        for part in parts:
            player.queued.append((tuple(part), self._pool.weight_of(part)))
            self._send(number, Run(space=self._orders.space, spans=tuple(part)))
        self._report("running")

    def _collect(self, number: int) -> None:
        player = self.course.players[number]
        self._is_collecting = True
        player.handed_over = player.owned.copy()
        player.stage = Stage.COLLECTING
        self._send(number, self._orders.collect(number, player.owned & ~player.collected))
        self._report("collecting results")

    def _stop_samples(self) -> None:
        """End the samples of devices too slow to be of use: all the work is given out."""
        for number, player in self._alive():
            if player.stage is Stage.SAMPLING and not player.is_told:
                player.is_told = True
                self._send(number, Collect(spans={}, targets={}))  # any command interrupts

    def _leave_out(self) -> None:
        """Have devices rest whose samples show that they are too slow to be of use."""
        for number, player in self._alive():
            is_sampling = player.stage is Stage.SAMPLING and player.can_work
            if is_sampling and player.is_hopeless(self._crew.now_s(), self._add_up_others(player)):
                player.is_left_out = True
                self._crew.rest(number)

    def _add_up_others(self, player: Player) -> float:
        """Add up the rates of the others, as far as they are known."""
        others = [one for _, one in self._alive() if one.can_work and one is not player]
        return sum(one.effective_rate or 0.0 for one in others)

    def _note_failure(self, number: int, error: KernelcastError) -> None:
        """Have others do what a device has not handed over."""
        player = self.course.players[number]
        if not player.is_alive:
            return
        player.error, player.stage = error, Stage.FAILED
        self._fixed.clear()
        lost = player.owned & ~player.collected
        for spans, _ in player.queued:
            lost |= mark(spans, lost.size)
        player.queued.clear()
        player.owned &= player.collected
        others = self._list_others()
        for _, one in others:
            # It has run these too, as samples; they must not run twice on the same buffers.
            own = lost & one.ran
            one.owned |= own
            lost &= ~own
        self._pool.put_back(lost)
        if not self._is_done() and not others:
            raise self.course.explain_end()
        for other, _ in others:
            self._give(other)

    def _list_others(self) -> list[tuple[int, Player]]:
        """Give those who may take a failed device's work: who was left out, if nobody else can."""
        if not any(one.can_work for _, one in self._alive()):
            for number, player in self._alive():
                if player.is_left_out:
                    player.is_left_out = False
                    self._crew.wake(number)
                    sampled = player.ran & self._pool.free
                    player.owned |= sampled
                    self._pool.remove(spans_of(np.flatnonzero(sampled)))
        return [(n, one) for n, one in self._alive() if one.can_work]

    def _note_spread(self) -> None:
        """Weigh slabs by what samples say, where work is uneven."""
        seen = [one.sampled for one in self.course.players if one.sampled is not None]
        if all(one.is_even for one in seen):
            return
        self._pool.weigh(weigh_slabs([one.rates for one in seen], self._orders.space.count))

    def _note_estimate(self) -> None:
        """Say once when all will be done, as soon as every speed is known."""
        working = [one for _, one in self._alive() if one.can_work]
        if self.course.estimated_end_s is not None or any(
            one.rate is None or one.sampled is None for one in working
        ):
            return
        standings = [Standing(rate=one.effective_rate, free_at_s=one.free_at_s) for one in working]
        now_s, count = self._crew.now_s(), self._orders.space.count
        end_s = finish_time(standings, self._pool.weight, now_s)
        self.course.estimated_end_s = end_s
        for one, standing in zip(working, standings, strict=True):
            more = (standing.rate or 0.0) * max(0.0, end_s - max(now_s, one.free_at_s))
            given = sum(self._pool.weight_of(spans) for spans, _ in one.queued)
            owned = self._pool.weight_of(spans_of(np.flatnonzero(one.owned)))
            one.estimated_share = (owned + given + more) / count

    def _draw(
        self, number: int, activity: Activity, reply: Reply, spans: Sequence[Span] = ()
    ) -> None:
        self.course.bars.append(
            Bar(
                place=number,
                activity=activity,
                start_s=reply.start_s,
                end_s=reply.end_s,
                work_groups=self._orders.space.work_groups(spans),
            )
        )

    def _send(self, number: int, command: Command) -> None:
        self.course.players[number].outstanding += 1
        self._crew.send(number, command)
