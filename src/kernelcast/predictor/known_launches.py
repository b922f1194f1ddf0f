"""Launches that a predictor has met: their samples, their observations, and the answer in use."""

import threading
from collections.abc import Callable, Hashable
from dataclasses import asdict, dataclass, field, replace

from cachetools import LRUCache

from kernelcast.launches.recordings import Recording
from kernelcast.models.evidence.fusion import Piece
from kernelcast.predictor.answering.composing import Basis, Remembered
from kernelcast.predictor.answering.launch_history import LaunchHistory
from kernelcast.predictor.answering.launch_request import AskedName
from kernelcast.predictor.answering.tasks import EstimateOutcome
from kernelcast.records.device import DeviceDescription
from kernelcast.records.estimates import Estimate
from kernelcast.records.launch_identity import LaunchIdentity


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
    device: DeviceDescription | None = None
    """The device, where the launch was asked for."""
    answer: Estimate | None = None
    """What is answered until something changes."""
    basis: Basis | None = None
    """What is known beside its observations."""
    sampled: Estimate | None = None
    """The answer by that."""
    pieces: tuple[Piece, ...] = ()
    outcome: EstimateOutcome | None = None
    history: LaunchHistory | None = None
    absence: Remembered | None = None
    """Why the store has nothing to say, where that is known."""
    stamp: tuple[int, int] = (-1, -1)
    """Of the models and of the kernel's other sizes that the answer was made with."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    sampling: threading.RLock = field(default_factory=threading.RLock)
    """For the fields, and for the thread that makes the answer."""

    def take_samples(self, outcome: EstimateOutcome) -> None:
        """Take other samples; the answer has to be made anew."""
        with self.lock:
            self.outcome = outcome
            self.answer = self.sampled = self.basis = None

    def record(self) -> Recording | None:
        """Give the samples, with all that the answer was put together of; None without any."""
        if self.outcome is None or not self.outcome.recording.runs:
            return None
        return replace(self.outcome.recording, pieces=tuple(asdict(one) for one in self.pieces))


class KnownLaunches:
    """All launches that were met; those not asked for longest are forgotten where they are many."""

    def __init__(self) -> None:
        self._launches: LRUCache[Hashable, KnownLaunch] = LRUCache(10_000)
        self._asked: LRUCache[Hashable, tuple[AskedName, KnownLaunch]] = LRUCache(10_000)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._launches)

    def recall(self, name: AskedName) -> KnownLaunch | None:
        """Find the launch that the same object was; None where its files have changed."""
        with self._lock:
            asked, known = self._asked.get(name.key, (None, None))
        return known if asked is not None and asked.files == name.files else None

    def remember(self, name: AskedName, known: KnownLaunch) -> None:
        with self._lock:
            self._asked[name.key] = name, known

    def find(self, identity: LaunchIdentity) -> KnownLaunch:
        with self._lock:
            own = _name(identity)
            known = self._launches.get(own)
            if known is None:
                known = self._launches[own] = KnownLaunch(identity=identity)
            return known

    def join(self, known: KnownLaunch, identity: LaunchIdentity) -> KnownLaunch:
        """Say under which identity a launch really ran: its local size was chosen by the device."""
        own, before = _name(identity), _name(known.identity)
        if own == before:
            return known
        with self._lock:
            other = self._launches.setdefault(own, known)
            self._launches[before] = other
        if other is known:
            known.identity = identity
            known.history = None
        return other

    def forget_device(self, device_id: str) -> None:
        """Forget the launches of a device: its driver is another now."""
        with self._lock:
            for key, one in [*self._launches.items()]:
                if one.identity.device.id == device_id:
                    del self._launches[key]
            self._asked.clear()


def _name(identity: LaunchIdentity) -> Hashable:
    """Name a launch by what its key is made of: a key takes longer to make than to look up."""
    kernel, device = identity.kernel, identity.device
    return (kernel.digest, kernel.name, device.id, device.driver, identity.ndrange,
            identity.arguments_digest)  # fmt: skip
