"""The pictures of the page *Compare*: differences by kernel and by device, and feature groups."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from kernelcast.reports.charts import Axis, Chart, Point, Series
from kernelcast.reports.drawing import (
    COLOURS,
    INK,
    shorten_names,
    show_grid,
)
from kernelcast.reports.error_charts import chart_errors
from kernelcast.reports.numbers import format_points
from kernelcast.service.pages.comparing.view import ComparingView
from kernelcast.service.pages.filters import link_kernel
from kernelcast.service.pages.pictures import Picture

if TYPE_CHECKING:  # slow to load
    from matplotlib.figure import Figure

    from kernelcast.reports.accuracy.judging import (
        AblatedGroup,
        ComparedKernel,
        Comparison,
        ExplainedError,
    )

_LINE_INCHES: Final = 0.42


def make_pictures(view: ComparingView) -> Mapping[str, Picture]:
    """Give the pictures of a view by the names that their addresses have."""
    found: dict[str, Picture] = {}
    comparison = view.comparison
    if comparison is None:
        return found
    if any(one.difference is not None for one in comparison.devices):
        found["devices"] = _picture_devices(comparison)
    if view.device is not None and view.device.kernels:
        found["kernels"] = _picture_kernels(comparison, view.device.kernels, view.device.device)
    if view.ablation:
        found["ablation"] = _picture_ablation(view.ablation)
    if view.explained:
        found["groups"] = _picture_groups(view.explained)
    return found


def _picture_devices(comparison: "Comparison") -> Picture:
    known = [one for one in comparison.devices if one.difference is not None]
    told = "; ".join(
        f"{one.device}: {format_points(one.difference)}, interval {format_points(one.low)} to "
        f"{format_points(one.high)}"
        for one in known
    )
    return Picture(
        name=f"difference-{comparison.first}-{comparison.second}",
        alternative=(
            f"Mean error of {comparison.second} less that of {comparison.first} by device, in "
            f"points: {told}."
        ),
        columns=("device", "rows", "difference", "low", "high", "noise"),
        rows=[
            (one.device, one.rows, one.difference, one.low, one.high, one.noise) for one in known
        ],
        caption=(
            f"Left of zero {comparison.second} is better, right of it {comparison.first}; the line "
            f"is the {comparison.confidence * 100:g} % interval. One that holds zero says that the "
            "two cannot be told apart."
        ),
        height_inches=1.1 + _LINE_INCHES * len(known),
        chart=_chart_differences(
            [(one.device, one.difference, one.low, one.high) for one in known]
        ),
    )


def _chart_differences(
    rows: Sequence[tuple[str, float | None, float | None, float | None]],
) -> Chart:
    """Chart differences in points, each with its interval."""
    points = [
        Point(x=place, y=100 * (value or 0.0), low=_scale(low), high=_scale(high))
        for place, (_, value, low, high) in enumerate(rows)
    ]
    return Chart(
        x=Axis(title="", names=tuple(name for name, *_ in rows)),
        y=Axis(title="difference of mean errors (points)", unit="points"),
        series=(Series(name="difference", points=points, kind="bars"),),
        is_upright=False,
    )


def _scale(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _picture_kernels(
    comparison: "Comparison", kernels: Sequence["ComparedKernel"], device: str
) -> Picture:
    first, second = comparison.first, comparison.second
    wins = [sum(one.winner == name for one in kernels) for name in (first, second, None)]
    return Picture(
        name=f"kernels-{first}-{second}-{device}",
        alternative=(
            f"Mean error of {second} less that of {first} for each of {len(kernels)} kernels on "
            f"{device}: {first} is better on {wins[0]}, {second} on {wins[1]}, {wins[2]} are "
            "within noise."
        ),
        columns=("kernel", "rows", f"{first}_error", f"{second}_error", "difference", "noise",
                 "winner"),
        rows=[
            (one.kernel, one.rows, one.first_error, one.second_error, one.difference, one.noise,
             one.winner)
            for one in kernels
        ],
        caption=(
            "Below the middle line the second is better. A click on a point leads to its kernel."
        ),
        height_inches=4.6,
        chart=chart_errors(first, second, kernels, link_kernel),
    )  # fmt: skip


def _picture_ablation(groups: Sequence["AblatedGroup"]) -> Picture:
    told = "; ".join(
        f"{one.group} {format_points(one.difference)} ({format_points(one.low)} to "
        f"{format_points(one.high)})"
        for one in groups
    )
    return Picture(
        name=f"ablation-{groups[0].device}",
        alternative=f"What the hybrid loses without a feature group, in points: {told}.",
        columns=("group", "rows", "error_with", "error_without", "difference", "low", "high"),
        rows=[
            (one.group, one.rows, one.error, one.error_without, one.difference, one.low, one.high)
            for one in groups
        ],
        caption=(
            "Mean error without the group less that with it, in points, with its interval: right "
            "of zero the group helps."
        ),
        height_inches=1.1 + _LINE_INCHES * len(groups),
        chart=_chart_differences(
            [(one.group, one.difference, one.low, one.high) for one in groups]
        ),
    )


def _picture_groups(explained: Sequence["ExplainedError"]) -> Picture:
    worst = explained[0]
    return Picture(
        name=f"groups-{worst.device}",
        alternative=(
            f"Contributions of feature groups to the correction of {len(explained)} kernels on "
            f"{worst.device} on which {worst.attribution.model} errs most."
        ),
        columns=("kernel", "group", "contribution", "correction", "needed"),
        rows=[
            (one.kernel, share.group, share.contribution, one.attribution.correction, one.needed)
            for one in explained
            for share in one.attribution.groups
        ],
        draw=partial(_draw_groups, explained=explained),
        caption=(
            "Points of the linear model's time that a feature group adds or takes (Shapley "
            "values). They add up to the correction, less that of a launch whose features are all "
            "in the middle. The diamond is the one that would have been right, less that too."
        ),
        height_inches=1.3 + 0.6 * len(explained),
    )


def _draw_groups(figure: "Figure", explained: Sequence["ExplainedError"]) -> None:
    axes = figure.add_subplot()
    names = sorted({share.group for one in explained for share in one.attribution.groups})
    ordered = list(reversed(explained))
    for number, name in enumerate(names):
        for place, one in enumerate(ordered):
            before = _stack(one, names[:number])
            share = _share_of(one, name)
            left = before[share < 0]
            axes.barh(
                place, share * 100, 0.55, left=left * 100, color=COLOURS[number % len(COLOURS)],
                label=None if place else name,
            )  # fmt: skip
    for place, one in enumerate(ordered):
        needed = (one.needed - one.attribution.base) * 100
        axes.plot([needed], [place], "D", color=INK, markersize=6,
                  label=None if place else "would have been right")  # fmt: skip
    short = shorten_names(one.kernel for one in explained)
    axes.axvline(0, color=INK, linewidth=0.7)
    axes.set_yticks(range(len(ordered)), [short[one.kernel] for one in ordered])
    axes.set_xlabel("points of the linear model's time")
    show_grid(axes, "x")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=6)


def _share_of(one: "ExplainedError", name: str) -> float:
    return sum(each.contribution for each in one.attribution.groups if each.group == name)


def _stack(one: "ExplainedError", names: Sequence[str]) -> tuple[float, float]:
    """Give where the next bar begins: to the right of zero, and to the left."""
    shares = [_share_of(one, name) for name in names]
    return sum(each for each in shares if each > 0), sum(each for each in shares if each < 0)
