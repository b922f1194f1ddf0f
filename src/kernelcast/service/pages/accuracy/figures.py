"""The pictures of the page *Accuracy*: every launch, every kernel, and over time."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from kernelcast.reports.drawing import (
    COLOURS,
    INK,
    PANEL_INCHES,
    SMALL_FONT,
    choose_limit,
    count_panels,
    draw_panels,
    find_reach,
    scale_ratios,
    scale_seconds,
    shorten_names,
    write_percent,
)
from kernelcast.service.pages.accuracy.scores import (
    DriftBin,
    Judged,
    KernelScore,
    score_methods,
)
from kernelcast.service.pages.accuracy.view import LINEAR, AccuracyView
from kernelcast.service.pages.filters import write_share
from kernelcast.service.pages.pictures import Cell, Picture, show_grid

if TYPE_CHECKING:  # slow to load
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLUE, _ORANGE, _RED = COLOURS[0], COLOURS[1], COLOURS[5]
# So many points make a drawing of shapes larger than a picture of dots.
_MANY_POINTS: Final = 1500
# Callers may report any time: an axis from the first atom's life on would show nothing else.
_SHORTEST_S, _LONGEST_S = 1e-9, 1e7


def make_pictures(view: AccuracyView) -> Mapping[str, Picture]:
    """Give the pictures of a view by the names that their addresses have; none without rows."""
    if not view.rows:
        return {}
    found = {"launches": _picture_launches(view), "kernels": _picture_kernels(view)}
    if view.drift:
        found["drift"] = _picture_drift(view)
    return found


def _picture_launches(view: AccuracyView) -> Picture:
    score = score_methods(view.rows).methods[0]  # all that stand in the picture
    inside = ""
    if score.coverage is not None:
        inside = f", {write_share(score.coverage)} inside their intervals"
    mean, median = (0.0, 0.0) if score.errors is None else (score.errors.mean, score.errors.median)
    rows: list[tuple[Cell, ...]] = [
        (
            one.kernel, one.measured_s, one.seconds, one.low, one.high, one.ratio,
            None if one.in_domain is None else int(one.in_domain), one.observations, one.noise,
        )
        for one in view.rows
    ]  # fmt: skip
    return Picture(
        name=f"launches-{view.method}-{view.device}",
        alternative=(
            f"{score.rows} launches of {score.kernels} kernels on {view.device}: predicted over "
            f"measured time by {view.method}. Mean error {write_share(mean)}, median "
            f"{write_share(median)}{inside}."
        ),
        columns=("kernel", "measured_s", "predicted_s", "low_s", "high_s",
                 "predicted_over_measured", "in_domain", "observations", "noise"),
        rows=rows,
        draw=partial(_draw_launches, rows=view.rows),
        caption=(
            "Each launch once, with its interval; the band is 10 % to either side. Points beyond "
            "the axis stand at its edge."
        ),
        height_inches=4.0,
    )  # fmt: skip


def _picture_kernels(view: AccuracyView) -> Picture:
    worst = view.kernels[0]
    beside = "" if view.method == LINEAR else ", with that of the linear model beside it"
    return Picture(
        name=f"kernels-{view.method}-{view.device}",
        alternative=(
            f"Mean error of each of {len(view.kernels)} kernels on {view.device} by "
            f"{view.method}{beside}. The worst is {worst.kernel} with {write_share(worst.error)}; "
            f"half of them are below {write_share(_middle(view.kernels))}."
        ),
        columns=("kernel", "rows", "mean_error", "linear_mean_error", "noise"),
        rows=[
            (one.kernel, one.rows, one.error, one.linear_error, one.noise) for one in view.kernels
        ],
        draw=partial(_draw_kernels, view=view),
        caption="Worst first. Bars that leave the picture have their value beside them.",
        height_inches=PANEL_INCHES * count_panels(len(view.kernels)),
    )


def _picture_drift(view: AccuracyView) -> Picture:
    first, last = view.drift[0], view.drift[-1]
    shifts = [one for one in view.rows if one.shifted_at is not None]
    return Picture(
        name=f"drift-{view.method}-{view.device}",
        alternative=(
            f"Predicted over measured time by {view.method} on {view.device} by the time of the "
            f"measurement, from {first.begin:%Y-%m-%d %H:%M} to {last.end:%Y-%m-%d %H:%M} UTC. The "
            f"middle goes from {first.middle:.2f} to {last.middle:.2f}; {len(shifts)} lasting "
            "shifts were seen."
        ),
        columns=("begin", "end", "rows", "low_10_percent", "middle", "high_90_percent"),
        rows=[
            (one.begin.isoformat(), one.end.isoformat(), one.rows, one.low, one.middle, one.high)
            for one in view.drift
        ],
        draw=partial(_draw_drift, bins=view.drift, rows=view.rows),
        caption=(
            "Dots are launches; the line is the middle of a stretch of measurements, the band "
            "holds 80 % of them. Lines upright: the times of a launch have shifted for good."
        ),
        height_inches=3.2,
    )


def _middle(kernels: Sequence[KernelScore]) -> float:
    return float(np.median([one.error for one in kernels]))


def _draw_launches(figure: "Figure", rows: Sequence[Judged]) -> None:
    measured = np.clip([one.measured_s for one in rows], _SHORTEST_S, _LONGEST_S)
    ratios = np.array([one.ratio for one in rows])
    reach = find_reach(ratios)
    axes = figure.add_subplot()
    axes.axhspan(0.9, 1.1, color=INK, alpha=0.07, linewidth=0)
    axes.axhline(1.0, color=INK, linewidth=0.7)
    inside = np.array([one.is_inside is not False for one in rows])
    has_intervals = any(one.is_inside is not None for one in rows)
    known = np.array([one.in_domain is not False for one in rows])
    many = len(rows) > _MANY_POINTS
    shown = np.clip(ratios, 1 / reach, reach)
    for marks, colour, label in (
        (inside, _BLUE, "measured time inside the interval" if has_intervals else "launch"),
        (~inside, _RED, "outside"),
    ):
        _draw_intervals(axes, rows, marks, reach, colour)
        for wanted, face in ((marks & known, colour), (marks & ~known, "none")):
            axes.plot(
                measured[wanted], shown[wanted], "o" if label != "outside" else "D", color=colour,
                markersize=3.6, markerfacecolor=face, markeredgewidth=0.7 if face == "none" else 0,
                label=label if face != "none" and wanted.any() else None, rasterized=many,
            )  # fmt: skip
    if not known.all():
        axes.plot([], [], "o", color=INK, markersize=3.5, markerfacecolor="none",
                  markeredgewidth=0.8, label="unlike what was learned from")  # fmt: skip
    scale_ratios(axes, reach)
    scale_seconds(axes)
    show_grid(axes, "both")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)


def _draw_intervals(
    axes: "Axes", rows: Sequence[Judged], marks: npt.NDArray[Any], reach: float, colour: str
) -> None:
    chosen = [one for one, mark in zip(rows, marks, strict=True) if mark]
    held = [(one, one.low, one.high) for one in chosen if one.low and one.high]
    places = np.clip([one.measured_s for one, _, _ in held], _SHORTEST_S, _LONGEST_S)
    axes.vlines(
        places,
        np.clip([low for _, low, _ in held] / places, 1 / reach, reach),
        np.clip([high for _, _, high in held] / places, 1 / reach, reach),
        color=colour, alpha=0.22, linewidth=0.8, rasterized=len(rows) > _MANY_POINTS,
    )  # fmt: skip


def _draw_kernels(figure: "Figure", view: AccuracyView) -> None:
    kernels = view.kernels
    short = shorten_names(one.kernel for one in kernels)
    series: list[tuple[list[float | None], str, str]] = [
        ([one.error for one in kernels], _BLUE, view.method)
    ]
    linear = [one.linear_error for one in kernels]
    if view.method != LINEAR and any(one is not None for one in linear):
        series.append((linear, _ORANGE, LINEAR))
    limit = choose_limit([one for values, _, _ in series for one in values if one is not None])

    def draw(axes: "Axes", part: slice) -> None:
        for number, (values, colour, label) in enumerate(series):
            offset = 0.0 if len(series) == 1 else 0.4 * number - 0.2
            _draw_bars(axes, values[part], offset, 0.8 / len(series), colour, label, limit)
        axes.set_ylim(0, limit)
        axes.yaxis.set_major_formatter(write_percent)
        axes.set_ylabel("mean error")
        if view.noise is not None:
            axes.axhline(
                view.noise, color=INK, linewidth=0.8, linestyle=":", label="noise of measured times"
            )

    first = draw_panels(figure, [short[one.kernel] for one in kernels], draw)
    # Above the first panel: cut bars reach to its upper end.
    figure.legend(*first.get_legend_handles_labels(), loc="outside upper right", ncols=3)


def _draw_bars(  # noqa: PLR0913 - one series of bars
    axes: "Axes",
    values: Sequence[float | None],
    offset: float,
    width: float,
    colour: str,
    label: str,
    limit: float,
) -> None:
    known = [(place + offset, one) for place, one in enumerate(values) if one is not None]
    axes.bar(
        [place for place, _ in known], [min(one, limit) for _, one in known], width,
        color=colour, label=label,
    )  # fmt: skip
    for place, one in known:
        if one > limit:
            axes.text(
                place, limit, f" {one * 100:.0f} %", rotation=90, fontsize=SMALL_FONT - 0.5,
                ha="center", va="bottom", color=colour,
            )  # fmt: skip


def _draw_drift(figure: "Figure", bins: Sequence[DriftBin], rows: Sequence[Judged]) -> None:
    dated = [(one.when, one.ratio) for one in rows if one.when is not None]
    ratios = np.array([ratio for _, ratio in dated])
    reach = find_reach(ratios)
    axes = figure.add_subplot()
    axes.axhline(1.0, color=INK, linewidth=0.7)
    axes.plot(
        _place([when for when, _ in dated]), np.clip(ratios, 1 / reach, reach), "o",
        color=_BLUE, alpha=0.55, markersize=2.5, markeredgewidth=0, label="launch",
        rasterized=len(dated) > _MANY_POINTS,
    )  # fmt: skip
    middles = _place([one.begin + (one.end - one.begin) / 2 for one in bins])
    style = "-" if len(bins) > 1 else "D"
    axes.plot(middles, [one.middle for one in bins], style, color=_ORANGE, linewidth=1.6,
              label="middle")  # fmt: skip
    axes.fill_between(
        middles, [one.low for one in bins], [one.high for one in bins], color=_ORANGE, alpha=0.2,
        linewidth=0, label="80 % of launches",
    )  # fmt: skip
    shifts = [one.shifted_at for one in rows if one.shifted_at is not None]
    if shifts:
        axes.vlines(
            _place(shifts), 0, 1, transform=axes.get_xaxis_transform(), color=_RED,
            linewidth=0.9, linestyles="--", label="a launch's times have shifted",
        )  # fmt: skip
    scale_ratios(axes, reach)
    show_grid(axes, "both")
    _scale_dates(axes)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4)


def _place(moments: Sequence[datetime]) -> npt.NDArray[Any]:
    """Give where moments are on an axis."""
    from matplotlib.dates import date2num

    found: npt.NDArray[Any] = date2num(moments)  # type: ignore[no-untyped-call]  # the library has none
    return found


def _scale_dates(axes: "Axes") -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=3, maxticks=9)  # type: ignore[no-untyped-call]  # as above
    axes.xaxis.set_major_locator(locator)
    formatter = ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]  # as above
    axes.xaxis.set_major_formatter(formatter)
    axes.set_xlabel("measured (UTC)")
