"""The page of ``kernelcast compare --out``."""

from collections.abc import Sequence
from pathlib import Path

from kernelcast.cli.compare.text import (
    list_classes,
    list_errors,
    tell_difference,
    tell_explanation,
    tell_noise,
    tell_wins,
)
from kernelcast.models.validation.comparison import (
    ComparedKernel,
    Comparison,
    DeviceComparison,
)
from kernelcast.reports.drawing import COLOURS, INK, WIDTH_INCHES, shorten_names
from kernelcast.reports.html import (
    Html,
    figure_style,
    figure_to_svg,
    make_article,
    make_definitions,
    make_figure,
    make_note,
    make_row,
    make_section,
    make_table,
    save_document,
)
from kernelcast.reports.numbers import format_error

_GREY = "#8a929c"
_BARS_ACROSS = 60
_PANEL_HEIGHT = 3.2
_SMALL = 6.5
_MOST_WON = 10


def save_comparison_page(path: Path, comparison: Comparison) -> None:
    """Write a comparison to an HTML file."""
    parts = [_make_device(comparison, one) for one in comparison.devices]
    if comparison.refused:
        entries = [*comparison.refused.items()]
        parts.append(make_section("What could not be trained", make_definitions(entries)))
    title = f"{comparison.first} and {comparison.second} compared"
    save_document(path, title, Html("\n".join(parts)))


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
        make_row([name, *list_errors(one)])
        for name, one in zip(names, (device.first_errors, device.second_errors), strict=True)
    ]
    classes = [make_row(cells) for cells in list_classes(device)]
    return make_article(
        device.device,
        about,
        make_section(
            "Errors",
            make_table(["model", "mean", "median", "90th percentile", "worst"], errors),
            make_definitions(_list_facts(comparison, device)),
        ),
        make_section(
            "Error classes (the paper's Table 3)",
            make_table(["error of linear", f"{comparison.split}s", *names], classes),
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
        f"Mean error of {comparison.second} less that of {comparison.first} for each kernel, in "
        f"percentage points: below zero {comparison.second} is better. Grey: they differ by no "
        "more than the noise of the kernel's measured times. Beyond one point the scale is "
        "logarithmic."
    )
    return make_section(
        "Differences by kernel", make_figure(draw_differences(comparison, device), caption)
    )


def draw_differences(comparison: Comparison, device: DeviceComparison) -> Html:
    """Draw the difference of errors of each kernel, sorted, coloured by the winner."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    colours = {comparison.first: COLOURS[1], comparison.second: COLOURS[0], None: _GREY}
    short = shorten_names(one.kernel for one in device.kernels)
    panels = -(-len(device.kernels) // _BARS_ACROSS)
    across = -(-len(device.kernels) // panels)
    with figure_style():
        figure = Figure(figsize=(WIDTH_INCHES, _PANEL_HEIGHT * panels), layout="constrained")
        every = figure.subplots(panels, 1, squeeze=False)[:, 0]
        for place, axes in enumerate(every):
            shown = device.kernels[place * across : (place + 1) * across]
            axes.bar(
                range(len(shown)), _in_points(shown), 0.8,
                color=[colours[one.winner] for one in shown],
            )  # fmt: skip
            axes.axhline(0, color=INK, linewidth=0.7)
            axes.set_yscale("symlog", linthresh=1.0)
            axes.set_ylim(*_find_limits(device.kernels))
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:+g}" if value else "0")
            axes.set_xticks(
                range(len(shown)), [short[one.kernel] for one in shown], rotation=90,
                fontsize=_SMALL,
            )  # fmt: skip
            axes.set_xlim(-0.7, across - 0.3)
            axes.set_ylabel("difference (points)")
            axes.grid(visible=True, axis="y", color=INK, alpha=0.15, linewidth=0.5)
            axes.set_axisbelow(True)
        handles = [
            Patch(color=colour, label=f"{name} better" if name else "within noise")
            for name, colour in colours.items()
        ]
        every[0].legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
        return figure_to_svg(figure)


def _in_points(kernels: Sequence[ComparedKernel]) -> list[float]:
    return [one.difference * 100 for one in kernels]


def _find_limits(kernels: Sequence[ComparedKernel]) -> tuple[float, float]:
    values = _in_points(kernels)
    return 1.2 * min(*values, -1.0), 1.2 * max(*values, 1.0)


def _make_wins(comparison: Comparison, device: DeviceComparison, model: str) -> Html:
    won = device.list_wins(model, _MOST_WON)
    if not won:
        return Html("")
    rows = [
        make_row([
            one.kernel, str(one.rows), format_error(one.first_error),
            format_error(one.second_error), format_error(one.noise),
        ])
        for one in won
    ]  # fmt: skip
    columns = ["kernel", "rows", comparison.first, comparison.second, "noise"]
    return make_section(f"Where {model} is most ahead", make_table(columns, rows))


def _make_reasons(comparison: Comparison, device: DeviceComparison) -> Html:
    explained = [one for one in comparison.explained if one.device == device.device]
    if not explained:
        return Html("")
    entries = []
    for one in explained:
        first, *rest = tell_explanation(one)
        entries.append((first, "\n".join(rest)))
    return make_section(
        f"Where {explained[0].attribution.model} errs most, and why",
        make_definitions(entries),
        make_note(
            "Each is told by a fit that has not seen the kernel. The groups' points are Shapley "
            "values and add up to the correction less that at the training's medians; single "
            "columns are replaced by their medians one at a time, and do not add up."
        ),
    )
