"""The command `kernelcast model`, and what its commands have in common."""

from collections.abc import Sequence

from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.reports.charts import Axis, Chart, make_series


def chart_limiters(
    title: str, labels: Sequence[str], estimates: Sequence[AnalyticEstimate]
) -> Chart:
    """Chart the time of each limiter alone, beside the time of the whole launch."""
    times = {
        name: [one.limiters.get(name, 0.0) for one in estimates]
        for name in dict.fromkeys(key for one in estimates for key in one.limiters)
    }
    places = range(len(estimates))
    limiters = [
        make_series(name, places, own, "bars")
        for name, own in times.items()
        if any(own[place] > 0.005 * estimates[place].seconds for place in places)
    ]
    whole = make_series("whole launch", places, [one.seconds for one in estimates])
    return Chart(
        title=title, x=Axis("", names=tuple(labels)), y=Axis("time alone", "s"),
        series=(*limiters, whole),
    )  # fmt: skip
