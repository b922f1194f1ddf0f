"""The tables of a validation's page."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelcast.cli.train.tables import (
    RANKING_COLUMNS,
    SCORE_COLUMNS,
    list_ranking,
    list_score,
)
from kernelcast.cli.validate.page.content import DeviceContent
from kernelcast.models.validation.report import ClassScore, DeviceScore, ValidationReport
from kernelcast.records.frames import Frame
from kernelcast.reports.html import Html, make_definitions, make_row, make_section, make_table
from kernelcast.reports.numbers import (
    NOTHING,
    format_class,
    format_error,
    format_share,
)


def make_summary(report: ValidationReport, chosen: str) -> Html:
    """Give every model's mean and median error on every device."""
    devices = report.devices
    rows = [
        make_row(
            [model, *(_mean(report.score(model, device)) for device in devices)],
            is_chosen=model == chosen,
        )
        for model in report.models
    ]
    noise = {one.device: one.noise for one in report.scores if one.noise is not None}
    if noise:
        rows.append(make_row(["noise floor", *(format_error(noise.get(one)) for one in devices)]))
    note = "In brackets the median."
    return make_section("Mean error by device", make_table(["model", *devices], rows, note))


def make_paper() -> Html:
    """Give the paper's own results."""
    rows = [
        make_row([
            one.name, _published(one.linear), _published(one.learned),
            f"{one.sampling_cost * 100:g} %",
        ])
        for one in PUBLISHED
    ]  # fmt: skip
    return make_section(
        "The paper's own results",
        make_table(
            ["device (paper)", "linear (paper)", "learned (paper)", "sampling cost (paper)"],
            rows,
            "Published figures, for orientation: 70 kernels, one left out at a time, on other "
            "devices. For the GTX 680 the paper says about "
            "10 %. It gives the cost for all NVIDIA devices together, and for AMD.",
        ),
    )


def make_intervals(report: ValidationReport, chosen: str) -> Html:
    """Give coverage and width of every model's intervals on every device."""
    devices = report.devices
    rows = [
        make_row(
            [model, *(_interval(report.score(model, device)) for device in devices)],
            is_chosen=model == chosen,
        )
        for model in report.models
    ]
    note = (
        "Share of held-out rows inside their intervals, which are to hold "
        f"{report.coverage * 100:g} %; in brackets the median distance from the middle to an end."
    )
    return make_section("Coverage of intervals", make_table(["model", *devices], rows, note))


def make_ranking(report: ValidationReport, chosen: str) -> Html:
    """Give how well models tell which device is fastest."""
    if not report.rankings:
        return Html("")
    rows = [make_row(list_ranking(one), is_chosen=one.model == chosen) for one in report.rankings]
    note = (
        "Launches measured on several devices. Fastest named: share of those that differ in which "
        "the model names the fastest device. Regret: time on the device it "
        "names over that on the fastest, over all launches."
    )
    return make_section("Which device is fastest", make_table(RANKING_COLUMNS, rows, note))


def make_refused(refused: Mapping[str, str]) -> Html:
    """Say what could not be trained."""
    if not refused:
        return Html("")
    return make_section("What could not be trained", make_definitions([*refused.items()]))


def make_scores(content: DeviceContent, chosen: str) -> Html:
    """Give all models on one device."""
    rows = [make_row(list_score(one), is_chosen=one.model == chosen) for one in content.scores]
    noise = (
        f" Noise floor, the mean noise of the measured times: {format_error(content.noise)}."
        if content.noise is not None
        else ""
    )
    note = (
        "Errors |predicted - measured| / measured; each row is predicted by a fit that has not "
        "seen its group." + noise
    )
    return make_section("Models", make_table(SCORE_COLUMNS, rows, note))


def make_classes(classes: Sequence[ClassScore], model: str, split: str) -> Html:
    """Give the paper's Table 3, ours beside its own."""
    published = [one for one in PUBLISHED if one.classes]
    columns = ["error of\nlinear", f"{split}s", "linear", model, "gain"]
    for one in published:
        columns += [f"{one.name} (paper)\n{what}" for what in ("linear", "learned", "gain")]
    rows = []
    for place, ours in enumerate(classes):
        cells = [
            format_class(ours.low, ours.high), str(ours.groups), format_error(ours.linear_error),
            format_error(ours.error), _gain(ours.linear_error, ours.error),
        ]  # fmt: skip
        for one in published:
            linear, learned, gain = one.classes[place]
            cells += [format_error(linear), format_error(learned), f"{gain * 100:+.2f}"]
        rows.append(make_row(cells))
    note = (
        f"{split.capitalize()}s by the linear model's mean error, and the means over those of a "
        "class; gain in percentage points, positive where the learned model is better. The "
        "columns marked as the paper's are its Table 3: other kernels on other devices."
    )
    return make_section("Error classes (the paper's Table 3)", make_table(columns, rows, note))


def make_worst(groups: Frame, model: str, split: str) -> Html:
    """Give the groups on which a model errs most."""
    rows = [
        make_row([
            one["group"], str(one["rows"]),
            *(format_error(_known(one[name])) for name in ("error", "linear_error", "noise")),
            *(f"{one[name]} of {one['rows']}" for name in ("inside", "in_domain")),
        ])
        for one in groups.reset_index().to_dict("records")
    ]  # fmt: skip
    columns = [split, "rows", f"error of\n{model}", "error of\nlinear", "noise",
               "rows inside\ninterval", "rows in\ndomain"]  # fmt: skip
    return make_section(f"Where {model} errs most", make_table(columns, rows))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _mean(score: DeviceScore) -> str:
    if score.errors is None:
        return NOTHING
    return f"{format_error(score.errors.mean)} ({format_error(score.errors.median)})"


def _interval(score: DeviceScore) -> str:
    if score.coverage is None:
        return NOTHING
    return f"{format_share(score.coverage)} ({_width(score.half_width)})"


def _width(half_width: float | None) -> str:
    return NOTHING if half_width is None else f"\N{PLUS-MINUS SIGN}{format_share(half_width)}"


def _published(share: float | None) -> str:
    """Write a figure with no more digits than the paper has."""
    return format_error(share).replace(".00 %", " %")


def _gain(linear: float | None, learned: float | None) -> str:
    if linear is None or learned is None:
        return NOTHING
    return f"{(linear - learned) * 100:+.2f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedDevice:
    """What the paper says of one device."""

    name: str
    """The device."""
    linear: float
    learned: float | None
    """Mean errors as shares; None where there was no learned model."""
    sampling_cost: float
    """Mean sampling time over the kernels' time."""
    classes: tuple[tuple[float, float, float], ...] = ()
    """Of Table 3: mean errors of linear and learned model and the gain, as printed there, in the
    classes 0-5 %, 5-10 % and beyond; empty where the paper gives none."""


PUBLISHED = (
    PublishedDevice(
        name="GTX 280", linear=0.0719, learned=0.0642, sampling_cost=0.08,
        classes=(
            (0.0188, 0.0236, -0.0048), (0.0665, 0.0313, 0.0350), (0.2124, 0.1867, 0.0257),
        ),
    ),
    PublishedDevice(
        name="GTX 580", linear=0.0572, learned=0.0476, sampling_cost=0.08,
        classes=(
            (0.0203, 0.0213, -0.0010), (0.0759, 0.0657, 0.0101), (0.1846, 0.1341, 0.0506),
        ),
    ),
    PublishedDevice(name="GTX 680", linear=0.10, learned=None, sampling_cost=0.08),
    PublishedDevice(name="HD 6970", linear=0.0810, learned=0.0791, sampling_cost=0.15),
)  # fmt: skip
"""Every device of the paper; it gives the cost for NVIDIA (8 %) and AMD (15 %) as a whole."""
