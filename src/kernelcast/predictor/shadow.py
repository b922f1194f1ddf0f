"""What a method in the shadow would have said, beside what was answered and measured."""

import threading
from collections import deque
from dataclasses import dataclass

_MOST = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowRecord:
    """One observation of a launch, with what two methods had said of it.

    Parameters
    ----------
    launch_key, device_id, kernel : str
        The launch: `LaunchIdentity.key`, device, kernel's name.
    method, tier : str
        The method in the shadow, and how the answer was obtained.
    shadow_s, answered_s, measured_s : float
        In seconds.
    """

    launch_key: str
    device_id: str
    kernel: str
    method: str
    tier: str
    shadow_s: float
    answered_s: float
    measured_s: float

    @property
    def shadow_error(self) -> float:
        """Signed relative error of the method in the shadow."""
        return self.shadow_s / self.measured_s - 1

    @property
    def answered_error(self) -> float:
        """Signed relative error of the answer."""
        return self.answered_s / self.measured_s - 1


class ShadowRecords:
    """The newest records; threads share one."""

    def __init__(self) -> None:
        self._records: deque[ShadowRecord] = deque(maxlen=_MOST)
        self._lock = threading.Lock()

    def add(self, record: ShadowRecord) -> None:
        """Keep a record."""
        with self._lock:
            self._records.append(record)

    def list_all(self) -> list[ShadowRecord]:
        """Give the records, oldest first."""
        with self._lock:
            return list(self._records)
