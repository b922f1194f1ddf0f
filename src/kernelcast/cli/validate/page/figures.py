"""The pictures of a validation: the paper's Fig. 11, 12, 14 and 15, and intervals."""

from collections.abc import Sequence

from kernelcast.models.validation.report import GroupScore
from kernelcast.records.frames import Frame
from kernelcast.records.sampling_points import SamplingPointScore
from kernelcast.reports.charts import Axis, Chart, Point, Series, chart_predictions
from kernelcast.reports.drawing import PANEL_INCHES, count_panels
from kernelcast.reports.error_charts import ErrorSeries, draw_mean_errors
from kernelcast.reports.html import Html, chart_svg, draw_svg

_GROUPS = {True: "inside its interval", False: "outside its interval"}
_UNLIKE = {True: "", False: ", unlike what was learned from"}


def draw_bars(bars: Sequence[GroupScore], model: str, noise: float | None) -> Html:
    """Draw each kernel's error by the linear and the learned model, worst linear error first."""
    ordered = sorted(bars, key=lambda one: (-(one.linear_error or 0.0), one.group))
    series = [
        ErrorSeries(model, [one.error for one in ordered]),
        ErrorSeries("linear", [one.linear_error for one in ordered]),
    ]
    names = [one.group for one in ordered]
    return draw_svg(
        PANEL_INCHES * count_panels(len(ordered)),
        lambda figure: draw_mean_errors(figure, names, series, noise),
    )


def draw_predictions(rows: Frame) -> Html:
    """Draw predicted over measured time of every row with its interval."""
    groups: dict[str, list[Point]] = {}
    for one in rows.to_dict("records"):
        name = _GROUPS[bool(one["is_inside"])] + _UNLIKE[bool(one["in_domain"])]
        point = Point(
            x=one["measured_s"], y=one["predicted_s"], low=one["low_s"], high=one["high_s"]
        )
        groups.setdefault(name, []).append(point)
    series = (Series(name=name, points=own) for name, own in sorted(groups.items()))
    return chart_svg(4.6, chart_predictions(series))


def draw_sampling_points(points: Sequence[SamplingPointScore]) -> Html:
    """Draw error and cost of the linear model over the sampling points of one device.

    Parameters
    ----------
    points : sequence of SamplingPointScore
        Of one device; that of multiple 0 are the default samples.
    """
    series = sorted((one for one in points if one.multiple), key=lambda one: one.multiple)
    usual = [one for one in points if not one.multiple]
    charts = [
        Chart(
            x=Axis(title="multiples of P_sat", names=tuple(one.label for one in series)),
            y=Axis(title=title, unit="share"),
            series=tuple(
                line for name in names for line in _draw_lines(series, usual, name)
            ),
        )
        for title, names in (
            ("error of the linear model", ("mean", "median")), ("sampling cost", ("cost",)),
        )
    ]  # fmt: skip
    return chart_svg(2.9, *charts)


def _draw_lines(
    points: Sequence[SamplingPointScore], usual: Sequence[SamplingPointScore], name: str
) -> list[Series]:
    """Give a number over the sampling points, and what it is of the default samples."""
    values = [Point(x=place, y=getattr(one, name)) for place, one in enumerate(points)]
    ends = (0, max(len(points) - 1, 1))
    return [
        Series(name=name, kind="line", points=values),
        *(
            Series(
                name=f"{name}, default samples", kind="guide",
                points=[Point(x=place, y=getattr(one, name)) for place in ends],
            )
            for one in usual[:1]
        ),
    ]  # fmt: skip
