"""``kernelcast train``, ``validate`` and ``compare``, and options of theirs that others share."""

import json
import math
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelcast.cli import options as option
from kernelcast.cli.terminal import (
    Collected,
    ExitStatus,
    complain,
    present,
    progress_bar,
    show,
    wants_json,
)
from kernelcast.launches.data_folder import STORE_VARIABLE
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.training.registry import MODELS_VARIABLE
from kernelcast.training.settings import (
    DEFAULT_MODEL,
    POOLED_MODEL,
    STATIC_MODEL,
    Split,
    TrainingSettings,
    ValidationSettings,
)

if TYPE_CHECKING:  # scikit-learn takes longer to import than all other commands do
    from kernelcast.models.validation.report import StoredModel
    from kernelcast.reports.presenter import Table

DATA: Any = option.given(
    "--data --rows PATH",
    "Observations: a store (file or URL), a Parquet file or a folder of them, a table of your own "
    "(CSV or Parquet), a tuner's results (T4), or `shipped`; may be repeated.  [default: "
    "KERNELCAST_STORE, or observations.sqlite in the data folder]",
)
JOBS: Any = option.given(
    "--jobs N", "Processes that work side by side.  [default: one per processor]",
    type=click.IntRange(min=1), default=None, callback=lambda _, __, jobs: jobs or -1,
)  # fmt: skip
REGISTRY: Any = option.given(
    "--registry URL",
    "Where models are kept: a folder or any URL that fsspec knows.  "
    f"[default: {MODELS_VARIABLE}, or models in the data folder]",
)
ROW_FILTER: Any = option.settings(
    shortest_s=option.given(
        "--shortest SECONDS", "Leave out launches that took less time.",
        type=click.FloatRange(min=0),
    ),
    least_work_groups=option.given(
        "--least-work-groups N", "Leave out launches of fewer work-groups.",
        type=click.IntRange(min=0),
    ),
)  # fmt: skip
STORE: Any = option.given(
    "--store URL",
    "The store: a SQLite file, or postgresql://user@host/database.  "
    f"[default: {STORE_VARIABLE}, or observations.sqlite in the data folder]",
    envvar=STORE_VARIABLE,
)


@option.command(short="Train models on collected observations.")
def train(
    sources: tuple[str, ...] = DATA,
    name: str = option.given(
        "--model NAME", "The model; a wrong name lists all.", default=DEFAULT_MODEL
    ),
    device_ids: tuple[str, ...] = option.device,
    is_pooled: bool = option.given(
        "--pooled",
        "One model of all devices on dimensionless features (hybrid_pooled), also for devices "
        "that are only calibrated.",
    ),
    out: Path | None = option.given(
        "--out FILE.json", "Write the model into one file instead of the registry.",
        type=click.Path(path_type=Path, dir_okay=False),
    ),
    registry_url: str | None = REGISTRY,
    settings: TrainingSettings = option.settings(
        with_validation=option.given(
            "--no-validation", "Do not validate: the file then does not say how good the model is."
        ),
        jobs=JOBS,
    ),
    lists: bool = option.given(
        "--list", "List earlier trainings and validations instead; `compare` takes two of them."
    ),
) -> ExitStatus:  # fmt: skip
    """Train a model for each device, or one for all, on collected observations.

    Each model is validated by leaving out one kernel after the other (a pooled one: devices); the
    report is kept in its file. Models go into a registry, where estimates find the newest; older
    versions stay. A model that is ready stays after Ctrl-C.

    Exit status: 0 when all models are trained, 1 when one could not be, 2 for bad input, 130
    after Ctrl-C.
    """
    if lists:
        return _list_runs()
    option.refuse({
        "--out and --registry: give one of them, the file or the registry":
            out is not None and registry_url is not None,
        f"--pooled trains {POOLED_MODEL}; leave --model {name} out, or --pooled":
            is_pooled and name not in {DEFAULT_MODEL, POOLED_MODEL},
    })  # fmt: skip
    name, started_s = POOLED_MODEL if is_pooled else name, time.time()
    from kernelcast.models.evidence.model import model_to_json
    from kernelcast.models.time_models import make_model
    from kernelcast.models.validation.report import summarise_report, write_model
    from kernelcast.models.versioned_files import write_bytes
    from kernelcast.records.observation import Observation
    from kernelcast.training import table as tables
    from kernelcast.training import training
    from kernelcast.training.evidence import calibrate_evidence
    from kernelcast.training.registry import open_registry
    from kernelcast.training.runs import record_run

    seen: list[Observation] = []
    table = tables.load_training_table(sources, devices=device_ids, tell=complain, seen=seen)
    if name == DEFAULT_MODEL and not any(map(math.isfinite, table.linear_s)):
        name = STATIC_MODEL
        complain(f"no row has samples: the model {name} is trained, which needs none")
    registry = open_registry(registry_url) if out is None else None
    count = 1 if make_model(name).is_pooled else len({*table.devices})
    if registry is None and count > 1:
        raise InputError(
            f"--out takes one model, the data are of {count} devices; choose one by --device, "
            "give --pooled, or leave --out out: a registry holds one model per device"
        )
    kept = Collected[tuple["StoredModel", str]](when_interrupted="models that were ready are kept")

    def keep(one: "StoredModel") -> None:
        if registry is not None:
            place = f"{registry.url}/{one.name} as {registry.publish(one.name, write_model(one))}"
        elif out is not None:
            write_bytes(str(out), write_model(one).encode())
            place = str(out)
        kept.answers.append((one, place))

    with kept.until_interrupted(), progress_bar() as tell:
        _, refused, left_out = training.train(
            table, name, settings, keep=keep,
            report=lambda done, total: tell(done, total, "fits"),
        )  # fmt: skip
        kept.failures += [(one, KernelcastError(why)) for one, why in refused.items()]
        for one, why in left_out.items():
            complain(f"{one}: {why}")
    calibrated: list[dict[str, Any]] = []
    if registry is not None and not kept.is_interrupted:
        calibrated = [
            {
                "name": one,
                "place": f"{registry.url}/{one} as {registry.publish(one, model_to_json(model))}",
                "devices": devices, "rows": model.facts["rows"], "calibrated": dict(model.facts),
            }
            for one, model, devices in calibrate_evidence(seen, tables.machines_beside(sources))
        ]  # fmt: skip
    models = [model for model, _ in kept.answers]
    reports = [one.report for one in models if one.report is not None]
    asked = {"data_digest": table.digest, "rows": len(table), "model": name, **asdict(settings)}
    try:
        record_run("train", name, asked, reports, started_s=started_s)
    except InputError as error:  # the models are there
        complain(str(error))
    content: list[dict[str, Any]] = [
        {
            "name": one.name, "model": one.model.name, "place": place,
            **{key: one.model.facts[key] for key in ("devices", "kernels", "rows", "data_digest")},
            "schema": one.model.schema.id,
            "validation": None if one.report is None else summarise_report(one.report),
        }
        for one, place in kept.answers
    ]  # fmt: skip
    content += [{"name": one, "error_message": str(why)} for one, why in kept.failures]
    present(
        [*content, *calibrated],
        *([_tabulate(models)] if models else ()),
        *(f"{model.name}: written to {place}" for model, place in kept.answers),
        *(
            f"{one['name']}: calibrated with {one['rows']:,} launches of "
            f"{one['calibrated']['kernels']} kernels, written to {one['place']}"
            for one in calibrated
        ),
    )
    return kept.conclude()


def _list_runs() -> ExitStatus:
    from kernelcast.records.plain import to_plain
    from kernelcast.reports.presenter import Table
    from kernelcast.training.runs import list_runs

    runs = list_runs()
    table = Table.of(runs, {
        "run": ("text", lambda one: one.id[:8]), "what": ("text", "kind"),
        "models": ("text", "name"), "rows": ("text", lambda one: one.settings.get("rows", "")),
        "began": ("text", lambda one: (
            datetime.fromtimestamp(one.started_s, UTC).isoformat(" ", "minutes")
        )),
    })  # fmt: skip
    nothing = "no runs yet; `kernelcast train` and `kernelcast validate` record theirs"
    content = [to_plain(one) for one in runs]
    present(content, table if runs else nothing)
    return ExitStatus.ANSWERED


def _tabulate(models: "list[StoredModel]") -> "Table":
    from kernelcast.reports.presenter import Table

    rows: list[dict[str, Any]] = []
    for one in models:
        scores = {} if one.report is None else {found.device: found for found in one.report.scores}
        rows += [
            {"model": one.name, "device": device, "facts": one.model.facts,
             "score": scores.get(device)}
            for device in one.model.facts["devices"]
        ]  # fmt: skip
    return Table.of(rows, {
        "model": "text", "device": "text", "rows": ("whole", "facts.rows"),
        "kernels": ("whole", lambda row: len(row["facts"]["kernels"])),
        "mean\nerror": ("error", "score.errors.mean"), "median": ("error", "score.errors.median"),
        "90th\npercentile": ("share", "score.errors.p90"), "covered": ("share", "score.coverage"),
        "half\nwidth": ("share", "score.half_width"),
    })  # fmt: skip


def _read_names(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...]:
    names = () if text is None else tuple(one.strip() for one in text.split(","))
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
            type=str, multiple=False, callback=_read_names,
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
    present(json.loads(content), *present_validation(report, points, is_brief=True))
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


@option.command(
    short="Compare methods on kernels they have not seen: which is nearer, and when.",
    json="Print JSON instead of tables: what comparison.json holds.",
)
def compare(
    methods: tuple[str, ...] = option.argument("A B [C...]"),
    sources: tuple[str, ...] = DATA,
    device_ids: tuple[str, ...] = option.device,
    settings: ValidationSettings = option.settings(
        split=option.given(
            "--split",
            "What is held out as a whole; a family is a kernel's application, or else the kernel.",
            type=click.Choice([one.value for one in Split if one is not Split.DEVICE]),
            default=Split.FAMILY,
        ),
        folds=option.given(
            "--folds N",
            "Hold out in so many parts; 0 holds out one group after the other.",
            type=click.IntRange(min=0), default=10, callback=lambda _, __, folds: folds or None,
        ),
        jobs=JOBS,
        rows=ROW_FILTER,
    ),
    resamples: int = option.given(
        "--resamples N",
        "Bootstrap samples for the interval of the difference, in JSON.",
        type=click.IntRange(min=100), default=10_000,
    ),
    folder: Path | None = option.given(
        "--out FOLDER", "Write comparison.json and a page, comparison.html, into FOLDER.",
        type=option.FOLDER,
    ),
) -> ExitStatus:  # fmt: skip
    """Predict the same launches by several methods that have not seen them, and compare.

    Methods are analytic, learned, linear, history and others; a wrong name lists all. For each
    pair, by families of kernels: which is nearer by more than the noise of the measured times, by
    which factor, how sure that is, and for which launches.

    Of two runs that `kernelcast train --list` names: what differs in rows, settings and
    libraries, and all scores side by side.

    Where there is no store, rows are those that come with the package.

    Exit status: 0 when all methods are judged on every device, 1 when not, 2 for bad input, 130
    after Ctrl-C.
    """
    from kernelcast.reports.presenter import Table, save_page
    from kernelcast.training.runs import compare_runs, find_run, is_run

    if len(methods) == 2 and all(map(is_run, methods)):
        first, second = methods
        rows = compare_runs(find_run(first), find_run(second))
        content = [{"what": what, first: one, second: other} for what, one, other in rows]
        present(content, Table(columns=dict.fromkeys(("what", *methods), "text"), rows=rows))
        return ExitStatus.ANSWERED
    from kernelcast.records.private_files import make_folder, writing
    from kernelcast.reports.comparison import present_comparison
    from kernelcast.reports.drawing import require_matplotlib
    from kernelcast.training.comparing import check_methods, compare_table
    from kernelcast.training.table import choose_sources, load_training_table

    check_methods(methods)  # told before minutes of fits
    if folder is not None:
        require_matplotlib("--out")
        make_folder(folder)
    table = load_training_table(
        choose_sources(sources, complain),
        devices=device_ids,
        tell=complain,
        of_one_sampler=True,
    )
    with progress_bar() as tell:
        found = compare_table(
            table,
            methods,
            settings,
            resamples=resamples,
            report=lambda stage, done, total: tell(done, total, stage),
        )
    present(found.to_plain(), *present_comparison(found, is_brief=True))
    if folder is not None:
        path = folder / "comparison.json"
        with writing(path):
            path.write_text(json.dumps(found.to_plain(), indent=1), encoding="utf-8")
        title = f"{', '.join(found.methods)} compared"
        save_page(folder / "comparison.html", title, *present_comparison(found))
        show(f"written to {folder}")
    judged = found.scores[found.scores["launches"] > 0]
    by_device = judged.groupby("device")["method"].nunique()
    is_whole = all(by_device.get(one, 0) == len(methods) for one in {*table.devices})
    return ExitStatus.ANSWERED if is_whole else ExitStatus.FAILED
