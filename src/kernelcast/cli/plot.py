"""The chart of ``kernelcast estimate --plot``: predicted beside measured."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from kernelcast.records.errors import InputError
from kernelcast.records.estimates import DeviceAnswer, Estimate

_BAR_WIDTH = 0.4
_WIDEST_LINEAR_RATIO = 20.0


def check_plot(path: Path) -> None:
    """Make sure that a chart can be drawn, before anything runs.

    Raises
    ------
    InputError
        If matplotlib is missing, or does not write files of that kind.
    """
    if importlib.util.find_spec("matplotlib") is None:
        msg = "--plot needs matplotlib; install it with `pip install 'kernelcast[plot]'`"
        raise InputError(msg)
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix.lstrip(".").lower() not in kinds:
        msg = f"{path}: charts are written as {', '.join(kinds)}; end the name in one, as .png"
        raise InputError(msg)


def save_plot(path: Path, answers: Sequence[DeviceAnswer]) -> None:
    """Draw each answer's prediction with its interval, beside the measurement.

    Raises
    ------
    InputError
        If no device has answered or the file cannot be written.
    """
    rows = [(f"{one.problem}\n{one.device_id}", one.estimate) for one in answers if one.estimate]
    if not rows:
        msg = f"{path}: no device has answered, there is nothing to plot"
        raise InputError(msg)
    try:
        _draw(path, [label for label, _ in rows], [estimate for _, estimate in rows])
    except OSError as error:
        msg = f"{path}: the chart cannot be written: {error.strerror or error}"
        raise InputError(msg) from error


def _draw(path: Path, labels: Sequence[str], estimates: Sequence[Estimate]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(6.0, 1.2 * len(labels) + 2), 5.0), layout="constrained")
    axes = figure.add_subplot()
    places = range(len(labels))
    predicted = [one.seconds for one in estimates]
    below = [one.seconds - one.low for one in estimates]
    above = [one.high - one.seconds for one in estimates]
    axes.bar(
        [place - _BAR_WIDTH / 2 for place in places], predicted, _BAR_WIDTH,
        yerr=[below, above], capsize=3, label=f"predicted ({estimates[0].coverage:.0%} interval)",
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
    figure.savefig(path)
