"""What a scheduler knows of times, and where it therefore puts a task."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kernelcast.scheduling.cluster.machines import Cluster

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


class Knowledge(Protocol):
    """Decides by what it knows; is told what happens."""

    def weights_s(self) -> FloatArray:
        """Give what each launch takes on average over devices, for ranks before the start."""

    def choose(self, launch: int, state: DeviceState) -> tuple[int, float]:
        """Give the device for a task, and the seconds that it is expected to take there."""

    def learn(self, launch: int, device: int, seconds: float) -> None:
        """Take note of a task that has ended."""


class Estimates:
    """Times of every launch on every model, true or estimated, from the start.

    Parameters
    ----------
    cluster : Cluster
        The devices.
    times_s : ndarray of shape (n_launches, n_models), in seconds
        What the scheduler takes for true.
    """

    def __init__(self, cluster: Cluster, times_s: FloatArray) -> None:
        self._by_device = np.ascontiguousarray(times_s[:, cluster.model_of_device])

    def weights_s(self) -> FloatArray:
        """Give means over devices."""
        return np.asarray(self._by_device.mean(axis=1))

    def choose(self, launch: int, state: DeviceState) -> tuple[int, float]:
        """Choose the device that is expected to end the task first."""
        row = self._by_device[launch]
        device = state.earliest_end(row)
        return device, float(row[device])

    def learn(self, launch: int, device: int, seconds: float) -> None:
        """Keep the estimates."""


class History:
    """Nothing at first; means of what has been run, per launch and model.

    A pair of launch and model counts as known after `runs` runs. Until all pairs of a launch are
    at least on their way, its tasks go to a model that lacks runs, as StarPU's dmda does; then to
    the device among known models that is expected to end first. Kinder than StarPU, which sends
    all tasks to unknown devices until their measurements are back.

    Parameters
    ----------
    cluster : Cluster
        The devices; of its times nothing is read.
    runs : int
        Runs of each pair: StarPU wants 10.
    """

    def __init__(self, cluster: Cluster, *, runs: int) -> None:
        shape = cluster.times_s.shape
        self._models = cluster.model_of_device
        self._begins = np.searchsorted(self._models, np.arange(cluster.models + 1)).tolist()
        self._runs = runs
        # Models of which there is no device need no runs.
        self._begun = np.where(np.diff(self._begins) == 0, runs, np.zeros(shape, dtype=np.int64))
        self._ended = np.zeros(shape, dtype=np.int64)
        self._sums_s = np.zeros(shape)
        self._is_open = [True] * shape[0]
        self._rows: dict[int, FloatArray] = {}

    def weights_s(self) -> FloatArray:
        """Take all launches for equal."""
        return np.ones(len(self._is_open))

    def choose(self, launch: int, state: DeviceState) -> tuple[int, float]:
        """Choose a device that lacks runs, else the one expected to end the task first."""
        if self._is_open[launch]:
            lacking = int(self._begun[launch].argmin())
            if self._begun[launch, lacking] < self._runs:
                self._begun[launch, lacking] += 1
                begin, end = self._begins[lacking], self._begins[lacking + 1]
                device = begin + int(state.unfinished[begin:end].argmin())
                return device, self._expect(launch)
            self._is_open[launch] = False
        row = self._known(launch)
        if row is None:
            return int(state.unfinished.argmin()), self._expect(launch)
        device = state.earliest_end(row)
        return device, float(row[device])

    def learn(self, launch: int, device: int, seconds: float) -> None:
        """Add to the mean."""
        model = self._models[device]
        self._ended[launch, model] += 1
        self._sums_s[launch, model] += seconds
        self._rows.pop(launch, None)

    def _known(self, launch: int) -> FloatArray | None:
        """Give the mean on each device, infinite where it is not known; None if it is nowhere."""
        if launch not in self._rows:
            ended = self._ended[launch]
            means = np.full(len(ended), np.inf)
            known = ended >= self._runs
            means[known] = self._sums_s[launch, known] / ended[known]
            self._rows[launch] = means[self._models]
        row = self._rows[launch]
        return row if np.isfinite(row).any() else None

    def _expect(self, launch: int) -> float:
        """Guess by what has been seen of the launch, else of all launches."""
        ended = int(self._ended[launch].sum())
        if ended:
            return float(self._sums_s[launch].sum() / ended)
        total = int(self._ended.sum())
        return float(self._sums_s.sum() / total) if total else 0.0


class Nothing:
    """No times at all: each task goes to the device with the fewest unfinished ones."""

    def __init__(self, launches: int) -> None:
        self._launches = launches

    def weights_s(self) -> FloatArray:
        """Take all launches for equal."""
        return np.ones(self._launches)

    def choose(self, launch: int, state: DeviceState) -> tuple[int, float]:
        """Choose the device with the fewest tasks."""
        del launch
        return int(state.unfinished.argmin()), 0.0

    def learn(self, launch: int, device: int, seconds: float) -> None:
        """Learn nothing."""
