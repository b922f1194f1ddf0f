"""Notices observations that repeat a key, and those that are a kernel's first."""

import threading
from typing import Final

from kernelcast.records.launch_identity import LaunchIdentity

_MOST: Final = 100_000


class RepeatedObservations:
    """Keys of observations and kernels that were started; threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: set[tuple[str, tuple[int, ...], str]] = set()
        self._keys: dict[str, None] = {}

    def is_first(self, identity: LaunchIdentity) -> bool:
        """Tell whether a kernel's launches with this local size begin with this one."""
        local = identity.ndrange.local_size if identity.ndrange else None
        one = (identity.kernel.digest, local or (), identity.device.id)
        with self._lock:
            if one in self._started:
                return False
            if len(self._started) >= _MOST:
                self._started.clear()
            self._started.add(one)
            return True

    def take_key(self, key: str) -> bool:
        """Remember a key; tell whether it is new."""
        with self._lock:
            if key in self._keys:
                return False
            self._keys[key] = None
            if len(self._keys) > _MOST:
                del self._keys[next(iter(self._keys))]
            return True
