"""Memory that answers of a thread use again and again: fresh pages cost more than arithmetic."""

import math
import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcast.records.training_table import Numbers


class Workspace:
    """Arrays by name, for one user at a time: what was taken under a name is overwritten."""

    def __init__(self) -> None:
        self._held: dict[str, npt.NDArray[Any]] = {}

    def take(self, name: str, *shape: int) -> Numbers:
        """Give an array with anything in it.

        Parameters
        ----------
        name : str
            What it is for.
        *shape : int
            Its shape.

        Examples
        --------
        >>> work = Workspace()
        >>> work.take("logs", 2, 3).base is work.take("logs", 1, 2).base
        True
        """
        size = math.prod(shape)
        held = self._held.get(name)
        if held is None or held.size < size:
            held = self._held[name] = np.empty(size)
        return held[:size].reshape(shape)


_OWN = threading.local()


def own_workspace() -> Workspace:
    """Give the workspace of this thread."""
    found = getattr(_OWN, "workspace", None)
    if found is None:
        found = _OWN.workspace = Workspace()
    return found
