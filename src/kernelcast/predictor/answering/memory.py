"""What estimates know from before: launches, their kernels, stored observations, kept samples.

Launches and kernels that were not asked for longest are forgotten where they are many. A store that
cannot be read costs an explanation, never an estimate; it is opened when first needed, made when
first written. Samples are kept in a file for each launch, contents of buffers included, and version
of the code; what they say fades with the time that has passed since.
"""

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cachetools import LRUCache

from kernelcast.launches.data_folder import choose_store, data_folder
from kernelcast.launches.machines import find_sound_machine
from kernelcast.launches.recordings import Recording
from kernelcast.models.evidence.fusion import Piece
from kernelcast.predictor.answering.composing import Basis
from kernelcast.predictor.answering.kernel_sizes import KnownKernel, SizeKey
from kernelcast.predictor.answering.launch_history import (
    Claim,
    LaunchHistory,
    Seen,
    claim,
    doubt_launch,
)
from kernelcast.predictor.answering.launch_request import INSTRUCTIONS, LaunchRequest
from kernelcast.predictor.answering.processes import MOST_MOMENTS, EstimateOutcome
from kernelcast.records.errors import KernelcastError
from kernelcast.records.estimates import Estimate
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.observation import ObservationFlag, Origin
from kernelcast.records.private_files import keep_among
from kernelcast.workers.wire import NotDecodableError, decode, encode

if TYPE_CHECKING:
    from kernelcast.training_data.store import Store

_COLUMNS = ("key", "measured_at_us", "seconds", "noise", "run_count", "flags", "linear_s")
_COUNTING: Final[dict[str, Any]] = {
    "origins": (Origin.OBSERVED, Origin.COLLECTED),
    "without_flags": frozenset({ObservationFlag.CONTAMINATED}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An estimate with the raw samples behind it; one without samples has none."""

    estimate: Estimate
    recording: Recording | None
    refine: "Callable[[], Answer] | None" = field(default=None, compare=False, repr=False)
    """Samples once more, and gives the better answer; None where that would not make it better."""


@dataclass(slots=True, kw_only=True, eq=False)
class KnownLaunch:
    """One launch on one device."""

    identity: LaunchIdentity
    """The launch, local size chosen where that is known."""
    answer: Estimate | None = None
    """What is answered until something changes."""
    basis: Basis | None = None
    """What is known beside its observations."""
    pieces: tuple[Piece, ...] = ()
    outcome: EstimateOutcome | None = None
    history: LaunchHistory | None = None
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
        key = (identity.kernel.digest, identity.device.id, identity.device.driver)
        with self._met:
            if key not in self._kernels:
                self._kernels[key] = KnownKernel(partial(self._read_sizes, *key))
            return self._kernels[key]

    def forget_device(self, device_id: str) -> None:
        """Forget the launches of a device: its driver is another now."""
        with self._met:
            for key, one in [*self._launches.items()]:
                if one.identity.device.id == device_id:
                    del self._launches[key]

    def recall(self, identity: LaunchIdentity, *, by_key: bool = False) -> LaunchHistory:
        """Give what was collected or observed of exactly this launch.

        By its key, an index has them among however many, of a kernel of this name only.
        """
        with self._met:
            known = self._launches.get(_name(identity))
        history = LaunchHistory()
        if known is not None and known.expected is not None:
            history.known = (known.expected,)
        store = self.open(may_create=False)
        if store is not None:
            from kernelcast.training_data.store.schema import Selection, dump_once

            wanted = Selection(launch_keys=(identity.key,), **_COUNTING)
            if not by_key and identity.ndrange is not None:
                wanted = Selection(
                    kernel_digests=(identity.kernel.digest,),
                    device_ids=(identity.device.id,),
                    drivers=(identity.device.driver,),
                    ndranges=(dump_once(identity.ndrange),),
                    arguments_digests=(identity.arguments_digest,),
                    **_COUNTING,
                )
            # Older observations of a launch say nothing more about it.
            rows = store.read_newest(wanted, _COLUMNS, most=200)
            # Estimates that came with observations: the last few.
            stored = list(dict.fromkeys(row.linear_s for row in rows if row.linear_s))[-3:]
            history.known += tuple(map(claim, stored))
            for row in rows:
                history.add(_see(row))
        if by_key:
            machine = find_sound_machine(identity.device.id)
            history.hold_against([*history.known, *doubt_launch(machine)])
        return history

    def _read_sizes(self, digest: str, device_id: str, driver: str) -> dict[SizeKey, LaunchHistory]:
        """Read what was observed of all launches of a kernel on its device, with its driver."""
        store = self.open(may_create=False)
        if store is None:
            return {}
        from kernelcast.training_data.store.schema import Selection, load_mapping, load_ndrange

        wanted = Selection(
            kernel_digests=(digest,), device_ids=(device_id,), drivers=(driver,), **_COUNTING
        )
        columns = (*_COLUMNS, "ndrange", "arguments_digest", "parameters")
        found: dict[SizeKey, LaunchHistory] = {}
        for row in store.read_newest(wanted, columns, most=400):
            ndrange = load_ndrange(row.ndrange)
            if ndrange is not None and ndrange.local_size is not None:
                key = (ndrange, row.arguments_digest)
                if key not in found:
                    found[key] = LaunchHistory(
                        instructions=load_mapping(row.parameters).get(INSTRUCTIONS)
                    )
                found[key].add(_see(row))
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


def _name(identity: LaunchIdentity) -> Hashable:
    """Name a launch by what its key is made of: a key takes longer to make than to look up."""
    kernel, device = identity.kernel, identity.device
    return (kernel.digest, device.id, device.driver, identity.ndrange, identity.arguments_digest)


_log = logging.getLogger(__name__)


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
