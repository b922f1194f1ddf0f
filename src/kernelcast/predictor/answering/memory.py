"""The store of observations as estimates use it: opened when first needed, made when first written.

A store that cannot be read costs an explanation, never an estimate.
"""

import math
import os
import threading
import time
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cachetools import LRUCache

from kernelcast.launches.data_folder import choose_store
from kernelcast.launches.own_machine import find_sound_machine
from kernelcast.predictor.answering.identity import INSTRUCTIONS
from kernelcast.predictor.answering.kernel_sizes import (
    KernelKey,
    SizeKey,
    name_kernel,
    name_size,
)
from kernelcast.predictor.answering.launch_history import LaunchHistory, Seen
from kernelcast.predictor.answering.plausibility import Expected, Plausible, doubt_launch
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.ndrange import NDRange
from kernelcast.records.observation import ObservationFlag, Origin

if TYPE_CHECKING:
    from kernelcast.training_data.store import Selection, Store

_COLUMNS = ("key", "measured_at_us", "seconds", "noise", "run_count", "flags", "linear_s")
_COUNTING: Final[dict[str, Any]] = {
    "origins": (Origin.OBSERVED, Origin.COLLECTED),
    "without_flags": frozenset({ObservationFlag.CONTAMINATED}),
}
# Older observations of a launch say nothing more about it.
_NEWEST = 200
_NEWEST_OF_KERNEL = 400
_MOST_ESTIMATES = 10_000
# Estimates that came with observations: the last few.
_MOST_STORED = 3

_MOST_LISTED = 256

_STAMP_HOLDS_S = 5e-3

_Stamp = tuple[tuple[int, int], ...]
_Launch = tuple[str, str, str, NDRange | None, str]


class Memory:
    """What was observed and estimated before.

    Parameters
    ----------
    place : Store, str, Path or None
        A store, or where it is; None means the user's own, see `choose_store`.
    """

    def __init__(self, place: "Store | str | Path | None" = None) -> None:
        self._place: str | Path | None = None
        self._store: Store | None = None
        if place is None or isinstance(place, str | Path):
            self._place = place
        else:
            self._store = place
        self._is_ours = self._store is None
        self._lock = threading.Lock()
        self._expected: OrderedDict[_Launch, Expected] = OrderedDict()
        self._last_stamp: _Stamp | None = None
        self._stamped: _Stamp | None = None
        self._stamped_until_s = -math.inf
        self._listed: LRUCache[KernelKey, tuple[_Stamp, frozenset[SizeKey]]] = LRUCache(
            _MOST_LISTED
        )

    def open(self, *, may_create: bool) -> "Store | None":
        """Give the store; None where there is none and none may be made.

        Raises
        ------
        StoreError
            If it cannot be opened.
        InputError
            If the place is none, or the user has no home.
        """
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
        """Close a store that was opened here."""
        with self._lock:
            if self._store is not None and self._is_ours:
                self._store.close()

    def keep_expected(self, identity: LaunchIdentity, expected: Expected) -> None:
        """Remember what an answer says that rests on no observation, to hold those against it."""
        with self._lock:
            self._expected[_name(identity)] = expected
            if len(self._expected) > _MOST_ESTIMATES:
                self._expected.popitem(last=False)

    def find_expected(self, identity: LaunchIdentity) -> tuple[Expected, ...]:
        """Give the last answer that rests on no observation, if it is remembered."""
        with self._lock:
            found = self._expected.get(_name(identity))
        return () if found is None else (found,)

    def recall(self, identity: LaunchIdentity) -> LaunchHistory:
        """Give what was collected or observed of exactly this launch.

        Source, build options, kernel, device, driver, index space and arguments are the same;
        whatever else a kernel is called. Imported observations are not of this machine. They are
        held against estimates that are remembered, and those stored with them.

        Raises
        ------
        KernelcastError
            If the store cannot be opened or read.
        """
        if identity.ndrange is None or identity.ndrange.local_size is None:
            return self._read(identity, None)
        if self._is_unseen(identity) or self.open(may_create=False) is None:
            return self._read(identity, None)
        from kernelcast.training_data.store.schema import dump_ndrange
        from kernelcast.training_data.store.selection import Selection

        wanted = Selection(
            kernel_digests=(identity.kernel.digest,),
            device_ids=(identity.device.id,),
            drivers=(identity.device.driver,),
            ndranges=(str(dump_ndrange(identity.ndrange)),),
            arguments_digests=(identity.arguments_digest,),
        )
        return self._read(identity, wanted)

    def recall_named(self, identity: LaunchIdentity) -> LaunchHistory:
        """Give the same of a kernel of this name only: an index has them, among however many.

        Raises
        ------
        KernelcastError
            If the store cannot be opened or read.
        """
        from kernelcast.training_data.store.selection import Selection

        history = self._read(identity, Selection(launch_keys=(identity.key,)))
        machine = find_sound_machine(identity.device.id)
        history.hold_against(replace(history.known, launch=doubt_launch(machine)))
        return history

    def _read(self, identity: LaunchIdentity, wanted: "Selection | None") -> LaunchHistory:
        expected = self.find_expected(identity)
        history = LaunchHistory(known=Plausible(expected=expected))
        store = None if wanted is None else self.open(may_create=False)
        if store is None or wanted is None:
            return history
        wanted = replace(wanted, **_COUNTING)
        rows = store.read_newest(wanted, _COLUMNS, most=_NEWEST)
        stored = list(dict.fromkeys(row.linear_s for row in rows if row.linear_s))[-_MOST_STORED:]
        expected += tuple(Expected(seconds=seconds) for seconds in stored)
        history.known = Plausible(expected=expected)
        for row in rows:
            history.add(_see(row))
        return history

    def _is_unseen(self, identity: LaunchIdentity) -> bool:
        """Tell of a launch that nothing was observed of it, without a question to the database.

        Its kernel's launches were listed, and the files of the store are as they were then. They
        are listed anew once the files have stayed as they are for two questions.
        """
        key, stamp = name_kernel(identity), self._stamp()
        if stamp is None:
            return False
        with self._lock:
            found = self._listed.get(key)
            is_calm, self._last_stamp = stamp == self._last_stamp, stamp
        if found is None or (found[0] != stamp and is_calm):
            self.recall_kernel(identity)
            with self._lock:
                found = self._listed.get(key)
        return found is not None and found[0] == stamp and name_size(identity) not in found[1]

    def _stamp(self) -> _Stamp | None:
        """Give what changes with each writing to the store; None where that cannot be told.

        Files are looked at again after `_STAMP_HOLDS_S`: what other processes write is seen by
        then, and a file takes longer to ask than all else about a launch that nobody observed.
        """
        now_s = time.monotonic()
        if now_s >= self._stamped_until_s:
            self._stamped = self._read_stamp()
            self._stamped_until_s = now_s + _STAMP_HOLDS_S
        return self._stamped

    def _read_stamp(self) -> _Stamp | None:
        where = self._place if self._store is None else self._store.where
        if where is None or "://" in str(where):
            return None
        try:
            main = os.stat(where)  # noqa: PTH116 - this is asked for each launch
        except OSError:
            return None
        try:
            log = os.stat(f"{where}-wal")  # noqa: PTH116
        except OSError:
            return ((main.st_mtime_ns, main.st_size),)
        return (main.st_mtime_ns, main.st_size), (log.st_mtime_ns, log.st_size)

    def recall_kernel(self, identity: LaunchIdentity) -> dict[SizeKey, LaunchHistory]:
        """Give what was observed of all launches of a kernel on its device, with its driver.

        Raises
        ------
        KernelcastError
            If the store cannot be opened or read.
        """
        store = self.open(may_create=False)
        if store is None:
            return {}
        from kernelcast.training_data.store.schema import load_mapping, load_ndrange
        from kernelcast.training_data.store.selection import Selection

        wanted = replace(
            Selection(
                kernel_digests=(identity.kernel.digest,),
                device_ids=(identity.device.id,),
                drivers=(identity.device.driver,),
            ),
            **_COUNTING,
        )
        stamp = self._stamp()
        found: dict[SizeKey, LaunchHistory] = {}
        rows = [*store.read_newest(wanted, (*_COLUMNS, "ndrange", "arguments_digest", "parameters"),
                                   most=_NEWEST_OF_KERNEL)]  # fmt: skip
        listed = set[SizeKey]()
        for row in rows:
            ndrange = load_ndrange(row.ndrange)
            listed.add((ndrange, row.arguments_digest))
            if ndrange is not None and ndrange.local_size is not None:
                key = (ndrange, row.arguments_digest)
                if key not in found:
                    found[key] = LaunchHistory(
                        instructions=load_mapping(row.parameters).get(INSTRUCTIONS)
                    )
                found[key].add(_see(row))
        if stamp is not None and len(rows) < _NEWEST_OF_KERNEL:
            with self._lock:
                self._listed[name_kernel(identity)] = stamp, frozenset(listed)
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
