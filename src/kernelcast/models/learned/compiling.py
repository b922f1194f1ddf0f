"""Compiles with numba when a function is first called, keeping the result where it can be kept."""

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Compiled(Generic[Parameters, Result]):
    """A function of numbers and arrays that is compiled when it is first called.

    numba takes as long to import as a whole estimate: what only reads models does without it.
    """

    def __init__(self, function: Callable[Parameters, Result]) -> None:
        self._function = function
        self._fast: Callable[Parameters, Result] | None = None
        self.__doc__ = function.__doc__

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        """Call the compiled function."""
        return self.fast(*args, **kwargs)

    @property
    def fast(self) -> Callable[Parameters, Result]:
        """The compiled function itself, for whoever calls it very often."""
        if self._fast is None:
            self._fast = _compile(self._function)
        return self._fast


def compiled(function: Callable[Parameters, Result]) -> Compiled[Parameters, Result]:
    """Compile a function of numbers and arrays when it is first called.

    Sums may be reordered: results differ from NumPy's in the last digits.
    """
    return Compiled(function)


def _compile(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    import numba

    options: dict[str, Any] = {"nogil": True, "fastmath": {"reassoc", "contract"}}
    try:
        found: Callable[Parameters, Result] = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba found no folder for its cache
        found = numba.njit(**options)(function)
    return found
