"""Compiles with numba, keeping the result where that can be kept."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """Compile a function of numbers and arrays when it is first called.

    Sums may be reordered: results differ from NumPy's in the last digits.
    """
    options: dict[str, Any] = {"nogil": True, "fastmath": {"reassoc", "contract"}}
    try:
        return cast("Function", numba.njit(cache=True, **options)(function))
    except RuntimeError:  # numba found no folder for its cache
        return cast("Function", numba.njit(**options)(function))
