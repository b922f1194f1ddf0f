"""Compiles with numba, keeping the result where that can be kept."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])

# Without numba's runtime, which counts references to arrays at each call: measured three times as
# fast. Compiled functions cannot allocate then, and need not. The option is not in its types.
_OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False}


def compiled(function: Function) -> Function:
    """Compile a function of numbers and arrays when it is first called.

    Machine code is kept beside the module or, where that may not be written, in numba's folder
    for the user; where neither can be, it is compiled anew in each process.
    """
    try:
        return cast("Function", numba.njit(cache=True, **_OPTIONS)(function))
    except RuntimeError:  # numba found no folder for its cache
        return cast("Function", numba.njit(**_OPTIONS)(function))
