"""What predicts cache traffic: layer conditions or a simulation, one in the place of the other."""

from collections.abc import Mapping
from typing import Protocol

from kernelcast.records.cache_volumes import CacheVolumes


class CachePredictor(Protocol):
    """Predicts the traffic of one loop nest through the caches of one machine."""

    @property
    def name(self) -> str:
        """``lc`` or ``sim``."""

    def predict(self, constants: Mapping[str, int], cores: int = 1) -> CacheVolumes:
        """Give the traffic of every level.

        Parameters
        ----------
        constants : mapping of str to int
            Values of the nest's constants; they win over its own.
        cores : int
            Busy cores: they share what the machine says they share.

        Raises
        ------
        InputError
            If a constant is missing or no size, or the machine has not so many cores.
        """
