"""Predicted against measured: how far off the GPU model is for launches with counters."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kernelcast.launches.modelling.gpu_estimates import Configuration, configure
from kernelcast.launches.modelling.hit_rate_points import RATE, MeasuredLaunch
from kernelcast.launches.modelling.sources import LaunchSource
from kernelcast.records.errors import InputError
from kernelcast.records.machine import MachineDescription

_PREDICTED: dict[str, Callable[[Configuration], float]] = {
    "l2_load_bytes_per_update": lambda one: one.volumes.l2_load_bytes / one.updates,
    "dram_load_bytes_per_update": lambda one: one.volumes.dram_load_bytes / one.updates,
    "dram_store_bytes_per_update": lambda one: one.volumes.dram_store_bytes / one.updates,
    RATE: lambda one: one.updates / one.estimate.seconds,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One quantity of several launches."""

    quantity: str
    """Column of the measurements."""
    labels: tuple[str, ...]
    """Local size and folding of each launch."""
    measured: tuple[float, ...]
    predicted: tuple[float, ...]
    """Its values."""

    @property
    def mean_error(self) -> float:
        """Mean of ``|predicted - measured| / measured``."""
        return float(np.mean(np.abs(self._errors())))

    @property
    def bias(self) -> float:
        """Mean of ``(predicted - measured) / measured``."""
        return float(np.mean(self._errors()))

    @property
    def rank_correlation(self) -> float | None:
        """Kendall's tau; None for fewer than two different values."""
        from scipy.stats import kendalltau  # takes a while to load

        if len(set(self.measured)) < 2 or len(set(self.predicted)) < 2:
            return None
        return float(kendalltau(self.measured, self.predicted).statistic)

    @property
    def best_share(self) -> float:
        """Measured value where the prediction is largest, over the largest measured one."""
        return self.measured[int(np.argmax(self.predicted))] / max(self.measured)

    def _errors(self) -> list[float]:
        pairs = zip(self.measured, self.predicted, strict=True)
        return [(predicted - measured) / measured for measured, predicted in pairs]


def compare_with_measured(
    source: LaunchSource, machine: MachineDescription, launches: Sequence[MeasuredLaunch]
) -> list[Comparison]:
    """Predict launches that were measured.

    Parameters
    ----------
    source : LaunchSource
        The kernel that was measured.
    machine : MachineDescription
        The device it was measured on.
    launches : sequence of MeasuredLaunch
        Local sizes with volumes and rates.

    Returns
    -------
    list of Comparison
        One per quantity that was measured.

    Raises
    ------
    InputError
        If a launch cannot be modelled, or there is none.
    """
    if not launches:
        msg = "no launch was measured; expected rows with local_size"
        raise InputError(msg)
    found = [configure(source, machine, one.local_size, one.folds or None) for one in launches]
    comparisons = []
    for quantity, predict in _PREDICTED.items():
        pairs = [
            (one.volumes[quantity], predict(answer), answer)
            for one, answer in zip(launches, found, strict=True)
            if quantity in one.volumes
        ]
        if pairs:
            comparisons.append(
                Comparison(
                    quantity=quantity,
                    labels=tuple(answer.label for _, _, answer in pairs),
                    measured=tuple(measured for measured, _, _ in pairs),
                    predicted=tuple(predicted for _, predicted, _ in pairs),
                )
            )
    return comparisons
