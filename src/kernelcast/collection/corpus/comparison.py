"""Compares what a kernel left in its buffers with what its reference wants."""

from collections.abc import Mapping

import numpy as np

from kernelcast.sampling.whole_run import WholeRun
from kernelcast.training_data.reference import Array, Reference, Value


def find_difference(
    run: WholeRun, reference: Reference, parameters: Mapping[str, int]
) -> str | None:
    """Say where a run differs from its reference, or None."""
    given: list[Value] = [None if value is None else np.copy(value) for value in run.before]
    wanted = reference.expected(given, parameters)
    if not wanted:
        return "the reference wants nothing"
    for index, (before, after) in enumerate(zip(run.before, run.after, strict=True)):
        if not isinstance(before, np.ndarray) or not isinstance(after, np.ndarray):
            continue
        if index in wanted:
            complaint = compare(after, np.asarray(wanted[index]), reference.tolerance)
        else:
            complaint = compare(after, before, 0.0, verb="changed")
        if complaint is not None:
            return f"argument {index}: {complaint}"
    return None


def compare(found: Array, wanted: Array, tolerance: float, *, verb: str = "differ") -> str | None:
    """Say how two arrays differ, or None.

    Parameters
    ----------
    found, wanted : ndarray
        Of the same type and number of values.
    tolerance : float
        Relative; near zero the mean of the absolute values counts. Integers are compared exactly.
    verb : str, optional
        What the complaint says that values do.

    Examples
    --------
    >>> compare(np.array([1, 2, 4]), np.array([1, 2, 3]), 0.1)
    '1 of 3 values differ, the first at 2: found 4, wanted 3'
    """
    if found.dtype != wanted.dtype or found.size != wanted.size:
        return (
            f"the reference gives {wanted.size} values of {wanted.dtype}, the buffer holds "
            f"{found.size} of {found.dtype}"
        )
    found, wanted = found.ravel(), wanted.ravel()
    if tolerance == 0.0 or found.dtype.kind in "iu":
        is_fine = found == wanted
        if found.dtype.kind == "f":
            is_fine |= np.isnan(found) & np.isnan(wanted)
    else:
        finite = np.abs(wanted[np.isfinite(wanted)].astype(np.float64))
        # near zero the values' own scale counts, not the element's
        scale = float(finite.mean()) if finite.size else 0.0
        is_fine = np.isclose(found, wanted, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    places = np.flatnonzero(~is_fine)
    if not places.size:
        return None
    first = int(places[0])
    return (
        f"{places.size} of {found.size} values {verb}, the first at {first}: "
        f"found {found[first]}, wanted {wanted[first]}"
    )
