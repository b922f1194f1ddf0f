"""``kernelcast validate``."""

import json
import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from kernelcast.cli import options as option
from kernelcast.cli.terminal import ExitStatus, complain, progress_bar, show, show_json, show_line
from kernelcast.cli.training_options import (
    DATA,
    JOBS,
    LEAST_WORK_GROUPS,
    ROWS_DEVICE,
    SHORTEST,
)
from kernelcast.records.errors import InputError
from kernelcast.training.settings import RowFilter, Split, ValidationSettings

_DEFAULTS = ValidationSettings()
REPORT_FILE = "validation.json"
POINTS_FILE = "sampling_points.json"
PAGE_FILE = "validation.html"


def parse_names(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Read ``a,b,c`` as names; nothing gives none."""
    if text is None:
        return ()
    names = tuple(one.strip() for one in text.split(","))
    if not all(names) or len(set(names)) < len(names):
        msg = f"{text!r}: give names with commas between them, each once, such as linear,hybrid"
        raise click.BadParameter(msg)
    return names


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateOptions:
    """The options of ``kernelcast validate``."""

    sources: tuple[str, ...] = DATA
    device_ids: tuple[str, ...] = ROWS_DEVICE
    split: Split = option.given(
        "--split",
        "What is held out as a whole. Devices are predicted by models of all other devices.",
        default=_DEFAULTS.split.value,
    )
    models: tuple[str, ...] = option.given(
        "--models A,B,...",
        "Models to compare, with commas between them; a wrong name lists all.  [default: the "
        "hybrid and its rivals]",
        multiple=False, callback=parse_names,
    )  # fmt: skip
    jobs: int | None = JOBS
    scheduler: str | None = option.given(
        "--scheduler ADDRESS",
        "Validate on a Dask cluster, such as tcp://host:8786; needs kernelcast[cluster].",
    )
    coverage: float = option.given(
        "--coverage SHARE", "Share of true times that intervals shall hold.",
        type=click.FloatRange(min=0, max=1, min_open=True, max_open=True),
        default=_DEFAULTS.coverage,
    )  # fmt: skip
    shortest_s: float = SHORTEST
    least_work_groups: int = LEAST_WORK_GROUPS
    folder: Path | None = option.given(
        "--out FOLDER",
        "Write validation.json, sampling_points.json and a page, validation.html, into FOLDER.",
        type=option.FOLDER,
    )
    as_json: bool = option.given(
        "--json", "Print JSON instead of tables: what validation.json holds."
    )


@option.command(
    short="Compare models on kernels, applications or devices they have not seen.",
)
def validate(options: ValidateOptions) -> ExitStatus:
    """Hold kernels, applications or devices out and predict them by models that have not seen them.

    Settings, gates and intervals of each model are chosen inside the rows that it learns from:
    what is held out has no part in them. Per device: errors of each model beside the noise of the
    measurements, coverage and width of intervals, what becomes of kernels that the linear model
    predicts well or badly, and the worst kernels of the model named last.

    Exit status: 0 when every device is judged, 1 when one has too few rows, 2 for bad input, 130
    after Ctrl-C.
    """
    # scikit-learn takes longer to import than all other commands do.
    from kernelcast.models.validation.report import report_to_json
    from kernelcast.records.plain import CONVERTER
    from kernelcast.records.private_files import writing
    from kernelcast.reports.drawing import require_matplotlib
    from kernelcast.reports.presenter import save_page
    from kernelcast.reports.targets import make_folder
    from kernelcast.reports.validation import present_validation
    from kernelcast.training.reading import read_observations
    from kernelcast.training.runs import record_run
    from kernelcast.training.sampling_points import score_sampling_points
    from kernelcast.training.table import load_training_table
    from kernelcast.training.training import validate_models

    if options.folder is not None:
        require_matplotlib("--out")  # both told before anything runs for minutes
        make_folder(options.folder)
    settings = option.pick(
        ValidationSettings,
        options,
        split=Split(options.split),
        jobs=options.jobs or -1,
        rows=option.pick(RowFilter, options),
    )
    started_s = time.time()
    table = load_training_table(options.sources, devices=options.device_ids, tell=complain)
    with progress_bar(is_wanted=not options.as_json) as tell:
        report = validate_models(table, settings, lambda done, total: tell(done, total, "fits"))
    asked = {
        "data_digest": table.digest, "rows": len(table), "split": settings.split.value,
        "coverage": settings.coverage, **asdict(settings.rows),
    }  # fmt: skip
    try:
        record_run("validate", ",".join(report.models), asked, [report], started_s=started_s)
    except InputError as error:  # the report is there
        complain(str(error))
    is_shown = options.folder is not None or not options.as_json
    observations = read_observations(options.sources, devices=options.device_ids)
    points = score_sampling_points(observations, settings.rows) if is_shown else ()
    content = report_to_json(report)
    if options.as_json:
        show_json(json.loads(content))
    else:
        show(*present_validation(report, points, is_brief=True))
    for what, why in report.refused.items():
        complain(f"{what}: {why}")
    if options.folder is not None:
        plain = json.dumps(CONVERTER.unstructure(points), indent=1)
        with writing(options.folder):
            (options.folder / REPORT_FILE).write_text(content, encoding="utf-8")
            (options.folder / POINTS_FILE).write_text(plain, encoding="utf-8")
        pairs = zip(table.keys.tolist(), table.noise.tolist(), strict=True)
        noise = {key: value for key, value in pairs if math.isfinite(value)}
        save_page(
            options.folder / PAGE_FILE,
            f"Validation: leave one {report.split} out",
            *present_validation(report, points, noise=noise),
        )
        if not options.as_json:
            show_line(f"written to {options.folder}")
    is_whole = {*map(str, table.devices)} == {*report.devices}
    return ExitStatus.ANSWERED if is_whole else ExitStatus.FAILED
