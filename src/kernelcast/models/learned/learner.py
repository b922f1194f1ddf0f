"""What every regressor does, and the coordinates that all of them see."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kernelcast.records.training_table import Numbers

Setting = Mapping[str, float]
"""Hyperparameters by name."""
State = dict[str, object]
"""Plain numbers, texts, lists and arrays: what a model file holds."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Launches as coordinates."""

    weighted: Numbers
    """Shape (n, columns). Every column, for forests."""
    projected: Numbers
    """Shape (n, dimensions). Principal components, for kernels and ridge."""
    distances: Numbers
    """Shape (n, points). Squared distances to the points of the space."""
    between: Numbers
    """Shape (points, points). Squared distances of the points; the same array as `distances` where
    the points are the rows, empty for rows that are not learned from."""
    remainder: Numbers
    """Shape (n,). Squared distances to the plane of the components."""

    def __len__(self) -> int:
        return len(self.projected)

    def take(self, places: npt.NDArray[np.intp]) -> "Rows":
        """Give some rows."""
        return Rows(
            weighted=self.weighted[places],
            projected=self.projected[places],
            distances=self.distances[places],
            between=self.between,
            remainder=self.remainder[places],
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """Places of rows to learn from and of those to predict; groups are on one side only."""

    train: npt.NDArray[np.intp]
    test: npt.NDArray[np.intp]


class FittedLearner(Protocol):
    """A regressor that has learned."""

    def predict(self, rows: Rows) -> Numbers:
        """Give one number per row."""
        ...

    def state(self) -> State:
        """Give what it has learned; the learner's `restore` is the inverse."""
        ...


class Learner(Protocol):
    """A regressor that has not learned yet."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    @property
    def settings(self) -> Sequence[Setting]:
        """Hyperparameters to choose from, the plainest first."""
        ...

    @property
    def inner_folds(self) -> int:
        """In how many parts the training's groups are divided to choose among them."""
        ...

    def cross_predict(self, rows: Rows, targets: Numbers, parts: Sequence[Part]) -> Numbers:
        """Predict each row by fits that have not seen its group, shape (settings, n)."""
        ...

    def fit(self, rows: Rows, targets: Numbers, setting: Setting) -> FittedLearner:
        """Learn from all rows."""
        ...

    def restore(self, state: State) -> FittedLearner:
        """Make a regressor of what a file holds."""
        ...


def cross_predict_by_fits(
    learner: Learner, rows: Rows, targets: Numbers, parts: Sequence[Part]
) -> Numbers:
    """Predict each row out of fold by one fit per part and setting."""
    found = np.zeros((len(learner.settings), len(targets)))
    for part in parts:
        seen, unseen = rows.take(part.train), rows.take(part.test)
        for place, setting in enumerate(learner.settings):
            fitted = learner.fit(seen, targets[part.train], setting)
            found[place, part.test] = fitted.predict(unseen)
    return found
