"""The pictures of the page *Compare*: differences by kernel and by device, and feature groups."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from kernelcast.reports.drawing import (
    COLOURS,
    INK,
    make_plain,
    shorten_names,
    show_grid,
)
from kernelcast.reports.error_charts import GREY
from kernelcast.reports.numbers import format_points
from kernelcast.service.pages.charts import Axis, Chart, Point, Series
from kernelcast.service.pages.comparing.view import ComparingView
from kernelcast.service.pages.kernel_links import link_kernel
from kernelcast.service.pages.pictures import Picture

if TYPE_CHECKING:  # slow to load
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from kernelcast.reports.accuracy.judging import (
        AblatedGroup,
        ComparedKernel,
        Comparison,
        ExplainedError,
    )

_LINE_INCHES: Final = 0.42
_LEAST_ERROR: Final = 1e-4


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
        draw=partial(_draw_devices, comparison=comparison),
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
        chart=_chart_kernels(comparison, kernels),
    )  # fmt: skip


def _chart_kernels(comparison: "Comparison", kernels: Sequence["ComparedKernel"]) -> Chart:
    """Chart the errors of both models on each kernel, by who wins it."""
    first, second = comparison.first, comparison.second
    groups = {
        f"{first} is better": [one for one in kernels if one.winner == first],
        f"{second} is better": [one for one in kernels if one.winner == second],
        "within noise": [one for one in kernels if one.winner is None],
    }
    errors = [
        max(error, _LEAST_ERROR) for one in kernels for error in (one.first_error, one.second_error)
    ]
    ends = (min(errors), max(errors))
    return Chart(
        x=Axis(title=f"mean error of {first}", unit="share", is_log=True),
        y=Axis(title=f"mean error of {second}", unit="share", is_log=True),
        series=(
            *(
                Series(
                    name=name,
                    points=[
                        Point(
                            x=max(one.first_error, _LEAST_ERROR),
                            y=max(one.second_error, _LEAST_ERROR),
                            label=one.kernel, link=link_kernel(one.kernel),
                        )
                        for one in own
                    ],
                )
                for name, own in groups.items()
                if own
            ),
            Series(name="equal", kind="guide", points=[Point(x=one, y=one) for one in ends]),
        ),
        is_square=True,
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
        draw=partial(_draw_ablation, groups=groups),
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


def _draw_devices(figure: "Figure", comparison: "Comparison") -> None:
    axes = figure.add_subplot()
    known = [one for one in comparison.devices if one.difference is not None]
    lines = [(one.device, one.difference or 0.0, one.low, one.high) for one in reversed(known)]
    _draw_intervals(axes, lines, better_left=comparison.second, better_right=comparison.first)


def _draw_ablation(figure: "Figure", groups: Sequence["AblatedGroup"]) -> None:
    axes = figure.add_subplot()
    lines = [(one.group, one.difference, one.low, one.high) for one in reversed(groups)]
    _draw_intervals(axes, lines, better_left="without", better_right="with the group")


def _draw_intervals(
    axes: "Axes",
    lines: Sequence[tuple[str, float, float | None, float | None]],
    *,
    better_left: str,
    better_right: str,
) -> None:
    """Draw differences with their intervals, one below the other."""
    for place, (_, middle, low, high) in enumerate(lines):
        is_sure = low is not None and high is not None and not low <= 0 <= high
        colour = (COLOURS[0] if middle < 0 else COLOURS[1]) if is_sure else GREY
        if low is not None and high is not None:
            axes.plot([low * 100, high * 100], [place, place], color=colour, linewidth=2.5,
                      solid_capstyle="butt")  # fmt: skip
        axes.plot([middle * 100], [place], "D" if is_sure else "o", color=colour, markersize=6)
    axes.axvline(0, color=INK, linewidth=0.7)
    axes.set_yticks(range(len(lines)), [make_plain(name) for name, _, _, _ in lines])
    axes.set_ylim(-0.6, len(lines) - 0.4)
    axes.margins(x=0.12)
    left, right = axes.get_xlim()
    axes.set_xlim(min(left, -0.5), max(right, 0.5))
    axes.set_xlabel("difference of mean errors (points)")
    axes.set_title(f"\N{LEFTWARDS ARROW} {better_left} better", loc="left")
    axes.set_title(f"{better_right} better \N{RIGHTWARDS ARROW}", loc="right")
    show_grid(axes, "x")


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
