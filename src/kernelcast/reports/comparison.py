"""A comparison of methods as tables and figures, see `kernelcast.reports.presenter`.

>>> from kernelcast.reports.comparison import present_comparison
>>> from kernelcast.reports.presenter import save_page
>>> save_page(path, "compared", *present_comparison(comparison))  # doctest: +SKIP
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final

import numpy as np
import pandas as pd

from kernelcast.models.validation.comparison import ExplainedError, MethodComparison
from kernelcast.reports.charts import Axis, Chart, Figure, Point, chart_errors, make_series
from kernelcast.reports.numbers import format_error
from kernelcast.reports.presenter import Field, Part, Section, Table

_LEAST_ERROR = 1e-3


_PAIR_COLUMNS: Final[Mapping[str, str | tuple[str, Field]]] = {
    "first": "text", "second": "text", "families": "whole",
    "error of\nfirst": ("error", "first_error"), "error of\nsecond": ("error", "second_error"),
    "first\nnearer": ("whole", "first_wins"), "second\nnearer": ("whole", "second_wins"),
    "within\nnoise": ("whole", "ties"), "second over\nfirst": (".3g", "ratio"),
    "95 % interval": ("number", lambda one: (
        "-" if np.isnan(one["ratio_low"]) else f"{one['ratio_low']:.3g} to {one['ratio_high']:.3g}"
    )),
}  # fmt: skip


def present_comparison(comparison: MethodComparison, *, is_brief: bool = False) -> Iterator[Part]:
    """Present a comparison: errors, pairs, classes, rules, figures, and what explains errors."""
    scores = comparison.scores
    yield from comparison.notes
    yield Table(
        title="Errors of kernels left out",
        columns={
            "device": "text", "method": "text", "launches": "whole", "families": "whole",
            "mean\nerror": "error", "median": "error", "90th\npercentile": "share",
        },
        rows=list(scores.itertuples(index=False)),
        breaks=_find_changes(scores["device"]),
    )  # fmt: skip
    pairs = comparison.pairs
    yield Table.of(
        pairs.to_dict("records"),
        {
            "device": "text", **_PAIR_COLUMNS, "p": ".2g", "corrected p": (".2g", "p_holm"),
            "nearer": ("text", lambda one: one["nearer"] or "not told"),
        },
        title="Pairs of methods, by family of kernels",
        breaks=_find_changes(pairs["device"]),
        note="Nearer: differing by more than the noise of the measured times. p: Wilcoxon's "
        "signed-rank test over families, corrected by Holm's method for the number of pairs.",
    )  # fmt: skip
    first, second = comparison.methods[:2]
    classes = comparison.classes
    if is_brief and len(classes):
        classes = classes[(classes["first"] == first) & (classes["second"] == second)]
    for kind, own in classes.groupby("class", sort=False):
        yield Table.of(
            own.to_dict("records"),
            {str(kind): ("text", "value"), **_PAIR_COLUMNS},
            title=f"By {kind}" + (f": {first} and {second}" if is_brief else ""),
            breaks=() if is_brief else _find_changes(own["value"]),
        )
    # Each pair's decision tree, with what it is worth on families left out of it.
    for one in comparison.rule_errors.to_dict("records"):
        a, b = one["first"], one["second"]
        rules = comparison.rules
        own = rules[(rules["first"] == a) & (rules["second"] == b)]
        is_worth = one["p"] < 0.05 and one["followed_error"] < min(
            one["first_error"], one["second_error"]
        )
        yield Table(
            title=f"When {a} is nearer, when {b}",
            columns={
                "launches with": "text", "nearer": "text", "launches": "whole",
                "families": "whole", f"error of\n{a}": "error", f"error of\n{b}": "error",
            },
            rows=list(own.drop(columns=["first", "second"]).itertuples(index=False)),
            note=f"On families left out the tree names the nearer one with a share of "
            f"{one['share_right']:.0%}; who follows it errs by "
            f"{format_error(one['followed_error'])}, with {a} alone by "
            f"{format_error(one['first_error'])}, with {b} alone by "
            f"{format_error(one['second_error'])}, with the nearer of each launch by "
            f"{format_error(one['nearest_error'])}. It is "
            + ("worth following." if is_worth else "not shown to be worth following."),
        )  # fmt: skip
    for a, b in combinations(comparison.methods, 2):
        figure = make_pair_figure(comparison, a, b)
        if figure is not None and not is_brief:
            yield Section(title=f"{a} and {b}", parts=[figure])
    pair = comparison.pair
    if pair is not None and pair.explained:
        name = pair.explained[0].attribution.model
        explained = {f"{one.kernel} on {one.device}": _explain(one) for one in pair.explained}
        yield Section(
            title=f"Where {name} errs most, and why",
            parts=[explained],
            about="Told by a fit that has not seen the kernel. Points of groups are Shapley "
            "values: they add up to the correction less that at the training's medians.",
        )


def make_pair_figure(comparison: MethodComparison, first: str, second: str) -> Figure | None:
    """Make the figure of two methods: errors by family, ratios of errors, errors over size."""
    rows = comparison.launches.dropna(subset=[f"{first}_error", f"{second}_error"])
    if rows.empty:
        return None
    named = rows.rename(columns={f"{first}_error": "first", f"{second}_error": "second"})
    families = named.groupby("family")[["first", "second", "noise"]].mean()
    families[["first", "second"]] = families[["first", "second"]].clip(lower=_LEAST_ERROR)
    difference = families["second"] - families["first"]
    noise = families["noise"].fillna(0.0)
    winner = np.where(
        difference > noise, f"{first} is nearer",
        np.where(difference < -noise, f"{second} is nearer", "within noise"),
    )  # fmt: skip
    groups = {
        str(name): [
            Point(x=one["first"], y=one["second"], label=str(label))
            for label, one in own.iterrows()
        ]
        for name, own in families.groupby(winner)
    }
    scatter = replace(chart_errors(first, second, groups), title="Mean errors of families")
    ratios = np.sort(families["second"] / families["first"])
    shares = (np.arange(len(ratios)) + 0.5) / len(ratios)
    distribution = Chart(
        title="Ratios of errors",
        x=Axis(title=f"error of {second} over error of {first}", is_log=True),
        y=Axis(title="share of families with less", unit="share"),
        series=(
            make_series("families", ratios.tolist(), shares.tolist()),
            make_series("equal", (1.0, 1.0), (0.0, 1.0), "guide"),
        ),
    )  # fmt: skip
    over_size = Chart(
        title="Errors over size",
        x=Axis(title="measured time", unit="s", is_log=True),
        y=Axis(title="error", unit="share", is_log=True),
        series=tuple(
            make_series(name, named["measured_s"], named[column].clip(lower=_LEAST_ERROR))
            for name, column in ((first, "first"), (second, "second"))
        ),
    )  # fmt: skip
    return Figure(
        charts=(scatter, distribution, over_size),
        caption="Each point of the first two is a family of kernels, of the third a launch. "
        "Within noise: the errors differ by no more than the measured times vary.",
    )


def _find_changes(values: "pd.Series[str]") -> Sequence[int]:
    """Find the places where a column's value differs from the one above."""
    changes = values.ne(values.shift()).to_numpy()
    return [int(place) for place in np.flatnonzero(changes) if place]


def _explain(one: ExplainedError) -> str:
    """Say what pushed the correction of a kernel."""
    found = one.attribution
    groups = ", ".join(
        f"{each['group']} {each['contribution'] * 100:+.1f}" for each in found.groups
    )
    columns = ", ".join(f"{each['name']} {each['effect'] * 100:+.1f}" for each in found.columns)
    return (
        f"error {format_error(one.error)}, {format_error(one.reference_error)} uncorrected; "
        f"corrected by {found.correction * 100:+.1f} %, needed were {one.needed * 100:+.1f} %\n"
        f"groups, in points: {groups}, all medians {found.base * 100:+.1f}"
        + (f"\ncolumns, one at a time: {columns}" if columns else "")
    )
