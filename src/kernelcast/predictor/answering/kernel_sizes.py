"""What is known of a kernel's other sizes, and how often a size is to be sampled beside that."""

import itertools
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import fmean

from cachetools import FIFOCache

from kernelcast.launches.estimation import MOMENTS_APART_S
from kernelcast.launches.machines import find_sound_machine
from kernelcast.launches.recordings import LaunchFacts
from kernelcast.launches.settings import EstimateSettings
from kernelcast.models.evidence.fusion import Kind, Piece, fuse
from kernelcast.models.evidence.model import (
    SAMPLER,
    EvidenceModel,
    SampledMoment,
    find_uncalibrated,
)
from kernelcast.models.evidence.sizes import MEASURES, KnownSize, measure_work, tabulate_sizes
from kernelcast.predictor.answering.launch_history import LaunchHistory
from kernelcast.predictor.answering.launch_request import INSTRUCTIONS
from kernelcast.predictor.answering.policy import Policy
from kernelcast.predictor.answering.processes import EstimateOutcome
from kernelcast.records.errors import KernelcastError
from kernelcast.records.explanation import Tier
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem

USUAL_OVERHEAD_S = 0.05
"""Host time of a sampling beside its samples, in seconds, before one was seen on the device."""
_ITEMS, _INSTRUCTIONS = MEASURES.index("work_items"), MEASURES.index("instructions")
_MOST_SIZES = 64

SizeKey = tuple[NDRange | None, str]
"""Index space and digest of the arguments, whatever the kernel is called."""


def name_size(launch: LaunchIdentity) -> SizeKey:
    return launch.ndrange, launch.arguments_digest


_UNKNOWN = (math.nan,) * (len(MEASURES) - 2)


def count_items(
    ndrange: NDRange, instructions: object = None, working_set_bytes: float = math.nan
) -> KnownSize:
    """Make a size, its time not told yet, of its index space, source and buffers."""
    counted = math.log(instructions) if isinstance(instructions, int | float) else math.nan
    return KnownSize(
        log_work=(math.log(ndrange.work_item_count), counted, *_UNKNOWN),
        log_seconds=0.0,
        noise=0.0,
        at_s=0.0,
        working_set_bytes=working_set_bytes,
    )


def measure_launch(
    problem: Problem, identity: LaunchIdentity, ndrange: NDRange, facts: LaunchFacts | None
) -> KnownSize:
    told = identity.parameters.get(INSTRUCTIONS)
    plain = count_items(ndrange, told, float(problem.buffer_bytes))
    if facts is None:
        return plain
    logs, working_set = measure_work(
        {**facts.values, "static.work_items_count": float(ndrange.work_item_count),
         "static.buffer_bytes": float(problem.buffer_bytes)}
    )  # fmt: skip
    # Counted alike for launches that were sampled and for those that were not.
    counted = plain.log_work[1] if told is not None else logs[1]
    return replace(plain, log_work=(logs[0], counted, *logs[2:]), working_set_bytes=working_set)


_versions = itertools.count()


class KnownKernel:
    """What is known of one kernel on one device beside its launches; threads share one."""

    def __init__(
        self,
        read_stored: Callable[[], Mapping[SizeKey, LaunchHistory]],
        clock: Callable[[], float] = time.monotonic,
        *,
        depends_on_contents: bool | None = None,
    ) -> None:
        """Know whether the kernel's work depends on contents, as far as its source was read."""
        self.read_stored, self.clock = read_stored, clock
        self.depends_on_contents = depends_on_contents
        self.observed: FIFOCache[SizeKey, KnownSize] = FIFOCache(_MOST_SIZES)
        self.estimated: FIFOCache[SizeKey, tuple[KnownSize, tuple[SampledMoment, ...]]]
        self.estimated = FIFOCache(_MOST_SIZES)
        """What was estimated of sizes, and their samples."""
        self.asked_s = -math.inf
        self.version = next(_versions)
        """Another one once answers of the kernel's launches have to be made anew."""
        self.overhead_s: float | None = None
        """Host time that the last sampling took beside its samples, in seconds, builds left out."""
        self.lock = threading.RLock()

    def find_overhead(self, usual_s: float = USUAL_OVERHEAD_S) -> float:
        return usual_s if self.overhead_s is None else self.overhead_s

    def count_observed(self, identity: LaunchIdentity, policy: Policy) -> int:
        """Count the other sizes that were observed; none where contents matter."""
        is_wanted = (
            identity.ndrange is not None
            and identity.ndrange.local_size is not None
            and policy.settings.uses_history
            and policy.uses(Tier.SIZES)
            and self.depends_on_contents is False
        )
        if not is_wanted:
            return 0
        self._refresh()
        with self.lock:
            return len(self.observed.keys() - {name_size(identity)})

    def observe(self, key: SizeKey, size: KnownSize, history: LaunchHistory) -> None:
        known = _time_size(size, history)
        with self.lock:
            before = self.observed.pop(key, None)
            if known is not None:
                self.observed[key] = known
                # A size that moved by less changes no other's answer.
                if before is not None and abs(known.log_seconds - before.log_seconds) < 0.01:
                    return
            elif before is None:
                return
            if self.depends_on_contents is False:
                self.version = next(_versions)

    def estimate(self, key: SizeKey, known: KnownSize, moments: tuple[SampledMoment, ...]) -> None:
        with self.lock:
            self.estimated[key] = known, moments

    def weigh_samples(
        self, moments: tuple[SampledMoment, ...], key: SizeKey, model: EvidenceModel
    ) -> list[Piece]:
        """Make pieces of samples, less what the sampler got wrong of the kernel's other sizes."""
        with self.lock:
            past = [
                model.judge_samples(one, self.observed[other].log_seconds)
                for other, (_, sampled) in self.estimated.items()
                if other != key and other in self.observed
                for one in sampled
            ]
        told = fmean([one.log_seconds for one in moments]) if moments else None
        fresh_s = time.time() - 10.0  # an answer takes its own samples meanwhile
        return [
            model.weigh_samples(
                one,
                past,
                age_s=0.0 if one.at_s is None else max(fresh_s - one.at_s, 0.0),
                launch_log_seconds=told,
            )
            for one in moments
        ]

    def ask(
        self, identity: LaunchIdentity, size: KnownSize, model: EvidenceModel, policy: Policy
    ) -> tuple[Piece, ...]:
        """Make a piece of what other sizes say: observed ones, else those that were estimated."""
        if self.depends_on_contents is not False or not policy.uses(Tier.SIZES):
            return ()
        key, caches = name_size(identity), _find_caches(identity.device.id)
        with_observed = policy.settings.uses_history and not policy.settings.measure
        if with_observed:
            self._refresh()
        decides_instructions = math.isfinite(size.mix) and size.mix != 0
        with self.lock:
            estimated = {other: known for other, (known, _) in self.estimated.items()}
            for known in (self.observed, estimated) if with_observed else (estimated,):
                others = [
                    _complete(one, size)
                    for other, one in known.items()
                    # One whose instructions were not counted tells of no size that decides them.
                    if other != key
                    and (math.isfinite(one.log_work[_INSTRUCTIONS]) or not decides_instructions)
                ]
                if others:
                    table = tabulate_sizes(others, model.sizes, caches)
                    told = table.predict(size.log_work, time.time(), size.working_set_bytes)
                    return (model.rest_on_samples(told) if known is estimated else told,)
        return ()

    def _refresh(self) -> None:
        """Take what other processes have observed of the kernel meanwhile."""
        now_s = self.clock()
        with self.lock:
            # Other processes observe too: the store is asked again after 5 s.
            if now_s < self.asked_s + 5.0:
                return
            self.asked_s = now_s
        try:
            histories = self.read_stored()
        except KernelcastError:  # a request for the launch itself reports it
            return
        with self.lock:
            found: dict[SizeKey, KnownSize] = {}
            for key, history in histories.items():
                size = self.observed.get(key)
                if size is None and key[0] is not None:
                    size = count_items(key[0], history.instructions)
                if size is not None and (known := _time_size(size, history)) is not None:
                    found[key] = known
            for key, one in self.observed.items():
                # What was observed here in the last minute may still be on its way to the store.
                least_s = found[key].at_s if key in found else time.time() - 60.0
                if one.at_s > least_s:
                    found[key] = one
            self.observed.clear()
            self.observed.update(sorted(found.items(), key=lambda one: one[1].at_s))


def _complete(one: KnownSize, size: KnownSize) -> KnownSize:
    """Leave out measures that the size lacks which is asked for; complete what nobody noted."""
    pairs = zip(one.log_work, size.log_work, strict=True)
    log_work = tuple(ours if math.isfinite(asked) else math.nan for ours, asked in pairs)
    if math.isnan(log_work[_INSTRUCTIONS]) and size.mix == 0:
        log_work = (log_work[_ITEMS], log_work[_ITEMS], *log_work[2:])
    working_set = one.working_set_bytes
    if math.isnan(working_set):
        working_set = size.working_set_bytes * math.exp(one.log_work[0] - size.log_work[0])
    return replace(one, log_work=log_work, working_set_bytes=working_set)


def _time_size(size: KnownSize, history: LaunchHistory) -> KnownSize | None:
    """Have a size take the time that was observed of it; None where none is believed."""
    if not len(history):
        return None
    last = history.describe().last
    return replace(
        size,
        log_seconds=math.log(history.middle_s),
        noise=history.noise,
        at_s=0.0 if last is None else last.timestamp(),
    )


@lru_cache(maxsize=64)
def _find_caches(device_id: str) -> Mapping[str, float]:
    """Give the sizes of a device's caches in bytes; none where it was not calibrated."""
    machine = find_sound_machine(device_id)
    caches = () if machine is None else machine.caches
    return {one.name: float(one.size_bytes.value) for one in caches if one.size_bytes}


def choose_more(
    kept: EstimateOutcome,
    identity: LaunchIdentity,
    settings: EstimateSettings,
    kernel: KnownKernel,
    model: EvidenceModel,
) -> int:
    """Say at how many more moments a launch is to be sampled that was sampled before."""
    pieces = kernel.weigh_samples(kept.moments, name_size(identity), model)
    fresh = [
        replace(
            one,
            variance=one.variance - one.age_variance,
            basis_variance=one.basis_variance - one.age_variance,
        )
        for one in pieces
    ]
    # Four times the variance: an interval twice as wide.
    have_faded = fuse(pieces).variance > 4.0 * fuse(fresh).variance
    if not settings.least_gain or have_faded:
        return settings.plan.moments
    # A process that has not sampled it yet has all to do that was done then.
    overhead_s = kernel.find_overhead(kept.estimate.overhead_seconds)
    return choose_moments(pieces, model, settings, overhead_s)


def choose_by_sizes(
    kernel: KnownKernel, identity: LaunchIdentity, size: KnownSize, model: EvidenceModel,
    policy: Policy,
) -> int:  # fmt: skip
    """Say at how many moments a launch is to be sampled, by what other sizes tell of it."""
    settings = policy.settings
    is_free = settings.least_gain and not settings.measure
    pieces = kernel.ask(identity, size, model, policy) if is_free else ()
    if not pieces:
        return settings.plan.moments
    chosen = choose_moments(pieces, model, settings, kernel.find_overhead())
    # Of fewer observed sizes, none tells which is wrong: the launch is sampled.
    return chosen if kernel.count_observed(identity, policy) >= 3 else max(1, chosen)


def choose_moments(
    pieces: Sequence[Piece], model: EvidenceModel, settings: EstimateSettings, overhead_s: float
) -> int:
    """Choose how many moments each narrow the interval, in seconds, by more than they take."""
    plan, fused = settings.plan, fuse(pieces)
    known = model.surround(fused, settings.coverage)
    half_width = math.log(known.high / known.low) / 2

    def measure_half(variance: float) -> float:
        width = half_width * math.sqrt(variance / fused.variance)
        return known.seconds * math.sinh(min(width, 20.0))

    variance = model.usual_variance
    unseen = find_uncalibrated(fused.log_seconds)
    usual = Piece(
        kind=Kind.SAMPLES,
        log_seconds=fused.log_seconds,
        variance=variance + unseen,
        basis=SAMPLER,
        basis_variance=model.shared.launch * variance + unseen,
    )
    sampled_s = plan.budget / plan.moments * known.seconds
    before_s = measure_half(fused.variance)
    for count in range(plan.moments):
        expected = [replace(usual, moment=f"expected {n}") for n in range(count + 1)]
        after_s = measure_half(fuse([*pieces, *expected]).variance)
        cost_s = sampled_s + (MOMENTS_APART_S if count else overhead_s)
        if before_s - after_s < settings.least_gain * cost_s:
            return count
        before_s = after_s
    return plan.moments
