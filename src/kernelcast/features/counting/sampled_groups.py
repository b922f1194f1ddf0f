"""Which work-groups stand for all."""

import numpy as np

from kernelcast.records.ndrange import NDRange


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
    total = ndrange.work_group_count
    if total <= count:
        return tuple(range(total))
    if count < 2:
        return (total // 2,)
    strata = count - 2
    edges = [1 + (total - 2) * place // max(1, strata) for place in range(strata + 1)]
    between = np.random.default_rng(seed).integers(edges[:-1], edges[1:])
    return (0, *(int(place) for place in between), total - 1)
