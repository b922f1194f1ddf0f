"""A correction of times, learned by scikit-learn and kept as numbers; its columns and intervals.

``log t = log t_reference + g c(x)``: c is learned from columns without units, its target is
``log(measured / reference)``. That is the sampling paper's target in other words (section 5.2):
with the instructions I of the whole launch, ``IPS_lin = I / t_lin`` and ``IPS_est = I / t_ML``, so
``t_ML / t_lin = IPS_lin / IPS_est``. The paper's learned model makes the kernels worse that the
linear model predicts well (Table 3); here g shrinks a correction as far as it did not help groups
that its fit had not seen, down to none, and fades it away from the training's launches.

A fitted regression holds arrays only. It predicts without scikit-learn, whose import takes longer
than an estimate, and a file of it holds no object.

Columns are numbers without a unit, which mean the same on every device: ratios, counts of the
source, rates over calibrated peaks, volumes over cache sizes, and times over the time that a model
corrects. What carries a unit is left out: it would tell devices apart instead of launches.

Intervals hold what they promise: they are conformal, multiplicative, calibrated on unseen groups. A
residual is ``log(measured / predicted)`` of a launch whose group the prediction has not seen. Its
score is the residual's size over a difficulty, which is learned from signs that are known before
the launch. The interval is ``predicted * exp(+-q * difficulty)`` with the scores' quantile q. Rows
of a group resemble each other, so each group weighs the same, and one more group stands for the
unseen one, as exchangeability of groups asks for.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureGroup, group_of
from kernelcast.records.training_table import Numbers, Texts

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

ALL_GROUPS: Final = tuple(str(one) for one in FeatureGroup)
FIGURES: Final = (
    "linear_s", "linear_error", "sampling_s", "work_groups", "compute_units", "cache_bytes",
    "bandwidth_bytes_per_s", "flops_per_s",
)  # fmt: skip
"""Columns of a table that ratios are made of, beside its features. `linear_s` is the time that is
corrected, and `linear_error` its standard error as a share of it."""
_Values = Mapping[str, Numbers]
_ITEMS: Final = "static.work_items_count"
_ISSUED: Final = "counters.issued_instructions_per_work_item"
_ESTIMATE: Final = "analytic.estimate_s"


def _over_peak(name: str, peak: str) -> Callable[[_Values], Numbers]:
    """Return the rate of what each work-item does, over the device's."""
    return lambda of: of[name] * of[_ITEMS] / (of["linear_s"] * of[peak])


def _over(above: str, below: str) -> Callable[[_Values], Numbers]:
    return lambda of: of[above] / of[below]


# Logarithms tell how two times differ.
_RATIOS: Final[Mapping[str, Callable[[_Values], Numbers]]] = {
    "sampled.linear_error_ratio": lambda of: of["linear_error"],
    "sampled.sampled_time_ratio": _over("sampling_s", "linear_s"),
    "sampled.sampled_work_groups_ratio": _over("sampled.work_groups_count", "work_groups"),
    "sampled.pooled_over_linear_ratio": lambda of: np.log(
        of["sampled.total_s"] * of["work_groups"]
        / (of["sampled.work_groups_count"] * of["linear_s"])
    ),
    "sampled.overhead_of_run_ratio": _over("sampled.launch_overhead_s", "sampled.run_s"),
    "sampled.overhead_of_linear_ratio": _over("sampled.launch_overhead_s", "linear_s"),
    "static.work_groups_per_compute_unit": _over("work_groups", "compute_units"),
    "static.buffers_over_cache_ratio": _over("static.buffer_bytes", "cache_bytes"),
    "counters.flops_over_peak_ratio": _over_peak("counters.flops_per_work_item", "flops_per_s"),
    "counters.loads_over_peak_ratio": _over_peak(
        "counters.global_load_bytes_per_work_item", "bandwidth_bytes_per_s"
    ),
    "counters.stores_over_peak_ratio": _over_peak(
        "counters.global_store_bytes_per_work_item", "bandwidth_bytes_per_s"
    ),
    "analytic.estimate_over_linear_ratio": lambda of: np.log(of[_ESTIMATE] / of["linear_s"]),
}  # fmt: skip
# An answer of a rival is to be compared with, not to be learned from.
_LEFT_OUT: Final = frozenset({"analytic.mwp_cwp_s"})
_WITH_UNIT: Final = ("_s", "_bytes", "_per_s", "_per_compute_unit")


def make_columns(values: _Values, groups: Sequence[str] = ALL_GROUPS) -> dict[str, Numbers]:
    plans = dict(_RATIOS)
    for name in values:
        if name in FIGURES or name in _LEFT_OUT:
            continue
        group, _, rest = name.partition(".")
        if not (name.endswith(_WITH_UNIT) or "_bytes_per_" in name or "_s_per_" in name):
            plans[name] = itemgetter(name)
        elif group == "analytic" and rest.endswith("_s") and name != _ESTIMATE:
            share = f"{group}.{rest.removesuffix('_s')}_of_estimate_ratio"
            plans[share] = _over(name, _ESTIMATE)
        if group == "counters" and name != _ISSUED and rest.endswith("_per_work_item"):
            share = f"{group}.{rest.removesuffix('_per_work_item')}_of_issued_ratio"
            plans[share] = _over(name, _ISSUED)
    found = {}
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for name, compute in sorted(plans.items()):
            if group_of(name) in groups:
                with suppress(KeyError):  # a column that it is made of is not there
                    column = compute(values)
                    found[name] = np.where(np.isfinite(column), column, np.nan)
    return found


Groups = npt.NDArray[np.intp]
Setting = Mapping[str, float]
INNER_FOLDS: Final = 5
EXACT_ROWS: Final = 1000
"""Of more rows the SVR takes landmarks (Nystroem's approximation), whose cost grows with n."""
LANDMARKS: Final = 512
EVIDENCE_ROWS: Final = 5000
"""Of more rows, a random choice of them serves to choose settings, gate and intervals."""
_FARTHEST: Final = 5.0  # standard deviations beyond which a column says no more
_TINY: Final = 1e-9
_EPSILON: Final = 0.02  # below what repeated runs differ by, there is nothing to learn

LEARNERS: Final[Mapping[str, tuple[Setting, ...]]] = {
    "svr": tuple({"C": c, "width": w} for c, w in product((0.1, 1.0, 10.0), (0.5, 2.0, 8.0))),
    "ridge": tuple({"penalty": one} for one in (1.0, 0.1, 0.01, 0.001)),
    "gradient_boosting": ({"least_leaf": 5.0},),
}
"""Regressors and what may be set of each, the plainest first."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedRegression:
    learner: str
    names: tuple[str, ...]
    """Columns it takes. Those that no row of the training had are not among them: that a device was
    calibrated since makes a launch no stranger."""
    fill: Numbers
    """Shape (names,). Logarithms that stand for what is absent: then a column says nothing."""
    centre: Numbers
    scale: Numbers
    """Shape (names,). Of the logarithms."""
    balance: Numbers
    """Shape (names,). Factors with which every feature group has the same variance in sum."""
    points: Numbers
    """Shape (points, names). Coordinates of launches of the training."""
    reach: float
    """Distance to the nearest point of another group within which 95 % of the training lie."""
    weights: Numbers
    """Of the points in an SVR's expansion, of the columns else."""
    intercept: float
    gamma: float = 0.0
    """Of an SVR's kernel ``exp(-gamma d^2)``."""
    share: float = 1.0
    """Factor of the correction: 0 believes nothing."""
    threshold: float = 0.0
    """Smaller corrections are left out; larger ones lose as much."""
    is_gated: bool = True
    """Whether corrections fade outside the domain."""
    setting: Setting = field(default_factory=dict)
    inner_error: float = 0.0
    """Mean relative error on groups held out within the training."""
    nodes: Numbers = field(default_factory=lambda: np.empty((0, 5)))
    """Of boosted trees, shape (nodes, 5): column to compare, -1 of a leaf; threshold, up to which a
    launch goes left; nodes to the left and right; value of a leaf. Children come after parents."""
    roots: Numbers = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        # A file's numbers may not fit together, or its trees never end.
        columns, shape, nodes = len(self.names), self.points.shape, self.nodes
        wanted = shape[0] if self.gamma else columns
        scaling = (self.fill, self.centre, self.scale, self.balance)
        is_fine = (
            all(one.shape == (columns,) for one in scaling) and shape[1:] == (columns,)
            and self.weights.shape == (wanted,)
        )  # fmt: skip
        if len(self.roots):
            children, places = nodes[:, 2:4], np.arange(len(nodes))[:, None]
            ahead = ((children > places) & (children < len(nodes)))[nodes[:, 0] >= 0].all()
            inside = (nodes[:, 0] < columns).all() and (self.roots >= 0).all()
            is_fine = bool(is_fine and ahead and inside and self.roots.max() < len(nodes))
        if not is_fine:
            msg = f"{columns} columns, {shape} points and {self.weights.shape} weights disagree"
            raise ValueError(msg)

    def predict(self, columns: Mapping[str, Numbers]) -> tuple[Numbers, Numbers]:
        """Return corrections and distances to the training, each of shape (n,)."""
        count = len(next(iter(columns.values()), ()))
        nothing = np.full(count, np.nan)
        values = np.column_stack([columns.get(name, nothing) for name in self.names])
        place = _standardise(values, self.fill, self.centre, self.scale, self.balance)
        squares = _square_distances(place, self.points)
        distances = np.sqrt(squares.min(axis=1, initial=np.inf)) / self.reach
        return self.gate(self._evaluate(place, squares), distances), distances

    def _evaluate(self, place: Numbers, squares: Numbers) -> Numbers:
        found: Numbers
        if not len(place):
            return np.zeros(0)
        if not len(self.roots):
            found = (np.exp(-self.gamma * squares) if self.gamma else place) @ self.weights
            return found + self.intercept
        # Sum the leaves that launches come to, all launches and trees a step at a time.
        columns, left, right = (self.nodes[:, one].astype(np.intp) for one in (0, 2, 3))
        here = np.tile(self.roots.astype(np.intp), (len(place), 1))
        while (is_inner := columns[here] >= 0).any():
            row, tree = np.nonzero(is_inner)
            node = here[row, tree]
            goes_left = place[row, columns[node]] <= self.nodes[node, 1]
            here[row, tree] = np.where(goes_left, left[node], right[node])
        found = self.intercept + self.nodes[here, 4].sum(axis=1)
        return found

    def gate(self, corrections: Numbers, distances: Numbers) -> Numbers:
        """Shrink corrections: small ones to nothing, all by a share, those far off by more."""
        kept = self.share * np.maximum(np.abs(corrections) - self.threshold, 0.0)
        if self.is_gated:
            kept = kept * np.exp(-np.maximum(distances - 1.0, 0.0))
        found: Numbers = np.copysign(kept, corrections)
        return found


def fit_regression(
    columns: Mapping[str, Numbers],
    targets: Numbers,
    groups: Groups,
    learner: str = "svr",
    *,
    is_gated: bool = True,
    parts: Sequence[tuple[Groups, Groups]] | None = None,
    least_gain: float = 1.0,
) -> tuple[FittedRegression, Groups, Numbers, Numbers]:
    """Learn a correction; settings and gate are those that predict groups held out best.

    With it come rows, all or a random choice of very many, and their corrections and distances:
    their groups had no part in these, nor in the choice of the gate.
    """
    names = tuple(name for name, one in sorted(columns.items()) if np.isfinite(one).any())
    if not names:
        raise InputError("model: no columns to learn from; give rows with features")
    values = np.column_stack([columns[name] for name in names])
    scaling = _fit_scale(names, values)
    # Files hold thousands of coordinates: four digits do.
    place = np.round(_standardise(values, *scaling), 4)
    points = _choose(len(place), EXACT_ROWS, LANDMARKS)
    squares = _square_distances(place, place[points])
    foreign = np.where(groups[:, None] == groups[points], np.inf, squares).min(axis=1)
    nearest = np.sqrt(np.where(np.isfinite(foreign), foreign, squares.max(axis=1)))
    # Where launches of other groups coincide, the domain still holds what lies between launches.
    apart = np.sqrt(np.where(squares > _TINY, squares, np.inf).min(axis=1))
    reach = max(
        (float(np.quantile(one, 0.95)) for one in (nearest, apart[apart < np.inf])
         if len(one)), default=0.0,
    ) or 1.0  # fmt: skip
    rough = FittedRegression(
        learner=learner, names=names, fill=scaling[0], centre=scaling[1], scale=scaling[2],
        balance=scaling[3], points=place[points], reach=reach, weights=np.zeros(len(names)),
        intercept=0.0, is_gated=is_gated,
    )  # fmt: skip
    distance = float(np.median(squares))
    settings = LEARNERS[learner]
    some = np.arange(len(place))
    if parts is None:
        some = _choose(len(place), EVIDENCE_ROWS, EVIDENCE_ROWS)
        parts = divide_groups(groups[some], INNER_FOLDS)
    raw = np.zeros((len(settings), len(some)))
    for train, test in parts:
        seen, unseen = some[train], some[test]
        for number, setting in enumerate(settings):
            fitted = _fit(rough, place[seen], targets[seen], setting, distance)
            between = _square_distances(place[unseen], fitted.points)
            raw[number, test] = fitted._evaluate(place[unseen], between)
    distances, told = nearest[some] / reach, targets[some]
    corrections = np.zeros(len(some))
    for train, test in parts:
        number, gate = _choose_gate(
            rough, raw[:, train], told[train], distances[train], groups[some][train], least_gain
        )
        corrections[test] = gate.gate(raw[number, test], distances[test])
    number, gate = _choose_gate(rough, raw, told, distances, groups[some], least_gain)
    found = replace(
        _fit(rough, place, targets, settings[number], distance),
        share=gate.share, threshold=gate.threshold, inner_error=gate.inner_error,
    )  # fmt: skip
    return found, some, corrections, distances


def _fit(
    rough: FittedRegression, place: Numbers, targets: Numbers, setting: Setting, distance: float
) -> FittedRegression:
    """Let scikit-learn fit one setting, and take its numbers over."""
    rough, is_exact = replace(rough, setting=setting), len(place) <= EXACT_ROWS
    gamma = 1.0 / (setting.get("width", 1.0) * max(distance, _TINY))
    learned: Any
    if rough.learner == "ridge":
        from sklearn.linear_model import Ridge

        learned = Ridge(alpha=setting["penalty"] * len(place))
    elif rough.learner == "gradient_boosting":
        from sklearn.ensemble import HistGradientBoostingRegressor

        learned = HistGradientBoostingRegressor(
            loss="absolute_error", learning_rate=0.06, max_iter=100, max_depth=3,
            min_samples_leaf=int(setting["least_leaf"]), early_stopping=False, random_state=0,
        )  # fmt: skip
    elif is_exact:
        from sklearn.svm import SVR

        learned = SVR(kernel="rbf", gamma=gamma, C=setting["C"], epsilon=_EPSILON)
    else:
        from sklearn.kernel_approximation import Nystroem
        from sklearn.pipeline import make_pipeline
        from sklearn.svm import LinearSVR

        learned = make_pipeline(
            Nystroem(gamma=gamma, n_components=LANDMARKS, random_state=0),
            LinearSVR(
                C=10.0 * setting["C"], epsilon=_EPSILON, loss="squared_epsilon_insensitive",
                dual=False, max_iter=300, tol=1e-3, intercept_scaling=10.0, random_state=0,
            ),
        )  # fmt: skip
    # Of so few rows threads gain nothing, and on a busy machine they wait for each other.
    with _find_threads(rough.learner).limit(limits=1 if is_exact else None):
        learned.fit(place, targets)
    if rough.learner == "gradient_boosting":
        return _take_trees(rough, learned)
    if rough.learner == "ridge":
        return replace(rough, weights=learned.coef_, intercept=float(learned.intercept_))
    if is_exact:
        weights = np.zeros(len(place))
        weights[learned.support_] = learned.dual_coef_[0]
        points, intercept = place, learned.intercept_[0]
    else:
        kernel, linear = (one for _, one in learned.steps)
        weights = kernel.normalization_.T @ linear.coef_.ravel()
        points, intercept = kernel.components_, np.ravel(linear.intercept_)[0]
    return replace(rough, points=points, weights=weights, gamma=gamma, intercept=float(intercept))


@cache  # it looks through all libraries of the process
def _find_threads(_learner: str) -> "ThreadpoolController":
    """Find the libraries whose threads a learner's fit starts, once they are loaded."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _take_trees(rough: FittedRegression, fitted: Any) -> FittedRegression:  # noqa: ANN401 - sklearn's
    """Take boosted trees over as numbers; scikit-learn has no public way to them."""
    parts, roots, count = [], [], 0
    for (tree,) in fitted._predictors:
        nodes = tree.nodes
        columns = np.where(nodes["is_leaf"], -1, nodes["feature_idx"])
        children = [nodes[side] + count for side in ("left", "right")]
        parts.append(np.column_stack([columns, nodes["num_threshold"], *children, nodes["value"]]))
        roots.append(float(count))
        count += len(nodes)
    base = float(np.ravel(fitted._baseline_prediction)[0])
    stacked = np.vstack(parts).astype(np.float64)
    stacked[:, 1] = np.clip(stacked[:, 1], -1e9, 1e9)  # JSON knows no infinity
    return replace(rough, nodes=stacked, roots=np.array(roots), intercept=base)


def _choose_gate(
    rough: FittedRegression, raw: Numbers, targets: Numbers, distances: Numbers, groups: Groups,
    least_gain: float,
) -> tuple[int, FittedRegression]:  # fmt: skip
    """Choose setting and gate by groups that fits had not seen; none gains by chance alone."""
    without = relative_errors(targets)
    best = 0, replace(rough, share=0.0, inner_error=float(without.mean()))
    shares, thresholds = (1.0, 0.7, 0.5, 0.3), (0.0, 0.02, 0.05)
    gates = tuple(product(shares, thresholds)) if rough.is_gated else ((1.0, 0.0),)
    least, sizes = np.inf, np.bincount(groups)
    present = sizes > 0
    for number, corrections in enumerate(raw):
        for share, threshold in gates:
            gate = replace(rough, share=share, threshold=threshold)
            errors = relative_errors(targets - gate.gate(corrections, distances))
            error = float(errors.mean())
            if error >= least:
                continue
            means = np.bincount(groups, weights=without - errors)[present] / sizes[present]
            chance = means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.inf
            if not rough.is_gated or means.mean() > least_gain * chance:
                best, least = (number, replace(gate, inner_error=error)), error
    return best


def relative_errors(residuals: Numbers) -> Numbers:
    """Return |predicted - measured| / measured of ``log(measured / predicted)``."""
    found: Numbers = np.abs(np.expm1(np.clip(-residuals, -20.0, 20.0)))
    return found


def _compress(values: Numbers) -> Numbers:
    """Take logarithms that keep sign and zero: counts have heavy tails."""
    found: Numbers = np.copysign(np.log1p(np.abs(values)), values)
    return found


def _standardise(
    values: Numbers, fill: Numbers, centre: Numbers, scale: Numbers, balance: Numbers
) -> Numbers:
    logs = _compress(values)
    moved = (np.where(np.isfinite(logs), logs, fill) - centre) / scale
    return np.clip(moved, -_FARTHEST, _FARTHEST) * balance


def _fit_scale(names: Sequence[str], values: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Find what stands for absent values, centre and scale of columns' logarithms, balance."""
    logs = _compress(values)
    fill = np.nanmedian(logs, axis=0)
    filled = np.where(np.isfinite(logs), logs, fill)
    clipped = np.clip(filled, *np.quantile(filled, [0.01, 0.99], axis=0))
    deviation = clipped.std(axis=0)
    owners = [group_of(name) for name in names]
    telling = [owner for owner, one in zip(owners, deviation, strict=True) if one > _TINY]
    balance = np.array([max(telling.count(one), 1) for one in owners]) ** -0.5
    return fill, clipped.mean(axis=0), np.where(deviation > _TINY, deviation, 1.0), balance


def _square_distances(rows: Numbers, points: Numbers) -> Numbers:
    lengths = np.einsum("ij,ij->i", rows, rows)[:, None] + np.einsum("ij,ij->i", points, points)
    found: Numbers = np.maximum(lengths - 2.0 * (rows @ points.T), 0.0)
    return found


def _choose(count: int, most: int, wanted: int) -> Groups:
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, wanted, replace=False))


def number_groups(labels: Texts) -> Groups:
    """Number the group of each row, groups in the order of their labels."""
    names, numbers = np.unique(labels.astype(str), return_inverse=True)
    if len(names) < 2:
        raise InputError(
            f"model: {len(labels)} rows of {len(names)} groups to learn from; give at least two "
            "groups, so that one can be held out"
        )
    return numbers.astype(np.intp)


def divide_groups(groups: Groups, count: int) -> list[tuple[Groups, Groups]]:
    """Divide rows into parts of whole groups: rows to learn from and rows held out, of each."""
    from sklearn.model_selection import GroupKFold

    count = min(count, len(np.unique(groups)))
    return [*GroupKFold(n_splits=count).split(groups, groups=groups)]


# A difficulty differs from the usual one at most by this factor, before the domain widens it.
_LIMIT = math.log(4.0)
MOST_SCORES = 200
"""Scores of an interval that are kept in a file: quantiles of all."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibration:
    centre: Numbers
    slopes: Numbers
    """Shape (signs,). Of the logarithms that the difficulty depends on."""
    level: float
    scores: Numbers
    """Shape (n,). Ascending."""
    shares: Numbers
    """Shape (n,). Summed weight up to each score, below 1: the rest stands for an unseen group."""

    def widen(self, signs: Numbers, domain_distance: Numbers) -> Numbers:
        """Return the size of residuals to expect; outside the domain it grows with the distance."""
        known = np.where(np.isfinite(signs), signs - self.centre, 0.0)
        usual: Numbers = np.exp(self.level + np.clip(known @ self.slopes, -_LIMIT, _LIMIT))
        usual *= np.maximum(domain_distance, 1.0)
        return usual

    def half_width(self, signs: Numbers, domain_distance: Numbers, coverage: float) -> Numbers:
        """Return the logarithm of the factor between prediction and ends of the interval."""
        place = int(self.shares.searchsorted(coverage - 1e-12))
        score = float(self.scores[min(place, len(self.scores) - 1)])
        # The exponential of 20 still is a number that can be multiplied.
        found: Numbers = np.minimum(score * self.widen(signs, domain_distance), 20.0)
        return found

    def half_width_alone(self, signs: Sequence[float], coverage: float, distance: float) -> float:
        return float(self.half_width(np.array([signs]), np.array([distance]), coverage)[0])

    def thin(self) -> "Calibration":
        """Keep no more than `MOST_SCORES` quantiles of the scores."""
        if len(self.scores) <= MOST_SCORES:
            return self
        wanted = np.linspace(0.0, self.shares[-1], MOST_SCORES)
        kept = np.unique(self.shares.searchsorted(wanted)).clip(max=len(self.scores) - 1)
        return replace(self, scores=self.scores[kept], shares=self.shares[kept])


def calibrate(
    residuals: Numbers, signs: Numbers, domain_distance: Numbers, groups: Groups
) -> Calibration:
    """Learn difficulty and scores from residuals out of fold."""
    sizes = np.bincount(groups)
    row_weights = 1.0 / (np.count_nonzero(sizes) + 1) / sizes[groups]
    # Fit the logarithm of residuals' sizes by ridge; signs never make a launch seem easier.
    # Residuals below 0.3 % are as good as none.
    logs = np.log(np.abs(residuals) + 0.003)
    shares = row_weights / row_weights.sum()
    level = float(shares @ logs)
    finite = np.isfinite(signs)
    known = np.where(finite, signs, 0.0)
    mass = shares @ finite
    centre = np.divide(shares @ known, mass, out=np.zeros(signs.shape[1]), where=mass > 0)
    moved = np.where(finite, signs - centre, 0.0)
    # Of a sign that never differs only rounding is left, which would tell processors apart.
    kept = np.flatnonzero(np.sqrt(shares @ moved**2) > 1e-9)
    slopes = np.zeros(signs.shape[1])
    while kept.size:
        part = moved[:, kept]
        normal = part.T @ (shares[:, None] * part)
        penalty = 0.1 * max(float(np.trace(normal)) / len(kept), 1e-12)
        found = np.linalg.solve(
            normal + penalty * np.eye(len(kept)), part.T @ (shares * (logs - level))
        )
        if (found >= 0).all():
            slopes[kept] = found
            break
        kept = kept[found > 0]
    rough = Calibration(
        centre=centre, slopes=slopes, level=level, scores=np.empty(0), shares=np.empty(0)
    )
    scores = np.abs(residuals) / rough.widen(signs, domain_distance)
    order = np.argsort(scores, kind="stable")
    return replace(rough, scores=scores[order], shares=np.cumsum(row_weights[order]))
