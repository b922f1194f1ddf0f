"""epsilon-SVR with a Gaussian kernel, kept as its kernel expansion.

Source: sampling-svr, sections 3.3 and 5.2; the regressor is scikit-learn's. A prediction is
``sum_j a_j exp(-gamma |x - x_j|^2) + b``: the points x_j are the training's rows. Beyond
`kernelcast.models.space.EXACT_ROWS` rows the exact solution, whose cost grows between n^2 and n^3,
gives way to Nystroem's: the points are landmarks, and a linear epsilon-insensitive fit in the
space they span costs n. The prediction's form stays the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from kernelcast.models.learned.learner import (
    FittedLearner,
    Part,
    Rows,
    Setting,
    State,
)
from kernelcast.records.training_table import Numbers

if TYPE_CHECKING:
    from sklearn.svm import SVR, LinearSVR

# Half the tube: below what repeated runs differ by, there is nothing to learn.
_EPSILON = 0.02
# The squared loss of the linear fit weighs a residual r by r^2 instead of r.
_SQUARED_LOSS = 10.0
_JITTER = 1e-8
# The linear fit learns its intercept as a weight, of which little is to be regularised.
_INTERCEPT_SCALING = 10.0
_GRID = tuple({"C": cost, "width": width} for cost in (0.1, 1.0, 10.0) for width in (0.5, 2.0, 8.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedSvr:
    """A kernel expansion."""

    gamma: float
    """Of the kernel ``exp(-gamma d^2)``."""
    intercept: float
    """Added to the sum."""
    weights: Numbers
    """Shape (points,). One per point of the space; 0 for rows that are no support vectors."""

    def predict(self, rows: Rows) -> Numbers:
        """Sum the kernels."""
        found: Numbers = np.exp(-self.gamma * rows.distances) @ self.weights + self.intercept
        return found

    def state(self) -> State:
        """Give numbers and weights."""
        return {"gamma": self.gamma, "intercept": self.intercept, "weights": self.weights}


@dataclass(frozen=True, slots=True, kw_only=True)
class SvrLearner:
    """epsilon-SVR; settings are the cost C and the kernel's width over the median distance."""

    name: str = "svr"
    settings: Sequence[Setting] = _GRID
    inner_folds: int = 5

    def cross_predict(self, rows: Rows, targets: Numbers, parts: Sequence[Part]) -> Numbers:
        """Share kernels between settings of one width."""
        found = np.zeros((len(self.settings), len(targets)))
        for width in sorted({one["width"] for one in self.settings}):
            basis = _make_basis(rows, _gamma(width, rows))
            for place, setting in enumerate(self.settings):
                if setting["width"] == width:
                    for part in parts:
                        found[place, part.test] = basis.predict_part(targets, setting, part)
        return found

    def fit(self, rows: Rows, targets: Numbers, setting: Setting) -> FittedLearner:
        """Fit exactly where the points are the rows, by landmarks otherwise."""
        gamma = _gamma(setting["width"], rows)
        intercept, weights = _make_basis(rows, gamma).expand(targets, setting)
        return FittedSvr(gamma=gamma, intercept=intercept, weights=weights)

    def restore(self, state: State) -> FittedLearner:
        """Make an expansion of what a file holds."""
        return FittedSvr(
            gamma=float(cast("float", state["gamma"])),
            intercept=float(cast("float", state["intercept"])),
            weights=np.asarray(state["weights"], dtype=np.float64),
        )


class _Basis(Protocol):
    """The kernel of one width, in the form that a solver wants."""

    def predict_part(self, targets: Numbers, setting: Setting, part: Part) -> Numbers:
        """Learn from a part's rows and predict its others."""
        ...

    def expand(self, targets: Numbers, setting: Setting) -> tuple[float, Numbers]:
        """Learn from all rows, and give intercept and weights of the points."""
        ...


@dataclass(frozen=True, slots=True)
class _Exact:
    """The kernel between all rows, shape (n, n)."""

    kernel: Numbers

    def predict_part(self, targets: Numbers, setting: Setting, part: Part) -> Numbers:
        seen = self.kernel[np.ix_(part.train, part.train)]
        fitted = _make_svr(setting).fit(seen, targets[part.train])
        found: Numbers = fitted.predict(self.kernel[np.ix_(part.test, part.train)])
        return found

    def expand(self, targets: Numbers, setting: Setting) -> tuple[float, Numbers]:
        fitted = _make_svr(setting).fit(self.kernel, targets)
        weights = np.zeros(len(targets))
        weights[fitted.support_] = fitted.dual_coef_[0]
        return float(fitted.intercept_[0]), weights


@dataclass(frozen=True, slots=True)
class _Nystroem:
    """Rows in the space that the landmarks span.

    `whitening`, shape (points, rank), makes columns of length one of the points' kernels;
    `spanned`, shape (n, rank), are the rows in them.
    """

    whitening: Numbers
    spanned: Numbers

    def predict_part(self, targets: Numbers, setting: Setting, part: Part) -> Numbers:
        fitted = _make_linear(setting).fit(self.spanned[part.train], targets[part.train])
        found: Numbers = fitted.predict(self.spanned[part.test])
        return found

    def expand(self, targets: Numbers, setting: Setting) -> tuple[float, Numbers]:
        fitted = _make_linear(setting).fit(self.spanned, targets)
        return float(np.ravel(fitted.intercept_)[0]), self.whitening @ fitted.coef_.ravel()


def _make_basis(rows: Rows, gamma: float) -> _Basis:
    kernel = np.exp(-gamma * rows.distances)
    if rows.distances is rows.between:
        return _Exact(kernel)
    values, vectors = np.linalg.eigh(np.exp(-gamma * rows.between))
    kept = values > _JITTER * values.max()
    whitening = vectors[:, kept] / np.sqrt(values[kept])
    return _Nystroem(whitening, kernel @ whitening)


def _gamma(width: float, rows: Rows) -> float:
    """Give gamma of a kernel as wide as the median distance to the points, times a factor."""
    return 1.0 / (width * max(float(np.median(rows.between)), _JITTER))


def _make_svr(setting: Setting) -> "SVR":
    from sklearn.svm import SVR

    return SVR(kernel="precomputed", C=setting["C"], epsilon=_EPSILON)


def _make_linear(setting: Setting) -> "LinearSVR":
    from sklearn.svm import LinearSVR

    return LinearSVR(
        C=_SQUARED_LOSS * setting["C"], epsilon=_EPSILON, dual=False, max_iter=300, tol=1e-3,
        loss="squared_epsilon_insensitive", intercept_scaling=_INTERCEPT_SCALING,
    )  # fmt: skip
