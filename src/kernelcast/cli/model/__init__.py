"""The command `kernelcast model`, and what its commands have in common."""

from collections.abc import Sequence

from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.reports.charts import Axis, Chart, make_series


def chart_limiters(
    title: str, places: Sequence[str | int], estimates: Sequence[AnalyticEstimate], over: str = ""
) -> Chart:
    """Chart the largest limiters alone beside the whole launch: as bars, or lines over a number."""
    times = {
        name: [one.limiters.get(name, 0.0) for one in estimates]
        for name in dict.fromkeys(key for one in estimates for key in one.limiters)
    }
    totals = [one.seconds for one in estimates]
    x = list(map(int, places)) if over else range(len(places))
    limiters = [
        make_series(name, x, times[name], "line" if over else "bars")
        for name in sorted(times, key=lambda one: -max(times[one]))[:7]
        if any(own > 0.005 * total for own, total in zip(times[name], totals, strict=True))
    ]
    whole = make_series("whole launch", x, totals, "line" if over else "points")
    names = () if over else tuple(map(str, places))
    return Chart(
        title=title, x=Axis(over, names=names), y=Axis("time alone", "s"),
        series=(*limiters, whole),
    )  # fmt: skip
