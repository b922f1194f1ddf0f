"""The command `kernelcast model`, and what its commands have in common."""

from collections.abc import Sequence

from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.reports.charts import Axis, Chart, make_series
from kernelcast.reports.numbers import format_count, format_seconds, format_share
from kernelcast.reports.presenter import Section, Table


def describe_estimate(
    name: str, estimate: AnalyticEstimate, updates: float, about: str = ""
) -> Section:
    """Describe the time of a launch, what crosses each boundary, and what limits it."""
    seconds = estimate.seconds
    without = {  # the time without each limiter
        name: estimate.quantities[key]
        for name in estimate.limiters
        if (key := f"without_{name.lower()}_s") in estimate.quantities
    }
    advice = []
    if without:
        best = min(without, key=lambda each: without[each])
        gain = without[best] / seconds - 1
        advice.append("\nWhat would help most: " + (
            "nothing alone; several limiters take equally long." if gain > -0.005 else
            f"less {best}; without any it would take {format_seconds(without[best])}, "
            f"{format_share(gain, signed=True)}."
        ))  # fmt: skip
    volumes = Table.of(estimate.volumes.items(), {
        "between": ("text", lambda one: _name_boundary(one[0])),
        "whole launch": ("B", lambda one: round(one[1])),
        "B/update": (".2f", lambda one: one[1] / updates),
        "at this time": ("number", lambda one: f"{one[1] / seconds / 1e9:,.0f} GB/s"),
    })  # fmt: skip
    limiters = Table.of(
        sorted((one for one in estimate.limiters.items() if one[1]), key=lambda one: -one[1]),
        {
            "limiter": ("text", lambda one: one[0]), "time alone": ("s", lambda one: one[1]),
            "of the time": ("share", lambda one: one[1] / seconds),
            "": ("text", lambda one: "#" * round(20 * min(one[1] / seconds, 1))),
            "without it": ("s", lambda one: without.get(one[0])),
        },
    )  # fmt: skip
    return Section(
        title=f"{name} on {estimate.machine}: {format_seconds(seconds)}, "
        f"{format_count(updates / seconds)} updates/s, limited by {estimate.limiter}{about}",
        parts=[
            Section(title="Volumes", parts=[volumes]),
            Section(title="Limiters", parts=[limiters.without_empty("without it"), *advice]),
        ],
    )


def _name_boundary(key: str) -> str:
    source, _, target = key.partition("_to_")
    is_load = (source == "DRAM", source) > (target == "DRAM", target)
    return f"{source} to {target} ({'loads' if is_load else 'stores'})"


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
