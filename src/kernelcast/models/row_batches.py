"""Corrections of many launches at once, from ready arrays and by NumPy alone.

The arithmetic is that of `kernelcast.models.correction.FittedCorrection.correct`, arranged for
speed: every pass works in place on a block that stays in the cache, weights and the kernel's width
are multiplied into matrices beforehand, and the exponential is only taken of points that the
expansion uses. Results differ from the plain way in the last digits.
"""

import numpy as np
import numpy.typing as npt

from kernelcast.models.columns import FIGURES, ColumnPlan
from kernelcast.models.learned.svr import FittedSvr
from kernelcast.models.preparation import LIMIT, Preparation, square_rows
from kernelcast.models.space import Space
from kernelcast.models.workspace import Workspace, own_workspace
from kernelcast.records.training_table import Numbers

BLOCK_ROWS = 250
"""Rows at a time."""


class RowBatches:
    """Corrects launches of one model; threads may share one.

    Parameters
    ----------
    space : Space
        Where the launches lie.
    learned : FittedSvr
        The expansion.
    plan : ColumnPlan
        Of the model's columns.
    features : int
        How many features a launch has.
    """

    def __init__(self, space: Space, learned: FittedSvr, plan: ColumnPlan, features: int) -> None:
        self._standards = _Standards(space.preparation, plan.logs)
        self._columns = _ColumnSource(plan, features)
        order = np.argsort(learned.weights == 0, kind="stable")
        points, gamma = space.points[order], learned.gamma
        lengths = square_rows(points)
        self._mirror = np.column_stack(
            [2.0 * gamma * points, -gamma * lengths, np.full_like(lengths, -gamma)]
        )
        self._used = int(np.count_nonzero(learned.weights))
        self._coefficients = learned.weights[order][: self._used].copy()
        self._intercept, self._gamma, self._reach = learned.intercept, gamma, space.reach

    def correct(self, features: Numbers, figures: Numbers) -> tuple[Numbers, Numbers]:
        """Give corrections, before any gate, and the distance to the domain of launches.

        Parameters
        ----------
        features : ndarray, shape (n, features)
            NaN where one is absent.
        figures : ndarray, shape (n, figures)
            In the order of `kernelcast.models.columns.FIGURES`.

        Returns
        -------
        corrections, domain_distance : ndarray, shape (n,)
        """
        corrections, domain_distance = np.empty(len(features)), np.empty(len(features))
        work = own_workspace()
        with np.errstate(all="ignore"):  # what is absent, or divided by zero, is filled
            for begin in range(0, len(features), BLOCK_ROWS):
                block = slice(begin, begin + BLOCK_ROWS)
                values = work.take("batch", len(features[block]), self._standards.width)
                self._columns.write(features[block], figures[block], values)
                extended, remainder = self._standards.project(values, work)
                # The logarithms of the kernels: minus gamma times the squared distances.
                logs = work.take("kernels", len(self._mirror), len(values))
                np.matmul(self._mirror, extended.T, out=logs)
                nearest = np.maximum(logs.max(axis=0) / -self._gamma, 0.0) + remainder
                domain_distance[block] = np.sqrt(nearest) / self._reach
                kernels = np.exp(logs[: self._used], out=logs[: self._used])
                corrections[block] = self._coefficients @ kernels + self._intercept
        return corrections, domain_distance


class _ColumnSource:
    """Makes a model's columns of features and figures, as `ColumnPlan.compute` does.

    Columns at the beginning that are features in their order are copied at once. The others are
    few, and all taken as ``a b / (c d)`` with ones where there is nothing.
    """

    def __init__(self, plan: ColumnPlan, features: int) -> None:
        self._head = _count_head(plan, features)
        self._begin = int(plan.first[0]) if self._head else 0
        one = features + len(FIGURES)
        parts = np.full((4, len(plan.first)), one, dtype=np.intp)
        parts[0] = plan.first
        parts[1, plan.ratios] = plan.second
        parts[2:, plan.ratios] = plan.below.T
        rest = parts[:, self._head :]
        self._features = np.unique(rest[rest < features])
        moved = np.searchsorted(self._features, rest)
        self._parts = np.where(rest < features, moved, rest - features + len(self._features))
        is_log = np.zeros(len(plan.first), dtype=np.bool_)
        is_log[plan.logs] = True
        self._logs = np.flatnonzero(is_log[self._head :])
        self._count = len(plan.first)

    def write(self, features: Numbers, figures: Numbers, out: Numbers) -> None:
        """Write the columns, and zeros behind; what is absent is not finite."""
        head, known = self._head, len(self._features)
        out[:, :head] = features[:, self._begin : self._begin + head]
        out[:, self._count :] = 0.0
        parts = np.empty((known + len(FIGURES) + 1, len(features)))
        parts[:known] = features[:, self._features].T
        parts[known:-1] = figures.T
        parts[-1] = 1.0
        values = parts[self._parts[0]]
        values *= parts[self._parts[1]]
        divisors = parts[self._parts[2]]
        divisors *= parts[self._parts[3]]
        values /= divisors
        values[self._logs] = np.log(values[self._logs])
        out[:, head : self._count] = values.T


def _count_head(plan: ColumnPlan, features: int) -> int:
    """Count the columns in front that are features, one after the other."""
    follows = plan.first - np.arange(len(plan.first)) == plan.first[:1]
    follows &= plan.first < features
    follows[plan.ratios] = False
    follows[plan.logs] = False
    return int(np.argmin(follows)) if not follows.all() else len(follows)


class _Standards:
    """Puts columns into the space of a preparation, as `Preparation.weigh` and `project` do.

    Columns at the places `signed` are often negative, others hardly ever.
    """

    def __init__(self, preparation: Preparation, signed: npt.NDArray[np.intp]) -> None:
        columns = len(preparation.names)
        self._columns, self.width = columns, len(preparation.weights)
        self._signed = signed
        self._indicators, self._rates = preparation.indicators, preparation.absence_rates
        self._factors, self._fill, self._centre, self._gains = (
            np.concatenate([one, np.zeros(self.width - columns)])
            for one in (
                preparation.factors, preparation.fill, preparation.centre, 1.0 / preparation.scale
            )
        )  # fmt: skip
        self._weights_squared = preparation.weights**2
        self._components = preparation.weights[:, None] * preparation.components

    def project(self, values: Numbers, work: Workspace) -> tuple[Numbers, Numbers]:
        """Give coordinates, a one and the squared length of each launch, and what they leave out.

        Parameters
        ----------
        values : ndarray, shape (n, width)
            Columns, with room for the indicators; overwritten.
        work : Workspace
            Memory.

        Returns
        -------
        extended : ndarray, shape (n, dimensions + 2)
        remainder : ndarray, shape (n,)
        """
        self._standardise(values, work)
        extended = work.take("extended", len(values), self._components.shape[1] + 2)
        coordinates = extended[:, :-2]
        np.matmul(values, self._components, out=coordinates)
        lengths = square_rows(coordinates)
        extended[:, -2] = 1.0
        extended[:, -1] = lengths
        values *= values
        remainder = values @ self._weights_squared - lengths
        return extended, np.maximum(remainder, 0.0)

    def _standardise(self, values: Numbers, work: Workspace) -> None:
        """Turn columns into standardised logarithms, and write the indicators behind them."""
        held = work.take("flags", values.size // 8 + 1).view(np.bool_)
        flags = held[: values.size].reshape(values.shape)
        values *= self._factors
        signed = self._signed
        before = values[:, signed]
        values[:, signed] = np.abs(before)
        if np.less(values, 0.0, out=flags).any():
            others = np.flatnonzero(flags.any(axis=0))
            signed = np.concatenate([signed, others])
            before = np.hstack([before, values[:, others]])
            values[:, others] = np.abs(values[:, others])
        np.log1p(values, out=values)
        values[:, signed] = np.copysign(values[:, signed], before)
        marks = -self._rates
        if not np.isfinite(values, out=flags).all():
            absent = np.logical_not(flags, out=flags)
            marks = absent[:, self._indicators] - self._rates
            places = np.flatnonzero(absent)  # far faster than with two axes
            values.reshape(-1)[places] = self._fill[places % self.width]
        values -= self._centre
        values *= self._gains
        np.clip(values, -LIMIT, LIMIT, out=values)
        values[:, self._columns :] = marks
