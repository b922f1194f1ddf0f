"""Work-groups in dispatch order, as boxes of the grid: dimension 0 runs fastest."""

from functools import lru_cache

from kernelcast.analytic.gpu.volumes.affine import Range

GroupRange = tuple[Range, Range, Range]


def split_range(start: int, end: int, counts: tuple[int, int, int]) -> list[GroupRange]:
    """Split consecutive work-groups into boxes.

    Parameters
    ----------
    start, end : int
        Number of the first work-group, and of the first one behind the range.
    counts : tuple of int
        Work-groups per dimension.

    Returns
    -------
    list of boxes
        At most five, each a range per dimension; they do not overlap.

    Examples
    --------
    >>> split_range(3, 9, (4, 8, 1))
    [((3, 4), (0, 1), (0, 1)), ((0, 4), (1, 2), (0, 1)), ((0, 1), (2, 3), (0, 1))]
    """
    start, end = max(start, 0), min(end, counts[0] * counts[1] * counts[2])
    boxes: list[GroupRange] = []
    layer, row = counts[0] * counts[1], counts[0]
    while start < end:
        x, y, z = start % row, start // row % counts[1], start // layer
        if start % layer == 0 and end - start >= layer:
            deep = (end - start) // layer
            boxes.append(((0, row), (0, counts[1]), (z, z + deep)))
            start += deep * layer
        elif x == 0 and end - start >= row:
            tall = min((end - start) // row, counts[1] - y)
            boxes.append(((0, row), (y, y + tall), (z, z + 1)))
            start += tall * row
        else:
            wide = min(end - start, row - x)
            boxes.append(((x, x + wide), (y, y + 1), (z, z + 1)))
            start += wide
    return boxes


@lru_cache(maxsize=1024)
def mix_run(work_groups: int, counts: tuple[int, int, int]) -> tuple[tuple[GroupRange, float], ...]:
    """Stand in for consecutive work-groups in the middle of a launch by whole rows or layers.

    A run starts anywhere in a row: what it touches lies between what the rows touch that fit into
    it and what one row more touches.

    Parameters
    ----------
    work_groups : int
        Length of the run.
    counts : tuple of int
        Work-groups per dimension.

    Returns
    -------
    tuple of (box, float)
        One box or two, with their weights.

    Examples
    --------
    >>> mix_run(10, (4, 8, 1))
    ((((0, 4), (3, 5), (0, 1)), 0.5), (((0, 4), (2, 5), (0, 1)), 0.5))
    """
    row, layer = counts[0], counts[0] * counts[1]
    run = min(work_groups, layer * counts[2])
    unit, axis = next(
        (unit, axis) for unit, axis in ((layer, 2), (row, 1), (1, 0)) if run >= unit or unit == 1
    )
    whole, rest = divmod(run, unit)
    found = []
    for length, weight in ((whole, 1 - rest / unit), (whole + 1, rest / unit)):
        if weight:
            x, y, z = (
                (0, count) if place < axis else _center(length if place == axis else 1, count)
                for place, count in enumerate(counts)
            )
            found.append(((x, y, z), weight))
    return tuple(found)


def _center(length: int, count: int) -> Range:
    start = (count - length) // 2
    return start, start + length
