"""The chart of ``kernelcast estimate --plot``: predicted beside measured."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernelcast.records.errors import InputError
from kernelcast.records.estimates import DeviceAnswer, Estimate
from kernelcast.reports.drawing import saved_figure

if TYPE_CHECKING:  # matplotlib is optional, and slow to load
    from matplotlib.figure import Figure

_BAR_WIDTH = 0.4
_WIDEST_LINEAR_RATIO = 20.0


def save_plot(path: Path, answers: Sequence[DeviceAnswer]) -> None:
    """Draw each answer's prediction with its interval, beside the measurement."""
    rows = [(f"{one.problem}\n{one.device_id}", one.estimate) for one in answers if one.estimate]
    if not rows:
        msg = f"{path}: no device has answered, there is nothing to plot"
        raise InputError(msg)
    with saved_figure(path, max(6.0, 1.2 * len(rows) + 2), 5.0) as figure:
        _draw(figure, [label for label, _ in rows], [estimate for _, estimate in rows])


def _draw(figure: "Figure", labels: Sequence[str], estimates: Sequence[Estimate]) -> None:
    axes = figure.add_subplot()
    places = range(len(labels))
    expected = [one.expected for one in estimates]
    predicted = [one.seconds for one in expected]
    below = [one.seconds - one.low for one in expected]
    above = [one.high - one.seconds for one in expected]
    busy = ", as the machine is now" if any(one.now for one in estimates) else ""
    label = f"predicted{busy} ({expected[0].coverage:.0%} interval)"
    axes.bar(
        [place - _BAR_WIDTH / 2 for place in places], predicted, _BAR_WIDTH,
        yerr=[below, above], capsize=3, label=label,
    )  # fmt: skip
    measured = [
        (place + _BAR_WIDTH / 2, one.measurement.seconds)
        for place, one in enumerate(estimates)
        if one.measurement is not None
    ]
    if measured:
        middles, heights = zip(*measured, strict=True)
        axes.bar(middles, heights, _BAR_WIDTH, label="measured (median)")
    if max(predicted) > _WIDEST_LINEAR_RATIO * min(predicted):
        axes.set_yscale("log")
    axes.set_xticks(list(places), labels, rotation=30, ha="right")
    axes.set_ylabel("time of the whole launch (s)")
    axes.legend()
