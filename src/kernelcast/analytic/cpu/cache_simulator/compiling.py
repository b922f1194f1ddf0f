"""Compiles with numba, keeping the result where that can be kept."""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])

_WITHOUT_RUNTIME = "_nrt"
"""Off: without numba's runtime, which counts references to arrays at each call; four times as fast
as with it (numba 0.68). Compiled functions cannot allocate then, and need not. No documented
option: a numba that does not know it compiles as usual."""


def compiled(function: Function) -> Function:
    """Compile a function of numbers and arrays when it is first called.

    Machine code is kept beside the module or, where that may not be written, in numba's folder
    for the user; where neither can be, it is compiled anew in each process. numba notices a change
    of the function's own file only: whoever edits one that others call deletes what is kept.
    """
    options: dict[str, Any] = {"nogil": True}
    if knows_option(_WITHOUT_RUNTIME):
        options[_WITHOUT_RUNTIME] = False
    try:
        return cast("Function", numba.njit(cache=True, **options)(function))
    except RuntimeError:  # numba found no folder for its cache
        return cast("Function", numba.njit(**options)(function))


@cache
def knows_option(name: str) -> bool:
    """Tell whether the numba at hand takes an option, which only compiling shows."""
    options: dict[str, Any] = {name: False}
    try:
        numba.njit("int64(int64)", **options)(_echo)
    except KeyError:
        return False
    return True


def _echo(number: int) -> int:
    return number
