"""What is known of a kernel's other sizes: those that were observed, and those only estimated."""

import itertools
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from cachetools import FIFOCache

from kernelcast.models.evidence.fusion import FusedEstimate, Piece
from kernelcast.models.evidence.model import EvidenceModel, SampledMoment
from kernelcast.models.evidence.sizes import MEASURES, KnownSize, tabulate_sizes
from kernelcast.predictor.answering.launch_history import LaunchHistory
from kernelcast.records.errors import KernelcastError
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.ndrange import NDRange

_ITEMS, _INSTRUCTIONS = MEASURES.index("work_items"), MEASURES.index("instructions")
_MOST_SIZES = 64

SizeKey = tuple[NDRange | None, str]
"""Index space and digest of the arguments, whatever the kernel is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """How much a launch does."""

    logs: tuple[float, ...]
    """Natural logarithms of `MEASURES`; NaN where one but the first is not known."""
    working_set_bytes: float = math.nan


def name_size(launch: LaunchIdentity) -> SizeKey:
    return launch.ndrange, launch.arguments_digest


_UNKNOWN = (math.nan,) * (len(MEASURES) - 2)


def count_items(
    ndrange: NDRange, instructions: object = None, working_set_bytes: float = math.nan
) -> Work:
    """Give the work of a launch of which its index space, source and buffers are known."""
    counted = math.log(instructions) if isinstance(instructions, int | float) else math.nan
    logs = (math.log(ndrange.work_item_count), counted, *_UNKNOWN)
    return Work(logs=logs, working_set_bytes=working_set_bytes)


_versions = itertools.count()


@dataclass(slots=True, eq=False)
class KnownKernel:
    """What is known of one kernel on one device beside its launches; threads share one."""

    read_stored: Callable[[], Mapping[SizeKey, LaunchHistory]]
    clock: Callable[[], float] = time.monotonic
    stored: dict[SizeKey, KnownSize] = field(default_factory=dict)
    own: FIFOCache[SizeKey, KnownSize] = field(default_factory=lambda: FIFOCache(_MOST_SIZES))
    """Sizes that were observed here since the store was read."""
    estimated: FIFOCache[SizeKey, KnownSize] = field(default_factory=lambda: FIFOCache(_MOST_SIZES))
    sampled: FIFOCache[SizeKey, tuple[SampledMoment, ...]] = field(
        default_factory=lambda: FIFOCache(_MOST_SIZES)
    )
    depends_on_contents: bool | None = None
    """As the source tells, where it was read."""
    asked_s: float = -math.inf
    version: int = field(default_factory=_versions.__next__)
    """Another one once answers of the kernel's launches have to be made anew."""
    overhead_s: float | None = None
    """Host time that the last sampling took beside its samples, in seconds, builds left out."""
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def observed(self) -> dict[SizeKey, KnownSize]:
        return {**self.stored, **self.own}

    def find_overhead(self, usual_s: float) -> float:
        return usual_s if self.overhead_s is None else self.overhead_s

    def count_observed(self, key: SizeKey) -> int:
        """Count the other sizes that were observed."""
        self._refresh()
        with self.lock:
            return len(self.observed.keys() - {key})

    def observe(self, key: SizeKey, work: Work, history: LaunchHistory) -> None:
        known = _know_history(work, history)
        with self.lock:
            before = self.observed.get(key)
            self.stored.pop(key, None)
            self.own.pop(key, None)
            if known is not None:
                self.own[key] = known
                # A size that moved by less changes no other's answer.
                if before is not None and abs(known.log_seconds - before.log_seconds) < 0.01:
                    return
            elif before is None:
                return
            if self.depends_on_contents is False:
                self.version = next(_versions)

    def estimate(self, key: SizeKey, known: KnownSize, moments: tuple[SampledMoment, ...]) -> None:
        with self.lock:
            self.estimated[key] = known
            self.sampled[key] = moments

    def judge_past(self, key: SizeKey, model: EvidenceModel) -> list[float]:
        """Give how samples of other sizes erred that were observed since."""
        with self.lock:
            observed = self.observed
            return [
                model.judge_samples(one, known.log_seconds)
                for other, moments in self.sampled.items()
                if other != key and (known := observed.get(other)) is not None
                for one in moments
            ]

    def ask(
        self,
        key: SizeKey,
        work: Work,
        model: EvidenceModel,
        caches: Mapping[str, float],
        *,
        with_observed: bool = True,
    ) -> Piece | None:
        """Make a piece of what other sizes say: observed ones, else those that were estimated."""
        if self.depends_on_contents is not False:
            return None
        if with_observed:
            self._refresh()
        counted = work.logs[_INSTRUCTIONS]
        decides_instructions = not (math.isnan(counted) or counted == work.logs[_ITEMS])
        with self.lock:
            for is_observed in (True, False) if with_observed else (False,):
                known = self.observed if is_observed else self.estimated
                others = [
                    _complete(one, work)
                    for other, one in known.items()
                    # One whose instructions were not counted tells of no size that decides them.
                    if other != key
                    and (math.isfinite(one.log_work[_INSTRUCTIONS]) or not decides_instructions)
                ]
                if others:
                    table = tabulate_sizes(others, model.sizes, caches)
                    answer = table.predict(work.logs, time.time(), work.working_set_bytes)
                    return model.weigh_sizes(answer, is_observed=is_observed)
        return None

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
            observed, found = self.observed, dict[SizeKey, KnownSize]()
            for key, history in histories.items():
                before = observed.get(key)
                if before is not None:
                    work = Work(logs=before.log_work, working_set_bytes=before.working_set_bytes)
                elif key[0] is not None:
                    work = count_items(key[0], history.instructions)
                else:
                    continue
                known = _know_history(work, history)
                if known is not None:
                    found[key] = known
            newest = sorted(found.items(), key=lambda one: one[1].at_s)[-_MOST_SIZES:]
            self.stored = found = dict(newest)
            for key, one in [*self.own.items()]:
                if key in found and one.at_s <= found[key].at_s:
                    del self.own[key]


def _complete(one: KnownSize, work: Work) -> KnownSize:
    """Leave out measures that the launch lacks which is asked for; complete what nobody noted."""
    pairs = zip(one.log_work, work.logs, strict=True)
    log_work = tuple(ours if math.isfinite(asked) else math.nan for ours, asked in pairs)
    if math.isnan(log_work[_INSTRUCTIONS]) and work.logs[_INSTRUCTIONS] == work.logs[_ITEMS]:
        log_work = (log_work[_ITEMS], log_work[_ITEMS], *log_work[2:])
    working_set = one.working_set_bytes
    if math.isnan(working_set):
        working_set = work.working_set_bytes * math.exp(one.log_work[0] - work.logs[0])
    return replace(one, log_work=log_work, working_set_bytes=working_set)


def know_estimate(model: EvidenceModel, work: Work, fused: FusedEstimate) -> KnownSize:
    size = KnownSize(
        log_work=work.logs,
        log_seconds=fused.log_seconds,
        noise=0.0,
        at_s=time.time(),
        working_set_bytes=work.working_set_bytes,
    )
    return model.know_estimate(size, fused)


def _know_history(work: Work, history: LaunchHistory) -> KnownSize | None:
    if not len(history):
        return None
    last = history.describe().last
    return KnownSize(
        log_work=work.logs,
        log_seconds=math.log(history.middle_s),
        noise=history.noise,
        at_s=0.0 if last is None else last.timestamp(),
        working_set_bytes=work.working_set_bytes,
    )
