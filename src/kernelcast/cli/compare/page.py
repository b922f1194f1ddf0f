"""The page of ``kernelcast compare --out``."""

from pathlib import Path

from kernelcast.cli.compare.text import (
    list_classes,
    tell_difference,
    tell_explanation,
    tell_noise,
    tell_wins,
)
from kernelcast.cli.train.tables import list_errors
from kernelcast.models.validation.comparison import (
    Comparison,
    DeviceComparison,
)
from kernelcast.reports import html
from kernelcast.reports.error_charts import chart_errors
from kernelcast.reports.html import Html
from kernelcast.reports.numbers import format_error

_MOST_WON = 10
_PICTURE_INCHES = 4.6


def save_comparison_page(path: Path, comparison: Comparison) -> None:
    """Write a comparison to an HTML file."""
    parts = [_make_device(comparison, one) for one in comparison.devices]
    if comparison.refused:
        entries = [*comparison.refused.items()]
        parts.append(html.make_section("What could not be trained", html.make_definitions(entries)))
    title = f"{comparison.first} and {comparison.second} compared"
    html.save_document(path, title, Html("\n".join(parts)))


def _make_device(comparison: Comparison, device: DeviceComparison) -> Html:
    names = (comparison.first, comparison.second)
    about = [
        f"{comparison.first} and {comparison.second}",
        f"leave one {comparison.split} out",
        f"{device.rows} rows of {len(device.kernels)} kernels",
        f"{device.unpaired} rows left out that one of them did not answer"
        if device.unpaired
        else "",
    ]
    errors = [
        html.make_row([name, *list_errors(one)])
        for name, one in zip(names, (device.first_errors, device.second_errors), strict=True)
    ]
    classes = [html.make_row(cells) for cells in list_classes(device)]
    return html.make_article(
        device.device,
        about,
        html.make_section(
            "Errors",
            html.make_table(["model", "mean", "median", "90th percentile", "worst"], errors),
            html.make_definitions(_list_facts(comparison, device)),
        ),
        html.make_section(
            "Error classes (the paper's Table 3)",
            html.make_table(["error of linear", f"{comparison.split}s", *names], classes),
        ),
        _make_picture(comparison, device),
        *(_make_wins(comparison, device, name) for name in names),
        _make_reasons(comparison, device),
    )


def _list_facts(comparison: Comparison, device: DeviceComparison) -> list[tuple[str, str]]:
    """Give what is printed in lines as names and what is said of them."""
    lines = (
        tell_difference(comparison, device),
        tell_noise(device),
        tell_wins(comparison, device),
    )
    parts = (one.partition(": ") for one in lines)
    return [(name, text) for name, _, text in parts if text]


def _make_picture(comparison: Comparison, device: DeviceComparison) -> Html:
    if not device.kernels:
        return Html("")
    caption = (
        "Mean error of both models on each kernel: below the middle line "
        f"{comparison.second} is better. Within noise: they differ by no more than the kernel's "
        "measured times vary."
    )
    chart = chart_errors(comparison.first, comparison.second, device.kernels)
    return html.make_section(
        "Errors by kernel", html.make_figure(html.chart_svg(_PICTURE_INCHES, chart), caption)
    )


def _make_wins(comparison: Comparison, device: DeviceComparison, model: str) -> Html:
    won = device.list_wins(model, _MOST_WON)
    if not won:
        return Html("")
    rows = [
        html.make_row([
            one.kernel, str(one.rows), format_error(one.first_error),
            format_error(one.second_error), format_error(one.noise),
        ])
        for one in won
    ]  # fmt: skip
    columns = ["kernel", "rows", comparison.first, comparison.second, "noise"]
    return html.make_section(f"Where {model} is most ahead", html.make_table(columns, rows))


def _make_reasons(comparison: Comparison, device: DeviceComparison) -> Html:
    explained = [one for one in comparison.explained if one.device == device.device]
    if not explained:
        return Html("")
    entries = []
    for one in explained:
        first, *rest = tell_explanation(one)
        entries.append((first, "\n".join(rest)))
    return html.make_section(
        f"Where {explained[0].attribution.model} errs most, and why",
        html.make_definitions(entries),
        html.make_note(
            "Each is told by a fit that has not seen the kernel. The groups' points are Shapley "
            "values and add up to the correction less that at the training's medians; single "
            "columns are replaced by their medians one at a time, and do not add up."
        ),
    )
