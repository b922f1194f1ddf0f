"""The page that ``kernelcast validate`` writes: one file, no network."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelcast.cli.validate.page import tables
from kernelcast.cli.validate.page.content import DeviceContent, choose_model, gather
from kernelcast.cli.validate.page.figures import draw_bars, draw_predictions, draw_sampling_points
from kernelcast.models.validation.report import ValidationReport
from kernelcast.records.sampling_points import SamplingPointScore
from kernelcast.reports.html import Html, make_article, make_figure, make_section, save_document

_DIGEST_LETTERS = 12


def write_validation_page(
    report: ValidationReport,
    points: Sequence[SamplingPointScore],
    path: Path,
    *,
    noise: Mapping[str, float] | None = None,
) -> None:
    """Write tables and pictures of a validation to an HTML file.

    Parameters
    ----------
    report : ValidationReport
        A validation.
    points : sequence of SamplingPointScore
        The linear model over sampling points, for the devices of which it is known.
    path : Path
        The file.
    noise : mapping of str to float, optional
        Noise of measured times by the rows' keys, shown beside the worst groups.
    """
    chosen = choose_model(report)
    devices = gather(report, chosen, noise or {})
    parts = [
        _make_overview(report, chosen),
        *(_make_device(one, points, report.split) for one in devices),
    ]
    save_document(path, f"Validation: leave one {report.split} out", Html("\n".join(parts)))


def _make_overview(report: ValidationReport, chosen: str) -> Html:
    rows = report.rows
    about = [
        f"{len(rows.keys)} rows of {len(set(rows.kernels))} kernels",
        f"{len(set(rows.groups))} {report.split}s held out, one at a time",
        f"features {report.schema_id}",
        f"data {report.data_digest[:_DIGEST_LETTERS]}",
        ", ".join(f"{name} {version}" for name, version in report.versions.items()),
    ]
    return make_article(
        f"Leave one {report.split} out",
        about,
        tables.make_summary(report, chosen),
        tables.make_intervals(report, chosen),
        tables.make_ranking(report, chosen),
        tables.make_refused(report.refused),
        tables.make_paper(),
    )


def _make_device(content: DeviceContent, points: Sequence[SamplingPointScore], split: str) -> Html:
    model = content.chosen.model
    mine = [one for one in points if one.device == content.device]
    return make_article(
        content.device,
        [f"{len(content.rows)} rows of {len(content.chosen.groups)} {split}s"],
        tables.make_scores(content, model),
        tables.make_classes(content.chosen.classes, model, split),
        *_make_pictures(content, model, split),
        _make_points(mine),
        tables.make_worst(content.worst, model, split) if len(content.worst) else Html(""),
    )


def _make_pictures(content: DeviceContent, model: str, split: str) -> list[Html]:
    found = []
    if content.bars:
        found.append(
            make_section(
                f"Error by {split}, linear and {model} (as the paper's Fig. 11, 12 and 14)",
                make_figure(
                    draw_bars(content.bars, model, content.noise),
                    f"Mean error of each {split} that was held out, sorted by the linear model's. "
                    "Bars that leave the picture have their value beside them.",
                ),
            )
        )
    if len(content.rows):
        found.append(
            make_section(
                f"Predicted over measured, {model}",
                make_figure(
                    draw_predictions(content.rows),
                    "Every row with its interval, which should hold the middle line.",
                ),
            )
        )
    return found


def _make_points(points: Sequence[SamplingPointScore]) -> Html:
    if not points:
        return Html("")
    return make_section(
        "Error and cost over sampling points (as the paper's Fig. 15)",
        make_figure(
            draw_sampling_points(points),
            "The linear model, sampled at two multiples of the work-groups that the device runs "
            "at once; dashed, the samples that an estimate takes by default. Cost is the samples' "
            f"device time over the whole launch's. {max(one.rows for one in points)} predictions.",
        ),
    )
