"""The space of the training's launches: coordinates, points, and how far a launch is from them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.models.learned.learner import Rows
from kernelcast.models.preparation import Preparation, fit_preparation, square_rows
from kernelcast.records.training_table import Numbers

EXACT_ROWS = 1000
"""Up to so many rows all are points and the SVR is exact; beyond, landmarks stand for them."""
LANDMARKS = 512
"""Points beyond `EXACT_ROWS`."""
_REACH_QUANTILE = 0.95
_NOTHING = np.empty((0, 0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Space:
    """Where launches lie, see `fit_space`."""

    preparation: Preparation
    """From columns to coordinates."""
    points: Numbers
    """Shape (points, dimensions). Rows of the training, or landmarks among them."""
    mirror: Numbers
    """Shape (dimensions + 2, points). The points as `square_distances` wants them."""
    reach: float
    """Distance to the nearest point of another group within which 95 % of the training lie."""

    def place(self, values: Numbers) -> Rows:
        """Give the coordinates of launches.

        Parameters
        ----------
        values : ndarray, shape (n, columns)
            NaN where one is absent.
        """
        weighted = self.preparation.weigh(values)
        projected, remainder = self.preparation.project(weighted)
        return Rows(
            weighted=weighted,
            projected=projected,
            distances=square_distances(projected, self.mirror),
            between=_NOTHING,
            remainder=remainder,
        )

    def measure_domain_distance(self, rows: Rows) -> Numbers:
        """Give distances to the nearest point over the reach: above 1 is outside the domain."""
        nearest = np.maximum(rows.distances.min(axis=1), 0.0) + rows.remainder
        found: Numbers = np.sqrt(nearest) / self.reach
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedSpace:
    """A space with the training's own rows in it."""

    space: Space
    """The space."""
    rows: Rows
    """The training's."""
    domain_distance: Numbers
    """Shape (n,). Of each row, to the points of other groups."""


def fit_space(names: tuple[str, ...], values: Numbers, groups: npt.NDArray[np.intp]) -> FittedSpace:
    """Span the space of a training's launches.

    Parameters
    ----------
    names : tuple of str
        Of the columns.
    values : ndarray, shape (n, names)
        Of the training; NaN where one is absent.
    groups : ndarray of int, shape (n,)
        Groups that are held out as a whole: distances within one say nothing of unseen ones.
    """
    preparation = fit_preparation(names, values)
    weighted = preparation.weigh(values)
    projected, remainder = preparation.project(weighted)
    places = _choose_points(len(projected))
    points = projected[places]
    mirror = mirror_points(points)
    between = square_distances(points, mirror)
    np.fill_diagonal(between, 0.0)
    exact = len(places) == len(projected)
    distances = between if exact else square_distances(projected, mirror)
    nearest = _nearest_foreign(distances, groups, groups[places])
    foreign = np.maximum(nearest, 0.0) + remainder
    reach = float(np.sqrt(np.quantile(foreign, _REACH_QUANTILE))) or 1.0
    rows = Rows(
        weighted=weighted, projected=projected, distances=distances, between=between,
        remainder=remainder,
    )  # fmt: skip
    space = Space(preparation=preparation, points=points, mirror=mirror, reach=reach)
    return FittedSpace(space=space, rows=rows, domain_distance=np.sqrt(foreign) / reach)


def _choose_points(count: int) -> npt.NDArray[np.intp]:
    if count <= EXACT_ROWS:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, LANDMARKS, replace=False))


def _nearest_foreign(
    distances: Numbers, groups: npt.NDArray[np.intp], owners: npt.NDArray[np.intp]
) -> Numbers:
    """Give the squared distance of each row to the nearest point of another group."""
    nearest: Numbers = np.where(groups[:, None] == owners, np.inf, distances).min(axis=1)
    return np.where(np.isfinite(nearest), nearest, distances.max(axis=1))


def mirror_points(points: Numbers) -> Numbers:
    """Arrange points, shape (points, dimensions), for `square_distances`."""
    lengths = square_rows(points)
    return np.ascontiguousarray(np.column_stack([-2.0 * points, lengths, np.ones_like(lengths)]).T)


def square_distances(rows: Numbers, mirror: Numbers) -> Numbers:
    """Give squared distances to points in one product of matrices.

    ``|x - p|^2 = x . (-2 p) + 1 |p|^2 + |x|^2 1``; rounding may leave a little below zero.

    Parameters
    ----------
    rows : ndarray, shape (n, dimensions)
        Coordinates.
    mirror : ndarray, shape (dimensions + 2, points)
        See `mirror_points`.

    Returns
    -------
    ndarray, shape (n, points)
    """
    lengths = square_rows(rows)
    extended = np.column_stack([rows, np.ones_like(lengths), lengths])
    found: Numbers = extended @ mirror
    return found
