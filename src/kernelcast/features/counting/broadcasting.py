"""Values of expressions as arrays."""

import numpy as np
import numpy.typing as npt

from kernelcast.expressions import Value

LARGEST = 2**62
"""Beyond every address and count; two of them still add up within 64 bits."""


def widen(value: Value | npt.NDArray[np.bool_], shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Give a value the shape of others, integers beyond 64 bits cut to `LARGEST`.

    Examples
    --------
    >>> widen(3, (2,)), int(widen(2**80, ())) == LARGEST
    (array([3, 3]), True)
    """
    if isinstance(value, int):
        value = np.asarray(max(-LARGEST, min(value, LARGEST)), dtype=np.int64)
    return np.broadcast_to(value.astype(np.int64, copy=False), shape)
