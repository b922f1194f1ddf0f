"""Runs ``kernelcast validate``."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelcast.cli.progress_bar import progress_bar
from kernelcast.cli.terminal import ExitStatus, complain, show, show_json, show_line
from kernelcast.cli.train import tables
from kernelcast.models.validation import ValidationReport, report_to_json
from kernelcast.records.sampling_points import SamplingPointScore
from kernelcast.records.training_table import TrainingTable
from kernelcast.reports.drawing import require_matplotlib
from kernelcast.reports.targets import make_folder, writing
from kernelcast.training.reading import read_observations
from kernelcast.training.sampling_points import score_sampling_points
from kernelcast.training.settings import ValidationSettings
from kernelcast.training.table import load_training_table
from kernelcast.training.validating import validate_models

REPORT_FILE = "validation.json"
POINTS_FILE = "sampling_points.json"
PAGE_FILE = "validation.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateRequest:
    """The command line of ``kernelcast validate``; fields are its options."""

    sources: tuple[str, ...]
    device_ids: tuple[str, ...]
    settings: ValidationSettings
    folder: Path | None
    as_json: bool


def run_validation(request: ValidateRequest) -> ExitStatus:
    """Validate, show what was found, and give the exit status."""
    if request.folder is not None:
        require_matplotlib("--out")  # both told before anything runs for minutes
        make_folder(request.folder)
    table = load_training_table(request.sources, devices=request.device_ids, tell=complain)
    with progress_bar(is_wanted=not request.as_json) as tell:
        report = validate_models(
            table, request.settings, lambda done, total: tell(done, total, "fits")
        )
    points: tuple[SamplingPointScore, ...] = ()
    if request.folder is not None or not request.as_json:
        observations = read_observations(request.sources, devices=request.device_ids)
        points = score_sampling_points(observations, request.settings.rows)
    if request.as_json:
        show_json(json.loads(report_to_json(report)))
    else:
        _present(report, points)
    for what, why in report.refused.items():
        complain(f"{what}: {why}")
    if request.folder is not None:
        _write(request.folder, table, report, points)
        if not request.as_json:
            show_line(f"written to {request.folder}")
    is_whole = {*map(str, table.devices)} == {*report.devices}
    return ExitStatus.ANSWERED if is_whole else ExitStatus.FAILED


def _present(report: ValidationReport, points: Sequence[SamplingPointScore]) -> None:
    rows = report.rows
    show_line(
        f"{len(rows.keys)} launches of {len(set(rows.kernels))} kernels; held out: one "
        f"{report.split} at a time; intervals shall hold {report.coverage * 100:g} %"
    )
    last = rows.models[-1].model
    for device in report.devices:
        show_line(f"\n{device}")
        show(tables.make_score_table(report, device))
        show_line(f"by class of the linear model's error: its own -> the model's (number of "
                  f"{report.split}s)")  # fmt: skip
        show(tables.make_class_table(report, device))
        show_line(f"worst of {last}")
        show(tables.make_worst_table(report.score(last, device), report.split))
    if report.rankings:
        show_line("\nwhich device is fastest")
        show(tables.make_ranking_table(report.rankings))
    if points:
        show_line("\nlinear model over sampling points")
        show(tables.make_point_table(points))


def _write(
    folder: Path,
    table: TrainingTable,
    report: ValidationReport,
    points: Sequence[SamplingPointScore],
) -> None:
    """Write files of a validation."""
    # Figures need a library that only the page needs.
    from kernelcast.cli.validate.page.page import write_validation_page

    plain = json.dumps([tables.point_to_json(one) for one in points], indent=1)
    with writing(folder):
        (folder / REPORT_FILE).write_text(report_to_json(report), encoding="utf-8")
        (folder / POINTS_FILE).write_text(plain, encoding="utf-8")
    pairs = zip(table.keys.tolist(), table.noise.tolist(), strict=True)
    noise = {key: value for key, value in pairs if math.isfinite(value)}
    write_validation_page(report, points, folder / PAGE_FILE, noise=noise)
