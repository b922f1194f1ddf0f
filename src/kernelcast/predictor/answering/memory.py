"""What estimates know from before: the store of observations, and kept samples of launches.

A store that cannot be read costs an explanation, never an estimate; it is opened when first needed,
made when first written. Samples are kept in a file for each launch, contents of buffers included,
and version of the code; what they say fades with the time that has passed since.
"""

import hashlib
import logging
import threading
import time
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cachetools import LRUCache

from kernelcast.launches.data_folder import choose_store, data_folder
from kernelcast.launches.machines import find_sound_machine
from kernelcast.predictor.answering.kernel_sizes import SizeKey
from kernelcast.predictor.answering.launch_history import LaunchHistory, Seen
from kernelcast.predictor.answering.launch_request import INSTRUCTIONS, LaunchRequest
from kernelcast.predictor.answering.plausibility import Expected, Plausible, doubt_launch
from kernelcast.predictor.answering.tasks import EstimateOutcome
from kernelcast.records.errors import KernelcastError
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.ndrange import NDRange
from kernelcast.records.observation import ObservationFlag, Origin
from kernelcast.records.private_files import keep_among
from kernelcast.workers.decoding import NotDecodableError, decode
from kernelcast.workers.encoding import encode

if TYPE_CHECKING:
    from kernelcast.training_data.store import Selection, Store

_COLUMNS = ("key", "measured_at_us", "seconds", "noise", "run_count", "flags", "linear_s")
_COUNTING: Final[dict[str, Any]] = {
    "origins": (Origin.OBSERVED, Origin.COLLECTED),
    "without_flags": frozenset({ObservationFlag.CONTAMINATED}),
}

_Launch = tuple[str, str, str, NDRange | None, str]


class Memory:
    """What was observed and estimated before."""

    def __init__(self, place: "Store | str | Path | None" = None) -> None:
        self._place: str | Path | None = None
        self._store: Store | None = None
        if place is None or isinstance(place, str | Path):
            self._place = place
        else:
            self._store = place
        self._is_ours = self._store is None
        self._lock = threading.Lock()
        self._expected: LRUCache[_Launch, Expected] = LRUCache(10_000)

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

    def keep_expected(self, identity: LaunchIdentity, expected: Expected) -> None:
        """Remember what an answer says that rests on no observation, to hold those against it."""
        with self._lock:
            self._expected[_name(identity)] = expected

    def recall(self, identity: LaunchIdentity) -> LaunchHistory:
        """Give what was collected or observed of exactly this launch."""
        if identity.ndrange is None or identity.ndrange.local_size is None:
            return self._read(identity, None)
        if self.open(may_create=False) is None:
            return self._read(identity, None)
        from kernelcast.training_data.store.schema import Selection, dump_ndrange

        wanted = Selection(
            kernel_digests=(identity.kernel.digest,),
            device_ids=(identity.device.id,),
            drivers=(identity.device.driver,),
            ndranges=(str(dump_ndrange(identity.ndrange)),),
            arguments_digests=(identity.arguments_digest,),
        )
        return self._read(identity, wanted)

    def recall_named(self, identity: LaunchIdentity) -> LaunchHistory:
        """Give the same of a kernel of this name only: an index has them, among however many."""
        from kernelcast.training_data.store.schema import Selection

        history = self._read(identity, Selection(launch_keys=(identity.key,)))
        machine = find_sound_machine(identity.device.id)
        history.hold_against(replace(history.known, launch=doubt_launch(machine)))
        return history

    def _read(self, identity: LaunchIdentity, wanted: "Selection | None") -> LaunchHistory:
        with self._lock:
            told = self._expected.get(_name(identity))
        expected: tuple[Expected, ...] = () if told is None else (told,)
        history = LaunchHistory(known=Plausible(expected=expected))
        store = None if wanted is None else self.open(may_create=False)
        if store is None or wanted is None:
            return history
        wanted = replace(wanted, **_COUNTING)
        # Older observations of a launch say nothing more about it.
        rows = store.read_newest(wanted, _COLUMNS, most=200)
        # Estimates that came with observations: the last few.
        stored = list(dict.fromkeys(row.linear_s for row in rows if row.linear_s))[-3:]
        expected += tuple(Expected(seconds=seconds) for seconds in stored)
        history.known = Plausible(expected=expected)
        for row in rows:
            history.add(_see(row))
        return history

    def recall_kernel(self, identity: LaunchIdentity) -> dict[SizeKey, LaunchHistory]:
        """Give what was observed of all launches of a kernel on its device, with its driver."""
        store = self.open(may_create=False)
        if store is None:
            return {}
        from kernelcast.training_data.store.schema import Selection, load_mapping, load_ndrange

        wanted = replace(
            Selection(
                kernel_digests=(identity.kernel.digest,),
                device_ids=(identity.device.id,),
                drivers=(identity.device.driver,),
            ),
            **_COUNTING,
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


def _name(identity: LaunchIdentity) -> _Launch:
    """Name a launch by its content, whatever its kernel is called."""
    return (identity.kernel.digest, identity.device.id, identity.device.driver, identity.ndrange,
            identity.arguments_digest)  # fmt: skip


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
