"""``kernelcast validate``."""

import json
import math
import time
from dataclasses import asdict
from pathlib import Path

import click

from kernelcast.cli import options as option
from kernelcast.cli.terminal import ExitStatus, complain, present, progress_bar, show, wants_json
from kernelcast.cli.training_options import DATA, JOBS, ROW_FILTER
from kernelcast.records.errors import InputError
from kernelcast.training.settings import ValidationSettings


def parse_names(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Read ``a,b,c`` as names; nothing gives none."""
    if text is None:
        return ()
    names = tuple(one.strip() for one in text.split(","))
    if not all(names) or len(set(names)) < len(names):
        msg = f"{text!r}: give names with commas between them, each once, such as linear,hybrid"
        raise click.BadParameter(msg)
    return names


@option.command(
    short="Compare models on kernels, applications or devices they have not seen.",
    json="Print JSON instead of tables: what validation.json holds.",
)
def validate(
    sources: tuple[str, ...] = DATA,
    device_ids: tuple[str, ...] = option.device,
    settings: ValidationSettings = option.settings(
        split=option.given(
            "--split",
            "What is held out as a whole. Devices are predicted by models of all other devices.",
        ),
        models=option.given(
            "--models A,B,...",
            "Models to compare, with commas between them; a wrong name lists all.  [default: the "
            "hybrid and its rivals]",
            type=str, multiple=False, callback=parse_names,
        ),
        jobs=JOBS,
        scheduler=option.given(
            "--scheduler ADDRESS",
            "Validate on a Dask cluster, such as tcp://host:8786; needs kernelcast[cluster].",
        ),
        coverage=option.given(
            "--coverage SHARE", "Share of true times that intervals shall hold.",
            type=click.FloatRange(min=0, max=1, min_open=True, max_open=True),
        ),
        rows=ROW_FILTER,
    ),
    folder: Path | None = option.given(
        "--out FOLDER",
        "Write validation.json, sampling_points.json and a page, validation.html, into FOLDER.",
        type=option.FOLDER,
    ),
) -> ExitStatus:  # fmt: skip
    """Hold kernels, applications or devices out and predict them by models that have not seen them.

    Settings and intervals of each model are chosen within the rows that it learns from. Per
    device: errors of each model beside the noise of the measurements, coverage and width of
    intervals, what becomes of kernels that the linear model predicts well or badly, and the worst
    kernels of the model named last.

    Exit status: 0 when every device is judged, 1 when one has too few rows, 2 for bad input, 130
    after Ctrl-C.
    """
    # scikit-learn takes longer to import than all other commands do.
    from kernelcast.models.validation.report import report_to_json
    from kernelcast.records.private_files import make_folder, writing
    from kernelcast.reports.drawing import require_matplotlib
    from kernelcast.reports.presenter import save_page
    from kernelcast.reports.validation import present_validation
    from kernelcast.training.runs import record_run
    from kernelcast.training.table import load_training_table, read_observations
    from kernelcast.training.training import score_sampling_points, validate_models

    if folder is not None:
        require_matplotlib("--out")  # both told before anything runs for minutes
        make_folder(folder)
    started_s = time.time()
    table = load_training_table(sources, devices=device_ids, tell=complain)
    with progress_bar() as tell:
        report = validate_models(table, settings, lambda done, total: tell(done, total, "fits"))
    asked = {
        "data_digest": table.digest, "rows": len(table), "split": settings.split.value,
        "coverage": settings.coverage, **asdict(settings.rows),
    }  # fmt: skip
    try:
        record_run("validate", ",".join(report.models), asked, [report], started_s=started_s)
    except InputError as error:  # the report is there
        complain(str(error))
    is_shown = folder is not None or not wants_json()
    observations = read_observations(sources, devices=device_ids)
    points = score_sampling_points(observations, settings.rows) if is_shown else None
    content = report_to_json(report)
    present(json.loads(content))
    if not wants_json():
        show(*present_validation(report, points, is_brief=True))
    for what, why in report.refused.items():
        complain(f"{what}: {why}")
    if folder is not None and points is not None:
        plain = json.dumps(points.to_dict("records"), indent=1)
        with writing(folder):
            (folder / "validation.json").write_text(content, encoding="utf-8")
            (folder / "sampling_points.json").write_text(plain, encoding="utf-8")
        pairs = zip(table.keys.tolist(), table.noise.tolist(), strict=True)
        noise = {key: value for key, value in pairs if math.isfinite(value)}
        save_page(
            folder / "validation.html",
            f"Validation: leave one {report.split} out",
            *present_validation(report, points, noise=noise),
        )
        show(f"written to {folder}")
    is_whole = {*map(str, table.devices)} == {*report.devices}
    return ExitStatus.ANSWERED if is_whole else ExitStatus.FAILED
