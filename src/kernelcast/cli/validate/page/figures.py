"""The pictures of a validation: the paper's Fig. 11, 12, 14 and 15, and intervals."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kernelcast.models.validation.report import GroupScore
from kernelcast.records.frames import Frame
from kernelcast.records.sampling_points import SamplingPointScore
from kernelcast.reports.drawing import (
    COLOURS,
    INK,
    WIDTH_INCHES,
    choose_limit,
    find_reach,
    scale_ratios,
    scale_seconds,
    shorten_names,
    write_percent,
)
from kernelcast.reports.html import Html, figure_style, figure_to_svg

if TYPE_CHECKING:  # matplotlib is optional, and slow to load
    from matplotlib.axes import Axes

_BLUE, _ORANGE, _GREEN, _RED = COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[5]
# Names below each other stay legible up to so many across the page.
_BARS_ACROSS = 60
_PANEL_HEIGHT = 3.2
_SMALL = 6.5


def draw_bars(bars: Sequence[GroupScore], model: str, noise: float | None) -> Html:
    """Draw each kernel's error by the linear and the learned model, worst linear error first."""
    from matplotlib.figure import Figure

    ordered = sorted(bars, key=lambda one: (-(one.linear_error or 0.0), one.group))
    short = shorten_names(one.group for one in ordered)
    limit = choose_limit(
        [value for one in ordered for value in (one.linear_error or 0.0, one.error)]
    )
    panels = -(-len(ordered) // _BARS_ACROSS)
    across = -(-len(ordered) // panels)
    with figure_style():
        figure = Figure(figsize=(WIDTH_INCHES, _PANEL_HEIGHT * panels), layout="constrained")
        for place, axes in enumerate(figure.subplots(panels, 1, squeeze=False)[:, 0]):
            shown = ordered[place * across : (place + 1) * across]
            _draw_pairs(axes, shown, model, limit)
            axes.set_xticks(
                range(len(shown)), [short[one.group] for one in shown], rotation=90, fontsize=_SMALL
            )
            axes.set_xlim(-0.7, across - 0.3)
            if noise is not None:
                axes.axhline(noise, color=INK, linewidth=0.8, linestyle=":", label="noise floor")
        # Above the first panel: cut bars reach to its upper end.
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper right", ncols=3)
        return figure_to_svg(figure)


def _draw_pairs(axes: "Axes", bars: Sequence[GroupScore], model: str, limit: float) -> None:
    for values, offset, colour, label in (
        ([one.linear_error or 0.0 for one in bars], -0.2, _ORANGE, "linear"),
        ([one.error for one in bars], 0.2, _BLUE, model),
    ):
        places = [place + offset for place in range(len(bars))]
        axes.bar(places, [min(one, limit) for one in values], 0.4, color=colour, label=label)
        for place, value in zip(places, values, strict=True):
            if value > limit:
                axes.text(
                    place, limit, f" {value * 100:.0f} %", rotation=90, fontsize=_SMALL - 0.5,
                    ha="center", va="bottom", color=colour,
                )  # fmt: skip
    axes.set_ylim(0, limit)
    axes.yaxis.set_major_formatter(write_percent)
    axes.set_ylabel("mean error")
    axes.grid(visible=True, axis="y", color=INK, alpha=0.15, linewidth=0.5)
    axes.set_axisbelow(True)


def draw_ratios(rows: Frame) -> Html:
    """Draw predicted over measured time of every row with its interval, over measured time."""
    from matplotlib.figure import Figure

    measured = rows["measured_s"].to_numpy()
    middle, low, high = (
        rows[name].to_numpy() / measured for name in ("predicted_s", "low_s", "high_s")
    )
    inside, known = rows["is_inside"].to_numpy(), rows["in_domain"].to_numpy()
    reach = find_reach(middle)
    clipped = np.clip(middle, 1 / reach, reach)
    with figure_style():
        figure = Figure(figsize=(WIDTH_INCHES, 4.0), layout="constrained")
        axes = figure.add_subplot()
        axes.axhspan(0.9, 1.1, color=INK, alpha=0.07, linewidth=0)
        axes.axhline(1.0, color=INK, linewidth=0.7)
        for marks, colour, label in (
            (inside, _BLUE, "measured time inside the interval"),
            (~inside, _RED, "outside"),
        ):
            axes.vlines(
                measured[marks], np.clip(low[marks], 1 / reach, reach),
                np.clip(high[marks], 1 / reach, reach), color=colour, alpha=0.35, linewidth=0.8,
            )  # fmt: skip
            near = marks & known
            axes.plot(
                measured[near], clipped[near], "o", color=colour, markersize=3, label=label,
                markeredgewidth=0,
            )  # fmt: skip
            far = marks & ~known
            axes.plot(
                measured[far], clipped[far], "o", color=colour, markersize=3.5,
                markerfacecolor="none", markeredgewidth=0.8,
            )  # fmt: skip
        axes.plot([], [], "o", color=INK, markersize=3.5, markerfacecolor="none",
                  markeredgewidth=0.8, label="unlike what was learned from")  # fmt: skip
        scale_ratios(axes, reach)
        scale_seconds(axes)
        axes.grid(visible=True, color=INK, alpha=0.12, linewidth=0.5)
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
        return figure_to_svg(figure)


def draw_sampling_points(points: Sequence[SamplingPointScore]) -> Html:
    """Draw error and cost of the linear model over the sampling points of one device.

    Parameters
    ----------
    points : sequence of SamplingPointScore
        Of one device; that of multiple 0 are the default samples.
    """
    from matplotlib.figure import Figure

    series = sorted((one for one in points if one.multiple), key=lambda one: one.multiple)
    usual = next((one for one in points if not one.multiple), None)
    with figure_style():
        figure = Figure(figsize=(WIDTH_INCHES, 2.9), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.set_ylabel("error of the linear model")
        right.set_ylabel("sampling cost")
        _draw_series(left, [one.mean for one in series], "mean", _ORANGE, "o-")
        _draw_series(left, [one.median for one in series], "median", _GREEN, "s-")
        _draw_series(right, [one.cost for one in series], "median cost", _BLUE, "o-")
        if usual is not None:
            for axes, value, colour, label in (
                (left, usual.mean, _ORANGE, "mean, default samples"),
                (left, usual.median, _GREEN, "median, default samples"),
                (right, usual.cost, _BLUE, "default samples"),
            ):
                axes.axhline(value, color=colour, linewidth=1.0, linestyle="--", label=label)
        for axes in (left, right):
            _finish_series(axes, [one.label for one in series])
        return figure_to_svg(figure)


def _draw_series(axes: "Axes", values: Sequence[float], label: str, colour: str, line: str) -> None:
    if values:
        axes.plot(
            range(len(values)), values, line, color=colour, markersize=4, linewidth=1.2,
            label=label,
        )  # fmt: skip


def _finish_series(axes: "Axes", labels: Sequence[str]) -> None:
    axes.set_xticks(range(len(labels)), labels)
    axes.set_xlabel("sampling points in multiples of P_sat")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(write_percent)
    axes.grid(visible=True, axis="y", color=INK, alpha=0.15, linewidth=0.5)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=7)
