"""Methods side by side on the same launches, paired: which errs less, how sure that is, and where.

All predict the same rows of kernels that none has seen, so each kernel is its own control: what
makes a kernel hard is hard for all. Differences are second less first throughout.

Two models, kernel by kernel: rows of a kernel resemble each other, so whole kernels are drawn with
replacement, and the mean over the rows of those drawn is taken again and again. The interval is BCa
(bias-corrected and accelerated; Efron, "Better bootstrap confidence intervals", Journal of the
American Statistical Association 82, 1987): few kernels carry most of the differences, and plain
quantiles would miss the truth more often on one side than on the other.

Several methods: a family of kernels counts once, with the mean error over its launches. It is won
where the errors differ by more than the noise of its measured times. Whether the difference is an
accident is tested by Wilcoxon's signed-rank test over families, its p-values corrected by Holm's
method for the number of pairs ("A simple sequentially rejective multiple test procedure",
Scandinavian Journal of Statistics 6, 1979).
"""

import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from kernelcast.models.attribution import Attribution
from kernelcast.models.validation.report import (
    Errors,
    Rows,
    ValidationReport,
    average_classes,
    list_known,
    mean_of,
    summarise_errors,
)
from kernelcast.models.versioned_files import Document
from kernelcast.records.errors import InputError
from kernelcast.records.training_table import Numbers

if TYPE_CHECKING:  # slow to load
    from sklearn.tree import DecisionTreeClassifier


RESAMPLES: Final = 10_000
_CONFIDENCE: Final = 0.95


def find_interval(
    values: Numbers, clusters: npt.NDArray[np.intp], resamples: int = RESAMPLES, seed: int = 0
) -> tuple[float, float] | None:
    """Return the interval of the mean over rows; None with fewer than two clusters."""
    from scipy.stats import DegenerateDataWarning, bootstrap  # half a second to import

    counts = np.bincount(clusters).astype(np.float64)
    sums: Numbers = np.bincount(clusters, weights=values).astype(np.float64)
    if len(counts) < 2:
        return None
    found = math.nan, math.nan
    for method in ("BCa", "percentile"):
        # Bias and skew cannot be told where all clusters are alike.
        if not np.isfinite(found).all():
            with warnings.catch_warnings(), np.errstate(invalid="ignore"):
                warnings.simplefilter("ignore", DegenerateDataWarning)
                # Drawn at once: memory stays small where there are thousands of clusters.
                ends = bootstrap(
                    (sums, counts),
                    lambda some, sizes, axis: some.sum(axis=axis) / sizes.sum(axis=axis),
                    n_resamples=resamples, batch=1000, vectorized=True, paired=True,
                    confidence_level=_CONFIDENCE, method=method, rng=np.random.default_rng(seed),
                ).confidence_interval  # fmt: skip
            found = float(ends.low), float(ends.high)
    return found


# Splits whose groups are drawn as a whole, in the place of kernels.
_WHOLE = frozenset({"family", "application"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceComparison:
    device: str
    rows: int
    """Rows that both models answered; all that follows is about these."""
    unpaired: int
    """Rows that one of them, or none, answered."""
    first_errors: Errors | None
    second_errors: Errors | None
    difference: float | None
    low: float | None
    high: float | None
    """Ends of its interval; None with fewer than two kernels."""
    noise: float | None
    classes: Rows
    """As those of `DeviceScore`, with ``first_error`` and ``second_error``."""
    kernels: Rows
    """Every ``kernel``, where the second model is most ahead first: ``rows`` that both answered,
    mean errors ``first_error`` and ``second_error``, their ``difference``, mean ``noise`` of its
    measured times, the device's where its own is not known, and the ``winner``, the model with the
    smaller error; None where they differ by no more than the noise."""

    def count_wins(self, model: str | None) -> int:
        """Count the kernels that a model wins; None counts those that none does."""
        return sum(one["winner"] == model for one in self.kernels)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedError:
    """What pushed a learned model on a kernel, told by a fit without the kernel's group."""

    device: str
    kernel: str
    error: float
    reference_error: float
    """The error of the time that it corrects, the linear model's."""
    needed: float
    """Mean of measured over that time, less 1: the correction that would have been right."""
    attribution: Attribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    first: str
    second: str
    split: str
    resampled: str
    """What the bootstrap draws as a whole: ``kernel``, ``family`` or ``application``."""
    method: str
    resamples: int
    confidence: float
    seed: int
    schema_id: str
    data_digest: str
    refused: Mapping[str, str]
    """Why a model could not be trained, by its name and device, and why devices are left out."""
    devices: tuple[DeviceComparison, ...]
    explained: tuple[ExplainedError, ...] = ()


def compare_validated(
    report: ValidationReport,
    first: str,
    second: str,
    *,
    noise: Mapping[str, float] | None = None,
    resamples: int = RESAMPLES,
) -> Comparison:
    """Compare two models of a validation on the rows that both answered."""
    if first == second:
        raise InputError(f"comparison: {first} twice; name two different models")
    for name in (first, second):
        if name not in report.models:
            raise InputError(f"report: no model {name}; there are {', '.join(report.models)}")
    every = report.rows.to_frame()
    paired = every[every["model"] == first].reset_index(drop=True)
    rows = paired.assign(
        first=paired["error"],
        second=every.loc[every["model"] == second, "error"].to_numpy(),
        noise=[(noise or {}).get(key, np.nan) for key in paired["key"]],
    )
    others = {*report.models} - {first, second}
    return Comparison(
        first=first,
        second=second,
        split=report.split,
        resampled=report.split if report.split in _WHOLE else "kernel",
        method="BCa",
        resamples=resamples,
        confidence=_CONFIDENCE,
        seed=0,
        schema_id=report.schema_id,
        data_digest=report.data_digest,
        refused={
            key: why
            for key, why in report.refused.items()
            if key.partition(" on ")[0] not in others
        },
        devices=tuple(
            _compare_device(report, (first, second), str(device), own, resamples)
            for device, own in rows.groupby("device")
        ),
    )


def _compare_device(
    report: ValidationReport,
    names: tuple[str, str],
    device: str,
    rows: pd.DataFrame,
    resamples: int,
) -> DeviceComparison:
    paired = rows.dropna(subset=["first", "second"])
    paired = paired.assign(difference=paired["second"] - paired["first"])
    units = paired["group" if report.split in _WHOLE else "kernel"]
    numbers = units.factorize(sort=True)[0].astype(np.intp)
    differences = paired["difference"].to_numpy()
    low, high = find_interval(differences, numbers, resamples) or (None, None)
    scores = [report.score(name, device) for name in names]
    usual = next((one.noise for one in scores if one.noise is not None), None)
    linear = {
        one["group"]: one["linear_error"]
        for score in sorted(scores, key=lambda one: -one.unanswered)
        for one in score.groups
        if one["linear_error"] is not None
    }
    # Groups' mean errors, as the paper's Table 3 averages them.
    groups = paired.groupby("group").agg(
        first_error=("first", "mean"), second_error=("second", "mean")
    )
    groups["linear_error"] = [linear.get(str(one), np.nan) for one in groups.index]
    kernels = paired.groupby("kernel").agg(
        rows=("first", "size"), first_error=("first", "mean"), second_error=("second", "mean"),
        difference=("difference", "mean"), noise=("noise", "mean"),
    )  # fmt: skip
    kernels["noise"] = kernels["noise"].fillna(np.nan if usual is None else usual)
    # Where the noise is not known, any difference counts.
    is_won = kernels["difference"].abs() > kernels["noise"].fillna(0.0)
    nearer = np.where(kernels["difference"] < 0, names[1], names[0])
    kernels["winner"] = pd.Series(nearer, kernels.index, dtype=object).where(is_won)
    by_difference = kernels.sort_values("difference", kind="stable").reset_index()
    return DeviceComparison(
        device=device,
        rows=len(paired),
        unpaired=len(rows) - len(paired),
        first_errors=summarise_errors(paired["first"].to_numpy()),
        second_errors=summarise_errors(paired["second"].to_numpy()),
        difference=mean_of(paired["difference"]),
        low=low,
        high=high,
        noise=usual,
        classes=average_classes(groups, "first_error", "second_error"),
        kernels=tuple(list_known(by_difference)),
    )


_DOCUMENT = Document(
    kind=Comparison, what="comparison", header={"format": 1}, options={"indent": 1}
)
comparison_to_json, comparison_from_json = _DOCUMENT.write, _DOCUMENT.read


ALL_DEVICES: Final = "all devices"
CLASSES: Final = ("work", "size", "evenness", "limiter")
"""Columns of `MethodComparison.launches` that launches are classed by."""
_REQUIRED: Final = ("kernel", "device", "measured_s")
# Of fewer families no median has an interval, and no test can be significant.
_FEWEST_FAMILIES: Final = 6
# Errors below this are equal to any eye; ratios of smaller ones would say nothing.
_LEAST_ERROR: Final = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MethodComparison:
    """What a comparison found, as tables."""

    methods: tuple[str, ...]
    """Names, in the order they were asked for."""
    launches: pd.DataFrame
    """A row per launch: ``key``, ``device``, ``kernel``, ``family``, ``measured_s``, ``noise``, its
    classes, what is known of it before it runs, and of each method its time and its error
    (``linear_s``, ``linear_error``), NaN where it has no answer."""
    scores: pd.DataFrame
    """A row per device and method: launches and families answered, mean, median and 90th percentile
    of the errors."""
    pairs: pd.DataFrame
    """A row per device and pair: mean errors, families that each wins (``first_wins``,
    ``second_wins``) and that neither does (``ties``), the median over families of the second's
    error over the first's (``ratio``, with a 95 % interval), ``p`` and ``p_holm``, and which is
    ``nearer``: empty where the corrected test does not tell."""
    classes: pd.DataFrame
    """The same per class of launches, over all devices, without a test: what is seen here is a
    question to the next data, no proof."""
    rules: pd.DataFrame
    """A row per leaf of each pair's decision tree: for which launches which method is nearer."""
    rule_errors: pd.DataFrame
    """A row per pair: how well the tree chooses on families that were left out of it, its mean
    error beside those of each method alone and of the nearer one of each launch."""
    notes: tuple[str, ...] = ()
    """What was left out, or mixed, and why."""
    pair: Comparison | None = None
    """The first two methods kernel by kernel, with what explains the errors of a learned one; None
    where only their times are known."""

    def to_plain(self) -> dict[str, Any]:
        """Return the tables as lists of rows, None for what is not known, without the launches."""
        pair = {} if self.pair is None else json.loads(comparison_to_json(self.pair))
        names = ("scores", "pairs", "classes", "rules", "rule_errors")
        tables = {name: list_known(getattr(self, name)) for name in names}
        return {**pair, "methods": list(self.methods), **tables, "notes": list(self.notes)}


def compare_errors(
    launches: pd.DataFrame, methods: Sequence[str], *, notes: Sequence[str] = ()
) -> MethodComparison:
    """Compare methods by their times of the same launches."""
    # Check the columns, and add families, noise and each method's error.
    missing = [
        one for one in (*_REQUIRED, *(f"{name}_s" for name in methods)) if one not in launches
    ]
    if missing or len(set(methods)) < 2 or len(set(methods)) < len(methods):
        raise InputError(
            f"comparison of {', '.join(methods) or 'nothing'}: give at least two methods, each "
            f"once, and columns {', '.join(_REQUIRED)} and <method>_s"
            + (f"; {', '.join(missing)} is not there" if missing else "")
        )
    measured = launches["measured_s"]
    added: dict[str, Any] = {
        f"{one}_error": (launches[f"{one}_s"] - measured).abs() / measured for one in methods
    }
    if "family" not in launches:
        added["family"] = launches["kernel"]
    if "noise" not in launches:
        added["noise"] = np.nan
    rows = launches.assign(**added)
    known = rows[[f"{one}_error" for one in methods]].notna().sum(axis=1)
    if not (known >= 2).any():
        counts = ", ".join(f"{one} {rows[f'{one}_error'].notna().sum()}" for one in methods)
        reasons = "".join(f"; {one}" for one in notes)
        msg = f"{len(rows)} launches, none with answers of two methods ({counts} answers){reasons}"
        raise InputError(msg)
    scopes = [(str(device), own) for device, own in rows.groupby("device")]
    if len(scopes) > 1:
        scopes.append((ALL_DEVICES, rows))
    scores = []
    for name, own in scopes:
        for method in methods:
            answered = own[own[f"{method}_error"].notna()]
            error = answered[f"{method}_error"]
            scores.append({
                "device": name, "method": method, "launches": len(answered),
                "families": answered["family"].nunique(), "mean": error.mean(),
                "median": error.median(), "p90": error.quantile(0.9),
            })  # fmt: skip
    pairs = []
    for name, own in scopes:
        found = [
            {"device": name, **_compare(own, *pair), "p": _test(_pair_families(own, *pair))}
            for pair in combinations(methods, 2)
        ]
        found = [one for one in found if one["families"]]
        # Correct the tests for how many pairs there are.
        for one, p_holm in zip(found, correct_holm([one["p"] for one in found]), strict=True):
            is_sure = p_holm < 1 - _CONFIDENCE
            nearer = one["second"] if one["ratio"] < 1 else one["first"]
            pairs.append({**one, "p_holm": p_holm, "nearer": nearer if is_sure else ""})
    classes = [
        {"class": kind, "value": str(value), **_compare(own, *pair)}
        for kind in CLASSES
        if kind in rows
        for value, own in rows.groupby(kind)
        for pair in combinations(methods, 2)
    ]
    leaves, errors = [], []
    for pair in combinations(methods, 2):
        rules = _grow_rules(rows, pair, methods)
        if rules is not None:
            leaves += rules[0]
            errors.append(rules[1])
    return MethodComparison(
        methods=tuple(methods),
        launches=rows,
        scores=pd.DataFrame(scores),
        pairs=pd.DataFrame(pairs),
        classes=pd.DataFrame([one for one in classes if one["families"]]),
        rules=pd.DataFrame(leaves),
        rule_errors=pd.DataFrame(errors),
        notes=tuple(notes),
    )


def _compare(rows: pd.DataFrame, first: str, second: str) -> dict[str, Any]:
    families = _pair_families(rows, first, second)
    difference = families["second"] - families["first"]
    noise = families["noise"].fillna(rows["noise"].mean()).fillna(0.0)
    ratio = families["second"].clip(lower=_LEAST_ERROR) / families["first"].clip(lower=_LEAST_ERROR)
    # Find the interval of a median that holds whatever the distribution is.
    if len(ratio) < _FEWEST_FAMILIES:
        low, high = math.nan, math.nan
    else:
        from scipy.stats import quantile_test  # half a second to import

        interval = quantile_test(ratio.to_numpy(), p=0.5).confidence_interval(_CONFIDENCE)
        low, high = float(interval.low), float(interval.high)
    return {
        "first": first, "second": second, "launches": int(families["launches"].sum()),
        "families": len(families), "first_error": families["first"].mean(),
        "second_error": families["second"].mean(),
        "first_wins": int((difference > noise).sum()),
        "second_wins": int((difference < -noise).sum()),
        "ties": int((difference.abs() <= noise).sum()),
        "ratio": ratio.median(), "ratio_low": low, "ratio_high": high,
    }  # fmt: skip


def _pair_families(rows: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """Return the mean errors of the families of which launches have both answers."""
    both = rows[[f"{first}_error", f"{second}_error"]].notna().all(axis=1)
    return rows[both].groupby("family").agg(
        launches=("family", "size"), first=(f"{first}_error", "mean"),
        second=(f"{second}_error", "mean"), noise=("noise", "mean"),
    )  # fmt: skip


def _test(families: pd.DataFrame) -> float:
    from scipy.stats import wilcoxon

    difference = (families["second"] - families["first"]).to_numpy()
    if len(difference) < _FEWEST_FAMILIES or not difference.any():
        return math.nan
    return float(wilcoxon(difference, zero_method="zsplit").pvalue)


def correct_holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values of several tests so that all of them together err as seldom as one would."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)[: np.count_nonzero(np.isfinite(p))]
    steps = p[order] * np.arange(len(order), 0, -1)
    p[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return cast("list[float]", p.tolist())


def _grow_rules(
    rows: pd.DataFrame, pair: tuple[str, str], methods: Sequence[str]
) -> tuple[list[dict[str, Any]], dict[str, Any]] | None:
    """Find for which launches which method is nearer, and how well that does on other families."""
    from sklearn.model_selection import GroupKFold, cross_val_predict
    from sklearn.tree import DecisionTreeClassifier

    first, second = pair
    both = rows[[f"{first}_error", f"{second}_error"]].notna().all(axis=1)
    known = rows[both].reset_index(drop=True)
    families = known["family"].nunique()
    errors = known[[f"{first}_error", f"{second}_error"]].to_numpy()
    target = errors[:, 1] < errors[:, 0]
    if families < 2 * _FEWEST_FAMILIES or target.all() or not target.any():
        return None
    # What is known of launches before they run: numbers, and how the two answers differ.
    own = {"measured_s", "noise", *(f"{one}_{what}" for one in methods for what in ("s", "error"))}
    numbers = known.select_dtypes("number").dropna(axis="columns", how="all")
    signs = numbers[[one for one in numbers if one not in own]].assign(
        **{f"{second} over {first}": known[f"{second}_s"] / known[f"{first}_s"]}
    )
    # A family counts once; where both err alike within the noise there is nothing to learn.
    matters = np.abs(errors[:, 1] - errors[:, 0]) > known["noise"].fillna(0.0).to_numpy()
    weights = matters / known.groupby("family")["family"].transform("size").to_numpy()
    if not weights[target].any() or not weights[~target].any():
        return None
    tree = DecisionTreeClassifier(max_leaf_nodes=4, min_weight_fraction_leaf=0.05, random_state=0)
    chosen = cross_val_predict(
        tree, signs.to_numpy(), target, groups=known["family"], cv=GroupKFold(min(10, families)),
        params={"sample_weight": weights},
    )  # fmt: skip
    followed = errors[np.arange(len(known)), chosen.astype(int)]
    by_family = known.assign(followed=followed, nearest=errors.min(axis=1))
    means = by_family.groupby("family")[
        ["followed", f"{first}_error", f"{second}_error", "nearest"]
    ].mean()
    first_error, second_error = means[f"{first}_error"].mean(), means[f"{second}_error"].mean()
    better = f"{second if second_error < first_error else first}_error"
    quality = {
        "first": first, "second": second, "launches": len(known), "families": families,
        "share_right": float((weights * (chosen == target)).sum() / weights.sum()),
        "followed_error": means["followed"].mean(), "first_error": first_error,
        "second_error": second_error, "nearest_error": means["nearest"].mean(),
        "p": _test(means.rename(columns={better: "first", "followed": "second"})),
    }  # fmt: skip
    tree.fit(signs.to_numpy(), target, weights)
    return [*_list_leaves(tree, signs, known, pair)], quality


def _list_leaves(
    tree: "DecisionTreeClassifier", signs: pd.DataFrame, rows: pd.DataFrame, pair: tuple[str, str]
) -> Iterator[dict[str, Any]]:
    nodes = tree.tree_
    leaf_of = tree.apply(signs.to_numpy())

    def walk(node: int, conditions: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        below, above = int(nodes.children_left[node]), int(nodes.children_right[node])
        if below == above:  # both are -1 at a leaf
            own = rows[leaf_of == node]
            yield {
                "first": pair[0], "second": pair[1],
                "launches_with": " and ".join(conditions) or "all launches",
                "nearer": pair[int(nodes.value[node][0].argmax())],
                "launches": len(own), "families": own["family"].nunique(),
                "first_error": own[f"{pair[0]}_error"].mean(),
                "second_error": own[f"{pair[1]}_error"].mean(),
            }  # fmt: skip
            return
        name, limit = signs.columns[nodes.feature[node]], f"{nodes.threshold[node]:.3g}"
        ends = ["", ""]
        if signs[name].isna().any():
            ends[not nodes.missing_go_to_left[node]] = " or unknown"
        yield from walk(below, (*conditions, f"{name} <= {limit}{ends[0]}"))
        yield from walk(above, (*conditions, f"{name} > {limit}{ends[1]}"))

    return walk(0, ())
