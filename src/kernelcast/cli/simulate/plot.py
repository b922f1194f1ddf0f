"""The chart of ``kernelcast simulate --plot``: makespans over the error of estimates."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernelcast.reports.drawing import saved_figure
from kernelcast.scheduling.cluster.graphs import Shape
from kernelcast.scheduling.cluster.study import Outcome, StudySettings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = 2
_LINES = {"history": ("#228833", ("--", ":")), "none": ("#ee6677", ("-.",))}
_CURVE = "#4477aa"
_POINT = "#aa3377"


def save_simulation_plot(path: Path, settings: StudySettings, outcomes: Sequence[Outcome]) -> None:
    """Draw one panel per shape: the curve over errors, lines for history and no knowledge."""
    shapes = settings.shapes
    columns = min(_COLUMNS, len(shapes))
    rows = -(-len(shapes) // columns)
    with saved_figure(path, 5.2 * columns, 3.6 * rows + 0.5) as figure:
        panels = figure.subplots(rows, columns, squeeze=False).flat
        for axes, shape in zip(panels, shapes, strict=False):
            _draw_shape(axes, shape, [one for one in outcomes if one.shape is shape])
        for axes in list(figure.axes)[len(shapes) :]:
            axes.remove()
        figure.suptitle(
            f"{settings.devices:,} devices of {min(settings.models, settings.devices)} models, "
            f"{settings.tasks:,} tasks, median of {settings.repeats}"
        )


def _draw_shape(axes: "Axes", shape: Shape, outcomes: Sequence[Outcome]) -> None:
    curve = [one for one in outcomes if one.mean_error is not None and not one.is_measured]
    curve.sort(key=lambda one: one.mean_error or 0.0)
    errors = [100 * (one.mean_error or 0.0) for one in curve]
    axes.plot(errors, [one.ratio for one in curve], "o-", color=_CURVE, label="estimates")
    axes.fill_between(
        errors,
        [min(one.ratios) for one in curve],
        [max(one.ratios) for one in curve],
        color=_CURVE, alpha=0.2, linewidth=0,
    )  # fmt: skip
    for one in outcomes:
        if one.is_measured and one.mean_error is not None:
            axes.plot(100 * one.mean_error, one.ratio, "*", color=_POINT, markersize=11)
            axes.annotate(one.label.removeprefix("estimates, "), (100 * one.mean_error, one.ratio),
                          textcoords="offset points", xytext=(6, 4), fontsize="small")  # fmt: skip
    for knowledge, (colour, styles) in _LINES.items():
        found = [one for one in outcomes if one.knowledge == knowledge]
        for one, style in zip(found, styles, strict=False):
            axes.axhline(one.ratio, color=colour, linestyle=style, label=one.label)
    axes.set_title(shape.value)
    axes.set_xlabel("mean error of estimates (%)")
    axes.set_ylabel("makespan / perfect knowledge")
    axes.legend(fontsize="small")
