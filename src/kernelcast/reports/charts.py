"""Charts and figures as data: `kernelcast.reports.drawing` draws them for files and pages alike.

A `Chart` is two axes and series of points; a `Figure` is charts that stand together. Whoever has
something to draw makes these and draws nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from typing import Any, Final, Literal

Kind = Literal["points", "line", "bars", "stack", "spans", "guide"]
"""How a series is drawn.

Bars of several series stand beside each other. Those of a stack stand on each other, positive ones
upwards and negative ones downwards; over numbers they are areas. A span reaches from `x` to `high`
at the height `y`. A guide is a dashed line to read others by.
"""
Unit = Literal["", "s", "share", "ratio", "work", "moment", "B/s", "op/s", "B", "points", "count"]
"""What the numbers of an axis are, in the units of the International System."""
LONGEST_NAME: Final = 26
_MOST_BARS: Final = 60


@dataclass(frozen=True, slots=True)
class Axis:
    title: str
    unit: Unit = ""
    """Of its numbers; moments are seconds since 1970."""
    is_log: bool = False
    """Whether steps are factors."""
    names: tuple[str, ...] = ()
    """What stands at 0, 1, 2 and so on, where the axis has names and no numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    x: float
    y: float
    low: float | None = None
    high: float | None = None
    """Ends of its interval along `y`; of a span, `high` is its end along `x`."""
    label: str = ""
    link: str = ""
    """Where a click leads; nowhere if empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points that belong together; `kind` says how they are drawn."""

    name: str
    points: Sequence[Point]
    kind: Kind = "points"
    is_hollow: bool = False
    """Whether bars are hatched: what they show was avoided or overlaps."""


def make_series(
    name: str, x: Iterable[float], y: Iterable[float], kind: Kind = "points", *,
    low: Iterable[float] = (), high: Iterable[float] = (), is_hollow: bool = False,
) -> Series:  # fmt: skip
    """Make a series of places and values, and of ends where there are any, all of one length."""
    points = [
        Point(x=at, y=value, low=least, high=most)
        for at, value, least, most in zip_longest(x, y, low, high)
    ]
    return Series(name=name, points=points, kind=kind, is_hollow=is_hollow)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart; where several stand together, each has a title."""

    x: Axis
    y: Axis
    series: tuple[Series, ...]
    is_upright: bool = True
    """Whether bars stand; else they lie, and `x` goes downwards."""
    is_square: bool = False
    """Whether both axes have the same ends: equal values lie on the diagonal."""
    cuts_bars: bool = False
    """Whether bars far longer than the others are cut, with their values written beside them."""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    charts: tuple[Chart, ...]
    name: str = ""
    """In words and dashes, for names of files and addresses."""
    title: str = ""
    caption: str = ""
    columns: int = 2
    heights: tuple[float, ...] = (3.8,)
    """Of the rows, in inches; the last holds for those that follow. A page is 8 inches wide."""


def clip_seconds(seconds: float) -> float:
    """Bring a time to where an axis of times may end."""
    # Callers may report any time: an axis from the first atom's life on would show nothing else.
    return min(max(seconds, 1e-9), 1e7)


def chart_predictions(series: Iterable[Series], *, has_bounds: bool = True) -> Chart:
    """Chart predicted over measured times: on the middle line they are equal."""
    clipped = [
        replace(
            one,
            points=[replace(at, x=clip_seconds(at.x), y=clip_seconds(at.y)) for at in one.points],
        )
        for one in series
    ]
    ends = [end(at.x for one in clipped for at in one.points) for end in (min, max)]
    factors = {"equal": (1.0,), "10 % off": (1.1, 1 / 1.1) if has_bounds else ()}
    guides = [
        make_series(name, ends, [one * factor for one in ends], "guide")
        for name, each in factors.items()
        for factor in each
    ]
    return Chart(
        x=Axis(title="measured time", unit="s", is_log=True),
        y=Axis(title="predicted time", unit="s", is_log=True),
        series=(*clipped, *guides),
        is_square=True,
    )


def chart_mean_errors(
    kernels: Sequence[str], errors: Mapping[str, Sequence[float | None]], noise: float | None
) -> Figure:
    """Chart the mean errors of each kernel by some methods, beside each other."""
    short, charts = shorten_names(kernels), []
    for first in range(0, len(kernels), _MOST_BARS):
        own = kernels[first : first + _MOST_BARS]
        chosen = {name: each[first : first + _MOST_BARS] for name, each in errors.items()}
        series = [
            make_series(name, range(len(own)), [error or 0.0 for error in each], "bars")
            for name, each in chosen.items()
        ]
        if noise is not None:
            ends = (-0.5, len(own) - 0.5)
            series.append(make_series("noise of measured times", ends, (noise, noise), "guide"))
        x = Axis(title="", names=tuple(short[name] for name in own))
        y = Axis(title="mean error", unit="share")
        charts.append(Chart(x=x, y=y, series=tuple(series), cuts_bars=True))
    return Figure(charts=tuple(charts), columns=1, heights=(3.2,))


def chart_errors(first: str, second: str, groups: Mapping[str, Sequence[Point]]) -> Chart:
    """Chart errors by the first of two models along `x`, by the second along `y`, in groups."""
    errors = [error for own in groups.values() for one in own for error in (one.x, one.y)]
    ends = (min(errors), max(errors))
    return Chart(
        x=Axis(title=f"mean error of {first}", unit="share", is_log=True),
        y=Axis(title=f"mean error of {second}", unit="share", is_log=True),
        series=(
            *(Series(name=name, points=own) for name, own in sorted(groups.items())),
            make_series("equal", ends, ends, "guide"),
        ),
        is_square=True,
    )


def chart_roofs(series: Iterable[Series], title: str = "operations per byte") -> Chart:
    return Chart(
        x=Axis(title=title, is_log=True),
        y=Axis(title="operations per second", unit="op/s", is_log=True),
        series=tuple(series),
    )


def shorten_names(labels: Iterable[str]) -> Mapping[str, str]:
    """Shorten each label: its last part, with more parts where that is not enough."""

    def end(label: str, parts: int) -> str:
        return "/".join(label.split("/")[-parts:])

    names = sorted(set(labels))
    short = {label: end(label, 1) for label in names}
    for parts in range(2, max((label.count("/") for label in names), default=0) + 2):
        used = Counter(short.values())
        short |= {label: end(label, parts) for label, name in short.items() if used[name] > 1}
    return {label: elide(make_plain(name)) for label, name in short.items()}


def elide(name: str, longest: int = LONGEST_NAME) -> str:
    """Leave out the middle of a name that is too long."""
    if len(name) <= longest:
        return name
    half = (longest - 1) // 2
    return f"{name[: longest - 1 - half]}\N{HORIZONTAL ELLIPSIS}{name[-half:]}"


def make_plain(text: str) -> str:
    """Replace what cannot be drawn: callers may call kernels and devices anything."""
    return "".join(one if one.isprintable() or one == "\n" else "?" for one in text)


def chart_to_plain(chart: Chart) -> Mapping[str, Any]:
    """Write a chart as its script reads it: a point is a list, cut where nothing follows."""
    series = []
    for one in chart.series:
        points = []
        for at in one.points:
            ends = [_shorten(value) for value in (at.x, at.y, at.low, at.high)]
            values: list[float | str | None] = [*ends, at.label, at.link]
            while values and values[-1] in (None, ""):
                values.pop()
            points.append(values)
        series.append({"name": one.name, "kind": one.kind, "points": points})
    return {
        "x": asdict(chart.x),
        "y": asdict(chart.y),
        "isUpright": chart.is_upright,
        "isSquare": chart.is_square,
        "series": series,
    }


def _shorten(value: float | None) -> float | None:
    """Cut digits that nobody sees; moments keep milliseconds."""
    if value is None or isinstance(value, int):
        return value
    return round(value, 3) if value > 1e8 else float(f"{value:.6g}")
