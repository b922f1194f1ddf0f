"""Work-groups in dispatch order, as boxes of the grid: dimension 0 runs fastest."""

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
