"""Splits of observations into training and test rows that keep groups whole.

Rows of one kernel resemble each other far more than rows of two kernels: a split that puts them on
both sides measures memory and not prediction. The paper leaves one kernel out with all its rows
(section 6); applications and devices are left out in the same way. No split depends on the order
of the rows, so that a store may be filled in any order.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import InputError
from kernelcast.training_data.store import ObservationTable

Labels = Sequence[str] | npt.NDArray[np.object_] | npt.NDArray[np.str_]
"""The group of each row."""


class SplitBy(StrEnum):
    """What stays whole."""

    KERNEL = "kernel"
    """All rows of a kernel function of an application, whatever its build options."""
    APPLICATION = "application"
    """All kernels of an application, which often share helpers and data."""
    DEVICE = "device"
    """All rows of a device."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fold:
    """One way to divide rows into those to learn from and those to be judged by.

    Parameters
    ----------
    groups : tuple of str
        Groups held out, sorted.
    train, test : ndarray of int, shape (n_train,) and (n_test,)
        Places of rows, ascending; together every row once.
    """

    groups: tuple[str, ...]
    train: npt.NDArray[np.intp]
    test: npt.NDArray[np.intp]


def label_rows(table: ObservationTable, by: SplitBy) -> npt.NDArray[np.object_]:
    """Give the group of each row of a table.

    Raises
    ------
    InputError
        If applications are asked for and rows do not name theirs.
    """
    if by is SplitBy.KERNEL:
        return table.kernels
    if by is SplitBy.DEVICE:
        return table.device_ids
    unknown = int(np.count_nonzero(table.applications == ""))
    if unknown:
        msg = (
            f"{unknown} of {len(table)} rows name no application; split by kernel, or select "
            "rows that name one"
        )
        raise InputError(msg)
    return table.applications


def leave_one_group_out(labels: Labels) -> list[Fold]:
    """Hold each group out once.

    Parameters
    ----------
    labels : sequence of str
        The group of each row.

    Returns
    -------
    list of Fold
        One per group, in the groups' order.

    Raises
    ------
    InputError
        If there are fewer than two groups.

    Examples
    --------
    >>> [(fold.groups, fold.test.tolist()) for fold in leave_one_group_out(["b", "a", "b"])]
    [(('a',), [1]), (('b',), [0, 2])]
    """
    return _make_folds(labels, lambda groups: {group: place for place, group in enumerate(groups)})


def split_into_folds(labels: Labels, count: int, *, seed: int = 0) -> list[Fold]:
    """Hold each group out once, several at a time, in folds of about as many rows each.

    Parameters
    ----------
    labels : sequence of str
        The group of each row.
    count : int
        Number of folds, at least 2 and at most the number of groups.
    seed : int
        Another seed puts other groups together.

    Returns
    -------
    list of Fold
        Groups are taken in an order drawn by the seed, each into the fold with the fewest rows.

    Raises
    ------
    InputError
        If there are fewer groups than folds, or fewer than two folds.

    Examples
    --------
    >>> folds = split_into_folds(["a", "a", "b", "c"], 2, seed=1)
    >>> [fold.groups for fold in folds]
    [('a',), ('b', 'c')]
    """
    groups = len(set(map(str, labels)))
    if not 2 <= count <= groups:
        msg = f"{count} folds of {groups} groups: give at least 2 and at most {groups}"
        raise InputError(msg)
    return _make_folds(labels, lambda sizes: _balance(sizes, count, seed))


def hold_out(labels: Labels, share: float, *, seed: int = 0) -> Fold:
    """Hold out whole groups with about a share of the rows, for instance to calibrate intervals.

    Parameters
    ----------
    labels : sequence of str
        The group of each row.
    share : float
        Share of the rows to hold out, between 0 and 1.
    seed : int
        Another seed holds out other groups.

    Returns
    -------
    Fold
        With at least one group on each side.

    Raises
    ------
    InputError
        If there are fewer than two groups, or the share is out of its range.

    Examples
    --------
    >>> hold_out(["a", "b", "c", "d"], 0.5, seed=2).test.size
    2
    """
    if not 0 < share < 1:
        msg = f"share {share}: give a number between 0 and 1"
        raise InputError(msg)
    return _make_folds(labels, lambda sizes: _take(sizes, share, seed))[0]


def _make_folds(
    labels: Labels, assign: Callable[[Mapping[str, int]], Mapping[str, int]]
) -> list[Fold]:
    """Make the folds that groups are assigned to; `assign` takes rows per group, sorted."""
    rows_of = Counter(map(str, labels))
    if len(rows_of) < 2:
        msg = f"{len(rows_of)} groups: a split that keeps groups whole needs at least two"
        raise InputError(msg)
    groups = sorted(rows_of)
    fold_of = assign({name: rows_of[name] for name in groups})
    fold_of_row = np.fromiter((fold_of[str(one)] for one in labels), np.intp, len(labels))
    return [
        Fold(
            groups=tuple(name for name in groups if fold_of[name] == place),
            train=np.flatnonzero(fold_of_row != place),
            test=np.flatnonzero(fold_of_row == place),
        )
        for place in range(max(1, len({*fold_of.values()} - {_KEPT})))
    ]


_KEPT = -1
"""Stands for groups that are never held out."""


def _balance(sizes: Mapping[str, int], count: int, seed: int) -> dict[str, int]:
    filled = [0] * count
    groups_in = Counter[int]()
    fold_of = {}
    for taken, group in enumerate(_shuffle(sizes, seed)):
        # The last groups go where there is none yet: no fold may stay empty.
        empty = [place for place in range(count) if not groups_in[place]]
        places = empty if len(sizes) - taken == len(empty) else range(count)
        fold_of[group] = min(places, key=lambda place: (filled[place], place))
        filled[fold_of[group]] += sizes[group]
        groups_in[fold_of[group]] += 1
    return fold_of


def _take(sizes: Mapping[str, int], share: float, seed: int) -> dict[str, int]:
    wanted = share * sum(sizes.values())
    fold_of = dict.fromkeys(sizes, _KEPT)
    taken = 0
    for group in _shuffle(sizes, seed)[:-1]:
        if taken and taken + sizes[group] / 2 > wanted:
            break
        fold_of[group] = 0
        taken += sizes[group]
    return fold_of


def _shuffle(groups: Iterable[str], seed: int) -> list[str]:
    """Put groups into an order that depends on their names and the seed alone."""
    return sorted(groups, key=lambda name: hashlib.sha256(f"{seed}\0{name}".encode()).digest())
