"""Charts: what is drawn, by `kernelcast.reports.chart_drawing` or by a browser's script."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

Kind = Literal["points", "line", "bars", "guide"]
"""How a series is drawn; a guide is a line to read others by."""
Unit = Literal["", "s", "share", "ratio", "work", "moment", "B/s", "op/s", "B", "points"]
"""What the numbers of an axis are, in the units of the International System."""
_MOST_DIGITS: Final = 6
_WHOLE_FROM: Final = 1e8
# Callers may report any time: an axis from the first atom's life on would show nothing else.
_SHORTEST_S, _LONGEST_S = 1e-9, 1e7


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis."""

    title: str
    """What it shows."""
    unit: Unit = ""
    """Of its numbers; moments are seconds since 1970."""
    is_log: bool = False
    """Whether steps are factors."""
    names: tuple[str, ...] = ()
    """What stands at 0, 1, 2 and so on, where the axis has names and no numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What is drawn at one place."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    """Ends of its interval along `y`."""
    label: str = ""
    link: str = ""
    """Where a click leads; nowhere if empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points that belong together; `kind` says how they are drawn."""

    name: str
    points: Sequence[Point]
    kind: Kind = "points"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart; bars of one that `is_upright` is false lie down. One of several has a title.

    Both axes of one that `is_square` have the same ends: equal values lie on its diagonal.
    """

    x: Axis
    y: Axis
    series: tuple[Series, ...]
    is_upright: bool = True
    is_square: bool = False
    title: str = ""


def clip_seconds(seconds: float) -> float:
    """Bring a time to where an axis of times may end."""
    return min(max(seconds, _SHORTEST_S), _LONGEST_S)


def chart_predictions(series: Iterable[Series], *, has_bounds: bool = True) -> Chart:
    """Chart predicted over measured times: on the middle line they are equal."""
    found = [
        replace(
            one,
            points=[replace(at, x=clip_seconds(at.x), y=clip_seconds(at.y)) for at in one.points],
        )
        for one in series
    ]
    ends = [end(at.x for one in found for at in one.points) for end in (min, max)]
    factors = {"equal": (1.0,), "10 % off": (1.1, 1 / 1.1) if has_bounds else ()}
    guides = [
        Series(name=name, kind="guide", points=[Point(x=one, y=one * factor) for one in ends])
        for name, each in factors.items()
        for factor in each
    ]
    return Chart(
        x=Axis(title="measured time", unit="s", is_log=True),
        y=Axis(title="predicted time", unit="s", is_log=True),
        series=(*found, *guides),
        is_square=True,
    )


def chart_to_plain(chart: Chart) -> Mapping[str, Any]:
    """Write a chart as its script reads it: a point is a list, cut where nothing follows."""
    return {
        "x": asdict(chart.x),
        "y": asdict(chart.y),
        "isUpright": chart.is_upright,
        "isSquare": chart.is_square,
        "series": [
            {"name": one.name, "kind": one.kind, "points": [_write(each) for each in one.points]}
            for one in chart.series
        ],
    }


def _write(point: Point) -> list[float | str | None]:
    values: list[float | str | None] = [
        _shorten(point.x), _shorten(point.y), _shorten(point.low), _shorten(point.high),
        point.label, point.link,
    ]  # fmt: skip
    while values and values[-1] in (None, ""):
        values.pop()
    return values


def _shorten(value: float | None) -> float | None:
    """Cut digits that nobody sees; whole numbers and moments keep those before the point."""
    if value is None or isinstance(value, int):
        return value
    return round(value) if value > _WHOLE_FROM else float(f"{value:.{_MOST_DIGITS}g}")
