"""What estimates know from before: launches, kernels' other sizes, observations, kept samples.

Launches and kernels that were not asked for longest are forgotten where they are many. A store that
cannot be read costs an explanation, never an estimate; it is opened when first needed, made when
first written. Samples are kept in a file for each launch, contents of buffers included, and version
of the code; what they say fades with the time that has passed since.
"""

import hashlib
import itertools
import logging
import math
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from cachetools import FIFOCache, LRUCache

from kernelcast.launches.data_folder import choose_store, data_folder
from kernelcast.launches.estimation import MOMENTS_APART_S
from kernelcast.launches.machines import find_sound_machine
from kernelcast.launches.recordings import LaunchFacts, Recording
from kernelcast.launches.settings import EstimateSettings
from kernelcast.models.evidence.fusion import Kind, Piece, fuse
from kernelcast.models.evidence.model import (
    SAMPLER,
    EvidenceModel,
    SampledMoment,
    find_uncalibrated,
)
from kernelcast.models.evidence.sizes import MEASURES, KnownSize, measure_work, predict_size
from kernelcast.predictor.answering.composing import Basis
from kernelcast.predictor.answering.launch_history import Claim, LaunchHistory, Seen, claim
from kernelcast.predictor.answering.launch_request import INSTRUCTIONS, LaunchRequest
from kernelcast.predictor.answering.policy import Policy
from kernelcast.predictor.answering.processes import MOST_MOMENTS, EstimateOutcome
from kernelcast.records.errors import KernelcastError
from kernelcast.records.estimates import Estimate
from kernelcast.records.explanation import Tier
from kernelcast.records.ndrange import NDRange
from kernelcast.records.observation import ObservationFlag, Origin
from kernelcast.records.private_files import keep_among
from kernelcast.records.problem import LaunchIdentity, Problem
from kernelcast.workers.wire import NotDecodableError, decode, encode

if TYPE_CHECKING:
    from kernelcast.training_data.store import Store

USUAL_OVERHEAD_S: Final = 0.05
"""Host time of a sampling beside its samples, in seconds, before one was seen on the device."""
_ITEMS, _INSTRUCTIONS = MEASURES.index("work_items"), MEASURES.index("instructions")
SizeKey = tuple[NDRange | None, str]
"""Index space and digest of the arguments, whatever the kernel is called."""
_versions = itertools.count()
_COLUMNS = (
    "key", "measured_at_us", "seconds", "noise", "run_count", "flags", "linear_s", "ndrange",
    "arguments_digest", "parameters",
)  # fmt: skip
_log = logging.getLogger(__name__)


def name_size(launch: LaunchIdentity) -> SizeKey:
    return launch.ndrange, launch.arguments_digest


def count_items(
    ndrange: NDRange, instructions: object = None, working_set_bytes: float = math.nan
) -> KnownSize:
    """Make a size, its time not told yet, of its index space, source and buffers."""
    counted = math.log(instructions) if isinstance(instructions, int | float) else math.nan
    return KnownSize(
        log_work=(math.log(ndrange.work_item_count), counted, *[math.nan] * (len(MEASURES) - 2)),
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


@dataclass(slots=True, kw_only=True, eq=False)
class KnownKernel:
    """What is known of one kernel on one device beside its launches; threads share one."""

    read_stored: Callable[[], Mapping[SizeKey, LaunchHistory]]
    depends_on_contents: bool | None = None
    """Whether its work does, as far as its source was read."""
    observed: FIFOCache[SizeKey, KnownSize] = field(default_factory=lambda: FIFOCache(64))
    estimated: FIFOCache[SizeKey, tuple[KnownSize, tuple[SampledMoment, ...]]] = field(
        default_factory=lambda: FIFOCache(64)
    )
    asked_s: float = -math.inf
    version: int = field(default_factory=lambda: next(_versions))
    """Another one once answers of the kernel's launches have to be made anew."""
    overhead_s: float | None = None
    """Host time that the last sampling took beside its samples, in seconds, builds left out."""
    lock: threading.RLock = field(default_factory=threading.RLock)

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

    def ask(self, identity: LaunchIdentity, basis: Basis, policy: Policy) -> tuple[Piece, ...]:
        """Make a piece of what other sizes say: observed ones, else those that were estimated."""
        if self.depends_on_contents is not False or not policy.uses(Tier.SIZES):
            return ()
        key, size, model = name_size(identity), basis.size, basis.model
        caches = _find_caches(identity.device.id)
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
                    told = predict_size(
                        others, model.sizes, size.log_work, time.time(), size.working_set_bytes,
                        caches,
                    )  # fmt: skip
                    return (model.rest_on_samples(told) if known is estimated else told,)
        return ()

    def _refresh(self) -> None:
        """Take what other processes have observed of the kernel meanwhile."""
        now_s = time.monotonic()
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
    kernel: KnownKernel, identity: LaunchIdentity, basis: Basis, policy: Policy
) -> int:
    """Say at how many moments a launch is to be sampled, by what other sizes tell of it."""
    settings = policy.settings
    is_free = settings.least_gain and not settings.measure
    pieces = kernel.ask(identity, basis, policy) if is_free else ()
    if not pieces:
        return settings.plan.moments
    chosen = choose_moments(pieces, basis.model, settings, kernel.find_overhead())
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An estimate with the raw samples behind it; one without samples has none."""

    estimate: Estimate
    recording: Recording | None
    refine: "Callable[[], Answer] | None" = field(default=None, compare=False, repr=False)
    """Samples once more, and gives the better answer; None where that would not make it better."""


@dataclass(slots=True, kw_only=True, eq=False)
class KnownLaunch:
    identity: LaunchIdentity
    """The launch, local size chosen where that is known."""
    answer: Estimate | None = None
    """What is answered until something changes."""
    basis: Basis | None = None
    pieces: tuple[Piece, ...] = ()
    outcome: EstimateOutcome | None = None
    history: LaunchHistory | None = None
    recalled_s: float = math.inf
    expected: Claim | None = None
    """What the last answer said that rests on no observation, to hold those against it."""
    is_compared: bool = False
    """Whether its observations are held against what this launch says without them."""
    stamp: tuple[int, int] = (-1, -1)
    """Of the models and of the kernel's other sizes that the answer was made with."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    sampling: threading.RLock = field(default_factory=threading.RLock)
    """For the fields, and for the thread that makes the answer."""

    @property
    def is_open(self) -> bool:
        """Whether it was sampled, and would be better known by another moment."""
        return self.outcome is not None and 0 < len(self.outcome.moments) < MOST_MOMENTS

    def take_samples(self, outcome: EstimateOutcome) -> None:
        """Take other samples; the answer has to be made anew."""
        with self.lock:
            self.outcome = outcome
            self.answer = self.basis = None
            self.is_compared = False

    def record(self) -> Recording | None:
        """Give the samples, with all that the answer was put together of; None without any."""
        if self.outcome is None or not self.outcome.recording.runs:
            return None
        return replace(self.outcome.recording, pieces=self.pieces)


class Memory:
    """Launches and kernels that were met, and what the store tells of them; threads share one."""

    def __init__(self, place: "Store | str | Path | None" = None) -> None:
        self._place = place if isinstance(place, str | Path) else None
        self._store = None if isinstance(place, str | Path) else place
        self._is_ours = self._store is None
        self._lock = threading.Lock()
        self._launches: LRUCache[Hashable, KnownLaunch] = LRUCache(10_000)
        self._kernels: LRUCache[Hashable, KnownKernel] = LRUCache(1000)
        self._met = threading.Lock()
        """For these two; the other lock is the store's."""

    def open(self, *, may_create: bool) -> "Store | None":
        """Give the store; None where there is none and none may be made."""
        with self._lock:
            if self._store is None:
                place = self._place or choose_store()
                is_url = "://" in str(place)
                if not (may_create or is_url or Path(place).is_file()):
                    return None
                # A database takes longer to import than many an estimate to make.
                from kernelcast.launches.data_store import open_data_store

                self._store = open_data_store(place)
            return self._store

    def close(self) -> None:
        with self._lock:
            if self._store is not None and self._is_ours:
                self._store.close()

    def find(self, identity: LaunchIdentity) -> KnownLaunch:
        with self._met:
            name = _name(identity)
            if name not in self._launches:
                self._launches[name] = KnownLaunch(identity=identity)
            return self._launches[name]

    def join(self, known: KnownLaunch, identity: LaunchIdentity) -> KnownLaunch:
        """Say under which identity a launch really ran: its local size was chosen by the device."""
        own, before = _name(identity), _name(known.identity)
        if own == before:
            return known
        with self._met:
            other = self._launches.setdefault(own, known)
            self._launches[before] = other
        if other is known:
            known.identity = identity
            known.history = None
        return other

    def kernel_of(self, identity: LaunchIdentity) -> KnownKernel:
        """Find what is known of a kernel's other sizes on a device, with its driver."""
        key = _name(identity)[:3]
        with self._met:
            if key not in self._kernels:
                self._kernels[key] = KnownKernel(read_stored=partial(self._read_sizes, key))
            return self._kernels[key]

    def forget_device(self, device_id: str) -> None:
        with self._met:
            for key, one in [*self._launches.items()]:
                if one.identity.device.id == device_id:
                    del self._launches[key]

    def recall(self, identity: LaunchIdentity) -> LaunchHistory:
        """Give what was collected or observed of exactly this launch."""
        with self._met:
            known = self._launches.get(_name(identity))
        history = LaunchHistory(known=(known.expected,) if known and known.expected else ())
        rows = self._read(_name(identity)[:3], identity)
        # Estimates that came with observations: the last few.
        stored = list(dict.fromkeys(row.linear_s for row in rows if row.linear_s))[-3:]
        history.known += tuple(map(claim, stored))
        for row in rows:
            history.add(_see(row))
        return history

    def _read(self, kernel: tuple[str, ...], launch: LaunchIdentity | None = None) -> Sequence[Any]:
        """Read the newest rows of a kernel's launches on a device, or of one of them."""
        store = self.open(may_create=False)
        if store is None:
            return ()
        from kernelcast.training_data.store.schema import Selection, dump_ndrange

        wanted = Selection(
            kernel_digests=kernel[:1], device_ids=kernel[1:2], drivers=kernel[2:],
            ndranges=(dump_ndrange(launch.ndrange),) if launch and launch.ndrange else (),
            arguments_digests=(launch.arguments_digest,) if launch else (),
            launch_keys=(launch.key,) if launch and not launch.ndrange else (),
            origins=(Origin.OBSERVED, Origin.COLLECTED),
            without_flags=frozenset({ObservationFlag.CONTAMINATED}),
        )  # fmt: skip
        return store.read_newest(wanted, _COLUMNS, most=400)

    def _read_sizes(self, kernel: tuple[str, ...]) -> dict[SizeKey, LaunchHistory]:
        """Read what was observed of all launches of a kernel on its device, with its driver."""
        found: dict[SizeKey, LaunchHistory] = {}
        for row in self._read(kernel):
            from kernelcast.training_data.store.schema import load_mapping, load_ndrange

            ndrange = load_ndrange(row.ndrange)
            if ndrange is not None and ndrange.local_size is not None:
                key = (ndrange, row.arguments_digest)
                told = load_mapping(row.parameters).get(INSTRUCTIONS)
                found.setdefault(key, LaunchHistory(instructions=told)).add(_see(row))
        return found


def _see(row: Any) -> Seen:  # noqa: ANN401 - a row of the store
    from kernelcast.training_data.store.schema import load_flags, load_time

    flags = load_flags(row.flags)
    return Seen(
        key=row.key,
        seconds=row.seconds,
        noise=row.noise if row.run_count > 1 else None,
        when=load_time(row.measured_at_us),
        is_first=ObservationFlag.FIRST_LAUNCH in flags,
        is_doubted=ObservationFlag.DOUBTED in flags,
    )


def _name(identity: LaunchIdentity) -> tuple[str, str, str, NDRange | None, str]:
    """Name a launch by what its key is made of: a key takes longer to make than to look up."""
    kernel, device = identity.kernel, identity.device
    return (kernel.digest, device.id, device.driver, identity.ndrange, identity.arguments_digest)


class SamplesStore:
    """Keeps the samples of launches; several processes may share it."""

    def __init__(self) -> None:
        self._has_failed = False

    def find(self, request: LaunchRequest) -> EstimateOutcome | None:
        try:
            path = _locate(request)
            if path is None:
                return None
            found: EstimateOutcome = decode(path.read_bytes(), EstimateOutcome)
        except (OSError, NotDecodableError, KernelcastError):
            return None
        now_s = time.time()
        # Samples of more than an hour ago say nothing: virtual machines get faster and slower.
        moments = tuple(
            one for one in found.moments
            if one.at_s is not None and 0 <= now_s - one.at_s <= 3600.0
        )  # fmt: skip
        if not moments or found.estimate.device_id != request.device.id:
            return None
        return replace(found, moments=moments)

    def keep(self, request: LaunchRequest, outcome: EstimateOutcome) -> None:
        """Keep what samples of a launch say, in the place of what was known before."""
        if not outcome.moments:
            return
        kept = replace(outcome, estimate=replace(outcome.estimate, measurement=None))
        try:
            path = _locate(request)
            if path is not None:
                # In each of 256 folders: together some 10 MB.
                keep_among(path, encode(kept.without_launches()), most=2)
        except (OSError, KernelcastError) as error:
            if not self._has_failed:
                self._has_failed = True
                _log.warning(
                    "samples of launches are not kept, so later runs sample anew: %s", error
                )


def _locate(request: LaunchRequest) -> Path | None:
    """Name a launch by all that samples depend on; None where something is not known."""
    if request.is_live or request.problem.kernel.includes_files:  # whose contents are not known
        return None
    plan = request.policy.settings.plan
    key = (_stamp_code(), request.identify().key, plan.budget, plan.seed)
    digest = hashlib.sha256(repr(key).encode()).hexdigest()
    return data_folder() / "samples" / digest[:2] / f"{digest}.json"


@cache
def _stamp_code() -> str:
    """Give what changes with this package's code, wherever it is moved: any of it may matter."""
    package = Path(__file__).parents[2]
    is_installed = package.parent.name in {"site-packages", "dist-packages"}
    places = [package / "__init__.py"] if is_installed else sorted(package.rglob("*.py"))
    found = hashlib.sha256(version("kernelcast").encode())
    for path in places:
        status = path.stat()
        found.update(f"{path} {status.st_mtime_ns} {status.st_size}".encode())
    return found.hexdigest()
