"""Ridge regression on the principal components: the plainest rival."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from kernelcast.models.learned.learner import (
    FittedLearner,
    Part,
    Rows,
    Setting,
    State,
    cross_predict_by_fits,
)
from kernelcast.records.training_table import Numbers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedRidge:
    """A plane."""

    intercept: float
    """Value at the centre."""
    weights: Numbers
    """Shape (dimensions,). Slope per component."""

    def predict(self, rows: Rows) -> Numbers:
        """Evaluate the plane."""
        found: Numbers = rows.projected @ self.weights + self.intercept
        return found

    def state(self) -> State:
        """Give intercept and weights."""
        return {"intercept": self.intercept, "weights": self.weights}


@dataclass(frozen=True, slots=True, kw_only=True)
class RidgeLearner:
    """Ridge; the setting is the penalty, as a share of the rows."""

    name: str = "ridge"
    settings: Sequence[Setting] = tuple({"penalty": one} for one in (1.0, 0.1, 0.01, 0.001))
    inner_folds: int = 5

    def cross_predict(self, rows: Rows, targets: Numbers, parts: Sequence[Part]) -> Numbers:
        """Fit once per part and setting."""
        return cross_predict_by_fits(self, rows, targets, parts)

    def fit(self, rows: Rows, targets: Numbers, setting: Setting) -> FittedLearner:
        """Fit the plane."""
        from sklearn.linear_model import Ridge

        fitted = Ridge(alpha=setting["penalty"] * len(rows)).fit(rows.projected, targets)
        return FittedRidge(intercept=float(fitted.intercept_), weights=fitted.coef_)

    def restore(self, state: State) -> FittedLearner:
        """Make a plane of what a file holds."""
        return FittedRidge(
            intercept=float(cast("float", state["intercept"])),
            weights=np.asarray(state["weights"], dtype=np.float64),
        )
