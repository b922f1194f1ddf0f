"""How a corpus kernel's result is checked: the same computation in NumPy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Value: TypeAlias = Array | np.generic | None
"""A buffer's content, a scalar, or None for local memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    expected: Callable[[Sequence[Value], Mapping[str, int]], dict[int, Array]]
    """Takes the values of the kernel's arguments before the launch, in its order, and the problem's
    parameters; gives the buffers that the launch changes, by the argument's index. Arrays have
    shape (count,), or (count, lanes) for vectors."""
    small: Mapping[str, int]
    """Parameters for which the check takes well below a second on any device."""
    tolerance: float = 0.0
    """Relative; 0 asks for equality. Integers are always compared exactly."""
