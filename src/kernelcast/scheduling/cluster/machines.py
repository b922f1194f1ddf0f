"""The simulated cluster: devices of several models, and how long each launch takes on them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import InputError
from kernelcast.scheduling.cluster.graphs import TaskGraph

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_MEDIAN_S = 0.1
_SPREAD_OF_LAUNCHES = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cluster:
    """Devices and true times."""

    model_of_device: IntArray
    """Shape (n_devices,). Which model each device is of; not falling."""
    times_s: FloatArray
    """Shape (n_launches, n_models). What each launch takes on a device of each model."""

    def __post_init__(self) -> None:
        models = self.model_of_device
        if not len(models) or bool((np.diff(models) < 0).any()):
            msg = "cluster: give at least one device, in the order of their models"
            raise InputError(msg)
        if models[0] < 0 or models[-1] >= self.times_s.shape[1]:
            msg = f"cluster: models {models[0]} to {models[-1]}, {self.times_s.shape[1]} columns"
            raise InputError(msg)
        if not (np.isfinite(self.times_s).all() and (self.times_s > 0).all()):
            msg = "cluster: times must be positive and finite"
            raise InputError(msg)

    @property
    def devices(self) -> int:
        """Number of devices."""
        return len(self.model_of_device)

    @property
    def models(self) -> int:
        """Number of models."""
        return int(self.times_s.shape[1])

    def lower_bound(self, graph: TaskGraph) -> float:
        """Give a makespan, in seconds, that no schedule can beat.

        The longest chain with each task on its fastest device, and all tasks on their fastest
        devices shared by all devices.
        """
        present = np.unique(self.model_of_device)
        least = self.times_s[:, present].min(axis=1)[graph.launches]
        ends = least.copy()
        for task in range(len(graph)):
            following = graph.successors_of(task)
            if len(following):
                np.maximum.at(ends, following, ends[task] + least[following])
        return float(max(ends.max(), least.sum() / self.devices))


def make_cluster(
    *, devices: int, models: int, launches: int, heterogeneity: float, seed: int
) -> Cluster:
    """Draw a cluster.

    Parameters
    ----------
    models : int
        Of how many different models; at most as many as devices.
    launches : int
        How many different launches there are. Their times spread log-normally about 0.1 s.
    heterogeneity : float
        Standard deviation of the logarithm of a launch's time over models: how much a fast device
        for one kernel is a slow one for another. 0 makes all devices equal.
    seed : int
        Of everything random.
    """
    if min(devices, models, launches) < 1 or not heterogeneity >= 0:
        msg = (
            f"{devices} devices, {models} models, {launches} launches, heterogeneity "
            f"{heterogeneity}: expected at least 1 of each, and no negative spread"
        )
        raise InputError(msg)
    models = min(models, devices)
    rng = np.random.default_rng([seed, 2])
    typical = _MEDIAN_S * np.exp(_SPREAD_OF_LAUNCHES * rng.standard_normal(launches))
    factors = np.exp(heterogeneity * rng.standard_normal((launches, models)))
    return Cluster(
        model_of_device=np.sort(np.arange(devices) % models).astype(np.int64),
        times_s=typical[:, np.newaxis] * factors,
    )
