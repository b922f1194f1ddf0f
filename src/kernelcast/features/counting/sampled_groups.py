"""Which work-groups stand for all."""

from functools import lru_cache
from typing import Final

import numpy as np

from kernelcast.records.ndrange import NDRange

_BITS: Final = 32


def choose_work_groups(ndrange: NDRange, count: int = 8, seed: int = 0) -> tuple[int, ...]:
    """Choose work-groups spread over the index space, the first and the last among them.

    Parameters
    ----------
    ndrange : NDRange
        The index space; its local size is chosen.
    count : int
        How many to choose, at most; at least one is.
    seed : int
        Of the places within the strata between first and last: even steps would fall into step
        with the rows of a grid.

    Returns
    -------
    tuple of int
        Numbers of work-groups, ascending.

    Notes
    -----
    Work-groups at the edges of the index space are over-represented: two of eight. Means of
    kernels that treat borders apart come closer with more work-groups; counting costs little.

    Examples
    --------
    >>> choose_work_groups(NDRange(global_size=(640,), local_size=(64,)), 4)
    (0, 4, 7, 9)
    """
    return choose_numbers(ndrange.work_group_count, count, seed)


def choose_numbers(total: int, count: int = 8, seed: int = 0) -> tuple[int, ...]:
    """Choose as `choose_work_groups` does where there are so many in all."""
    if total <= count:
        return tuple(range(total))
    if count < 2:
        return (total // 2,)
    strata = count - 2
    draws = iter(_draw(strata, seed))
    found, low = [0], 1
    for place in range(1, strata + 1):
        high = 1 + (total - 2) * place // strata
        found.append(low if high == low + 1 else low + (next(draws) * (high - low) >> _BITS))
        low = high
    return (*found, total - 1)


@lru_cache(maxsize=64)
def _draw(count: int, seed: int) -> tuple[int, ...]:
    """Draw numbers of 32 bits: a generator takes longer to make than all else here."""
    return tuple(np.random.default_rng(seed).integers(1 << _BITS, size=count).tolist())
