"""Launches that a predictor has met: their samples, their observations, and the answer in use."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import asdict, dataclass, field, replace
from typing import Final

from kernelcast.launches.recordings import Recording
from kernelcast.models.evidence.piece import Piece
from kernelcast.predictor.answering.composing import Basis, Remembered
from kernelcast.predictor.answering.identity import FileStamps, stamp_files
from kernelcast.predictor.answering.launch_history import LaunchHistory
from kernelcast.predictor.answering.tasks import EstimateOutcome
from kernelcast.records.device import DeviceDescription
from kernelcast.records.estimates import Estimate
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.problem import Problem

_MOST_LAUNCHES: Final = 10_000
_MOST_PROBLEMS: Final = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An estimate with the raw samples behind it; one without samples has none.

    Parameters
    ----------
    refine : callable or None
        Samples once more, and gives the better answer; None where that would not make it better.
    """

    estimate: Estimate
    recording: Recording | None
    refine: "Callable[[], Answer] | None" = field(default=None, compare=False, repr=False)


@dataclass(slots=True, kw_only=True, eq=False)
class KnownLaunch:
    """One launch on one device.

    Parameters
    ----------
    identity : LaunchIdentity
        The launch, local size chosen where that is known.
    device : DeviceDescription or None
        The device, where the launch was asked for.
    answer : Estimate or None
        What is answered until something changes.
    basis : Basis or None
        What is known beside its observations.
    sampled : Estimate or None
        The answer by that.
    pieces : tuple of Piece
        What the answer was put together of.
    outcome : EstimateOutcome or None
        The samples.
    history : LaunchHistory or None
        What was observed; None before the store was asked.
    absence : Remembered or None
        Why the store has nothing to say, where that is known.
    lock, sampling : lock
        For the fields, and for whoever makes the answer.
    """

    identity: LaunchIdentity
    device: DeviceDescription | None = None
    answer: Estimate | None = None
    basis: Basis | None = None
    sampled: Estimate | None = None
    pieces: tuple[Piece, ...] = ()
    outcome: EstimateOutcome | None = None
    history: LaunchHistory | None = None
    absence: Remembered | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)
    sampling: threading.RLock = field(default_factory=threading.RLock)

    def record(self) -> Recording | None:
        """Give the samples, with all that the answer was put together of; None without any."""
        if self.outcome is None or not self.outcome.recording.runs:
            return None
        return replace(self.outcome.recording, pieces=tuple(asdict(one) for one in self.pieces))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A problem that was answered; it is held, so that its place in memory names it."""

    problem: Problem
    known: KnownLaunch
    files: FileStamps


class KnownLaunches:
    """All launches that were met; the oldest are forgotten where there are too many.

    Notes
    -----
    `recall_answer` takes no lock: it reads a dictionary.
    """

    def __init__(self) -> None:
        self._launches: OrderedDict[Hashable, KnownLaunch] = OrderedDict()
        self._asked: dict[tuple[int, str], _Asked] = {}
        self._kernels: dict[tuple[str, str], set[Hashable]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._launches)

    def recall_answer(self, problem: Problem, device_id: str) -> Estimate | None:
        """Give the answer to the very same problem object; None where there is none in use."""
        asked = self._asked.get((id(problem), device_id))
        if asked is None or (asked.files and asked.files != stamp_files(problem)):
            return None
        return asked.known.answer

    def remember_asked(
        self, problem: Problem, device_id: str, known: KnownLaunch, files: FileStamps
    ) -> None:
        """Remember whose launch it is."""
        if len(self._asked) >= _MOST_PROBLEMS:
            self._asked = {}
        self._asked[id(problem), device_id] = _Asked(problem, known, files)

    def find(self, identity: LaunchIdentity) -> KnownLaunch:
        """Give the launch of an identity; a new one where it was not met before."""
        with self._lock:
            own = _name(identity)
            known = self._launches.get(own)
            if known is None:
                known = self._launches[own] = KnownLaunch(identity=identity)
                self._kernels.setdefault(_name_kernel(identity), set()).add(own)
                if len(self._launches) > _MOST_LAUNCHES:
                    key, old = self._launches.popitem(last=False)
                    self._kernels.get(_name_kernel(old.identity), set()).discard(key)
                    self._asked = {}
            return known

    def join(self, known: KnownLaunch, identity: LaunchIdentity) -> KnownLaunch:
        """Say under which identity a launch really ran: its local size was chosen by the device."""
        own, before = _name(identity), _name(known.identity)
        if own == before:
            return known
        with self._lock:
            other = self._launches.setdefault(own, known)
            self._launches[before] = other
            self._kernels.setdefault(_name_kernel(identity), set()).add(own)
        if other is known:
            known.identity = identity
            known.history = None
        return other

    def list_all(self) -> list[KnownLaunch]:
        """Give every launch once."""
        with self._lock:
            return list({id(one): one for one in self._launches.values()}.values())

    def renew_sizes(self, identity: LaunchIdentity) -> None:
        """Have answers of a kernel's other launches made anew, since one of its sizes is another.

        Their samples are kept.
        """
        with self._lock:
            kernel = self._kernels.get(_name_kernel(identity), ())
            others = [self._launches[key] for key in kernel if key in self._launches]
        own = _name(identity)
        for one in others:
            if one.answer is not None and _name(one.identity) != own:
                with one.lock:
                    one.answer = None
                    if one.outcome is not None:  # what sizes say of the sampler's errors, too
                        one.basis = None

    def forget_device(self, device_id: str) -> None:
        """Forget the launches of a device: its driver is another now."""
        with self._lock:
            kept = ((key, one) for key, one in self._launches.items()
                    if one.identity.device.id != device_id)  # fmt: skip
            self._launches = OrderedDict(kept)
            self._asked = {}


def _name(identity: LaunchIdentity) -> Hashable:
    """Name a launch by what its key is made of: a key takes longer to make than to look up."""
    kernel, device = identity.kernel, identity.device
    return (kernel.digest, kernel.name, device.id, device.driver, identity.ndrange,
            identity.arguments_digest)  # fmt: skip


def _name_kernel(identity: LaunchIdentity) -> tuple[str, str]:
    return identity.kernel.digest, identity.device.id
