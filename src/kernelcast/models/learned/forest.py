"""Random forest and gradient boosting, grown by scikit-learn and kept as arrays of nodes.

A random forest is what GPU Mangrove chose. Kept as arrays, a file holds no object of another
library.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from kernelcast.models.learned.learner import (
    FittedLearner,
    Part,
    Rows,
    Setting,
    State,
    cross_predict_by_fits,
)
from kernelcast.records.training_table import Numbers

_FOREST_TREES = 60
_BOOSTING_STEPS = 100
_SHARE_OF_COLUMNS = 1 / 3
_LEAF = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedForest:
    """Trees as arrays of nodes, one tree after the other."""

    base: float
    factor: float
    """A prediction is the base plus the factor times the sum of the trees' leaves."""
    roots: npt.NDArray[np.int64]
    """Shape (trees,). Where each tree begins."""
    columns: npt.NDArray[np.int64]
    left: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]
    """Shape (nodes,). Column to compare, and nodes to go on with; the column of a leaf is -1."""
    thresholds: Numbers
    leaves: Numbers
    """Shape (nodes,). Rows up to the threshold go left; value of a leaf."""

    def predict(self, rows: Rows) -> Numbers:
        """Walk every tree, all rows and trees a step at a time."""
        # scikit-learn compares single-precision values: the same here, for the same answer.
        values = rows.weighted.astype(np.float32).astype(np.float64)
        nodes = np.tile(self.roots, (len(values), 1))
        while (is_inner := self.columns[nodes] >= 0).any():
            row, tree = np.nonzero(is_inner)
            here = nodes[row, tree]
            is_below = values[row, self.columns[here]] <= self.thresholds[here]
            nodes[row, tree] = np.where(is_below, self.left[here], self.right[here])
        found: Numbers = self.base + self.factor * self.leaves[nodes].sum(axis=1)
        return found

    def state(self) -> State:
        """Give the arrays."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestLearner:
    """Trees grown side by side or one after the other; the setting is the least leaf."""

    name: str
    grow: Callable[[Rows, Numbers, Setting], FittedForest]
    settings: Sequence[Setting] = ({"least_leaf": 5.0},)
    inner_folds: int = 4

    def cross_predict(self, rows: Rows, targets: Numbers, parts: Sequence[Part]) -> Numbers:
        """Fit once per part and setting."""
        return cross_predict_by_fits(self, rows, targets, parts)

    def fit(self, rows: Rows, targets: Numbers, setting: Setting) -> FittedLearner:
        """Grow the trees."""
        return self.grow(rows, targets, setting)

    def restore(self, state: State) -> FittedLearner:
        """Make trees of what a file holds."""
        arrays: dict[str, Any] = {
            name: np.asarray(state[name], dtype=np.int64)
            for name in ("roots", "columns", "left", "right")
        }
        return FittedForest(
            base=float(cast("float", state["base"])),
            factor=float(cast("float", state["factor"])),
            thresholds=np.asarray(state["thresholds"], dtype=np.float64),
            leaves=np.asarray(state["leaves"], dtype=np.float64),
            **arrays,
        )


def grow_forest(rows: Rows, targets: Numbers, setting: Setting) -> FittedForest:
    """Grow a random forest."""
    from sklearn.ensemble import RandomForestRegressor

    fitted = RandomForestRegressor(
        n_estimators=_FOREST_TREES, max_features=_SHARE_OF_COLUMNS,
        min_samples_leaf=int(setting["least_leaf"]), random_state=0, n_jobs=1,
    ).fit(rows.weighted, targets)  # fmt: skip
    return _gather([one.tree_ for one in fitted.estimators_], 0.0, 1 / _FOREST_TREES)


def grow_boosted(rows: Rows, targets: Numbers, setting: Setting) -> FittedForest:
    """Grow gradient-boosted trees, each on half the rows, robust to outliers."""
    from sklearn.ensemble import GradientBoostingRegressor

    fitted = GradientBoostingRegressor(
        n_estimators=_BOOSTING_STEPS, max_features=_SHARE_OF_COLUMNS, subsample=0.5, max_depth=4,
        min_samples_leaf=int(setting["least_leaf"]), learning_rate=0.06, loss="huber",
        random_state=0,
    ).fit(rows.weighted, targets)  # fmt: skip
    base = float(np.ravel(fitted.init_.constant_)[0])
    return _gather([one.tree_ for one in fitted.estimators_[:, 0]], base, fitted.learning_rate)


def _gather(trees: Sequence[Any], base: float, factor: float) -> FittedForest:
    """Put trees behind each other; places of nodes move by the trees before."""
    sizes = [tree.node_count for tree in trees]
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    moved = np.repeat(roots, sizes)
    is_leaf = np.concatenate([tree.children_left for tree in trees]) < 0
    columns = np.concatenate([tree.feature for tree in trees])
    return FittedForest(
        base=base,
        factor=float(factor),
        roots=roots,
        columns=np.where(is_leaf, _LEAF, columns).astype(np.int64),
        left=np.concatenate([tree.children_left for tree in trees]).astype(np.int64) + moved,
        right=np.concatenate([tree.children_right for tree in trees]).astype(np.int64) + moved,
        thresholds=np.concatenate([tree.threshold for tree in trees]),
        leaves=np.concatenate([tree.value[:, 0, 0] for tree in trees]),
    )


def check_nodes(forest: FittedForest, columns: int) -> bool:
    """Tell whether every walk ends: children come after their parents and inside the arrays."""
    nodes = len(forest.columns)
    places = np.arange(nodes)
    inner = forest.columns >= 0
    ahead = (forest.left > places) & (forest.right > places)
    inside = (forest.left < nodes) & (forest.right < nodes) & (forest.columns < columns)
    roots = (forest.roots >= 0) & (forest.roots < nodes)
    sizes = {len(forest.left), len(forest.right), len(forest.thresholds), len(forest.leaves)}
    return sizes == {nodes} and bool((ahead & inside)[inner].all() and roots.all())


RANDOM_FOREST = ForestLearner(name="random_forest", grow=grow_forest)
GRADIENT_BOOSTING = ForestLearner(name="gradient_boosting", grow=grow_boosted)
