"""Where every device stands, as the scheduler sees it."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(slots=True, eq=False)
class DeviceState:
    """Expectations of every device; what really ends when, the scheduler learns as it happens."""

    devices: int
    now_s: float = 0.0
    running_until_s: FloatArray = field(init=False)
    queued_s: FloatArray = field(init=False)
    unfinished: npt.NDArray[np.int64] = field(init=False)
    _ends_s: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.running_until_s = np.zeros(self.devices)
        self.queued_s = np.zeros(self.devices)
        self.unfinished = np.zeros(self.devices, dtype=np.int64)
        self._ends_s = np.empty(self.devices)

    def earliest_end(self, seconds: FloatArray) -> int:
        """Give the device that is expected to end a task first."""
        ends = self._ends_s
        np.maximum(self.running_until_s, self.now_s, out=ends)
        ends += self.queued_s
        ends += seconds
        return int(ends.argmin())
