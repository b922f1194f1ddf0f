"""On which side of their turns conditions are, for work-groups as a whole."""

from collections.abc import Sequence

import numpy as np

from kernelcast.expressions.evaluation import IntArray
from kernelcast.expressions.group_bounds import GroupBounds
from kernelcast.expressions.group_forms import Form, Sizes

DECIDED = 2**62
"""Beyond what conditions compare with zero."""


class Decisions:
    """Conditions, by what they compare with zero.

    Parameters
    ----------
    forms : sequence of Form
        What is compared.
    clamps : int
        So many of them, the first, are negative where something is clamped.
    endless : sequence of bool
        Whether more than the side matters.
    products : sequence of Sizes
        Products of sizes.
    bounds : GroupBounds
        Of what differs within a work-group.
    """

    def __init__(
        self,
        forms: Sequence[Form],
        clamps: int,
        endless: Sequence[bool],
        products: Sequence[Sizes],
        bounds: GroupBounds,
    ) -> None:
        self.count = len(forms)
        self._clamps = clamps
        spans = np.zeros(
            (len(forms), len(products))
        )  # within which work-items may be on both sides
        for row, form in enumerate(forms):
            for (what, sizes), factor in form.inner.items():
                if not endless[row]:
                    spans[row, products.index(sizes)] += abs(factor) * bounds.bound(what)
        is_endless = np.isinf(spans).any(axis=1) | np.array(endless, dtype=np.bool_)
        spans[is_endless] = 0
        is_clamp = np.arange(len(forms)) < clamps
        stretches = np.array([one.stretches for one in forms], dtype=np.bool_)
        decided = np.minimum(spans[:, products.index(())] + 1, DECIDED)
        self._low, self._high = (
            np.where(is_endless | stretches | never, sign * DECIDED, sign * decided)
            .astype(np.int64)[:, None]
            for sign, never in ((-1, is_clamp), (1, False))
        )  # fmt: skip
        self._stretching = np.flatnonzero(stretches)
        self._spans = spans[stretches]
        self._endless, self._below = (
            np.where(one, DECIDED, 0)[stretches] for one in (is_endless, is_clamp)
        )

    def round(self, values: IntArray, numbers: IntArray, alone: int) -> bool:
        """Leave only sides, where all work-items are on one, and say if they stand.

        They do not where sizes decide within a work-group. What is clamped stays as far from its
        bound as it is, and may not be where lines are compared: others move on.

        Parameters
        ----------
        values : ndarray of int64, shape (conditions, work-groups)
            Of the forms; changed.
        numbers : ndarray of int64, shape (products,)
            The products of sizes.
        alone : int
            How many work-groups, the first, are not compared.
        """
        if not self.count:
            return True
        np.minimum(np.maximum(values, self._low, out=values), self._high, out=values)
        is_same = True
        if self._stretching.size:
            stretched = values[self._stretching]
            high = self._spans @ np.abs(numbers) + self._endless
            low = -high - self._below
            is_open = (low[:, None] <= stretched) & (stretched <= high[:, None])
            is_same = not is_open.any()
            sides = np.where(stretched > 0, DECIDED, -DECIDED)
            values[self._stretching] = np.where(is_open, stretched, sides)
        if self._clamps and (values[: self._clamps, alone:] < self._high[: self._clamps]).any():
            return False
        return is_same
