"""``kernelcast train``."""

import time
from dataclasses import asdict
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kernelcast.cli import options as option
from kernelcast.cli.terminal import ExitStatus, complain, present, progress_bar
from kernelcast.cli.training_options import DATA, JOBS, REGISTRY
from kernelcast.training.settings import DEFAULT_MODEL, POOLED_MODEL, STATIC_MODEL, TrainingSettings

if TYPE_CHECKING:  # takes longer to import than all other commands do
    from kernelcast.models.persistence import StoredModel
    from kernelcast.reports.presenter import Table

_SHOWN_FACTS: Final = ("devices", "kernels", "rows", "data_digest")


@option.command(
    short="Train models on collected observations.",
    json=option.AS_JSON,
)
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
    from kernelcast.cli.collecting import Collected
    from kernelcast.models.persistence import write_model
    from kernelcast.models.validation.report import summarise_report
    from kernelcast.models.versioned_files import write_bytes
    from kernelcast.records.errors import InputError, KernelcastError
    from kernelcast.records.observation import Observation
    from kernelcast.training import table as tables
    from kernelcast.training import training
    from kernelcast.training.evidence import calibrate_evidence
    from kernelcast.training.registry import open_registry
    from kernelcast.training.runs import record_run

    seen: list[Observation] = []
    table = tables.load_training_table(sources, devices=device_ids, tell=complain, keep=seen.append)
    if name == DEFAULT_MODEL and not any(isfinite(one) for one in table.linear_s):
        name = STATIC_MODEL
        complain(f"no row has samples: the model {name} is trained, which needs none")
    registry = open_registry(registry_url) if out is None else None
    count = training.count_models(table, name)
    if registry is None and count > 1:
        raise InputError(
            f"--out takes one model, the data are of {count} devices; choose one by --device, "
            "give --pooled, or leave --out out: a registry holds one model per device"
        )
    kept = Collected[tuple["StoredModel", str]](when_interrupted="models that were ready are kept")

    def keep(one: "StoredModel") -> None:
        if registry is not None:
            place = f"{registry.url}/{one.name} as {registry.publish(one)}"
        elif out is not None:
            write_bytes(str(out), write_model(one))
            place = str(out)
        kept.answers.append((one, place))

    with kept.until_interrupted(), progress_bar() as tell:
        outcome = training.train(
            table,
            name,
            settings,
            keep=keep,
            report=lambda done, total: tell(done, total, "fits"),
        )
        kept.failures += [(one, KernelcastError(why)) for one, why in outcome.refused.items()]
        for one, why in outcome.left_out.items():
            complain(f"{one}: {why}")
    calibrated = []
    if registry is not None and not kept.is_interrupted:
        found = calibrate_evidence(seen, tables.machines_beside(sources))
        calibrated = [
            (one, f"{registry.url}/{one.name} as {one.publish(registry)}") for one in found
        ]
    reports = [one.report for one, _ in kept.answers if one.report is not None]
    asked = {"data_digest": table.digest, "rows": len(table), "model": name, **asdict(settings)}
    try:
        record_run("train", name, asked, reports, started_s=started_s)
    except InputError as error:  # the models are there
        complain(str(error))
    present(
        [
            *(
                {
                    "name": one.name, "model": one.model.name, "place": place,
                    **{each: one.model.facts[each] for each in _SHOWN_FACTS},
                    "schema": one.model.schema.id,
                    "validation": None if one.report is None else summarise_report(one.report),
                }
                for one, place in kept.answers
            ),
            *({"name": one, "error_message": str(why)} for one, why in kept.failures),
            *(
                {
                    "name": one.name, "place": place, "devices": list(one.devices),
                    "rows": one.model.facts["rows"], "calibrated": dict(one.model.facts),
                }
                for one, place in calibrated
            ),
        ],
        *([_tabulate([one for one, _ in kept.answers])] if kept.answers else ()),
        *(f"{model.name}: written to {place}" for model, place in kept.answers),
        *(
            f"{one.name}: calibrated with {one.model.facts['rows']:,} launches of "
            f"{one.model.facts['kernels']} kernels, written to {place}"
            for one, place in calibrated
        ),
    )  # fmt: skip
    return kept.conclude()


def _list_runs() -> ExitStatus:
    """Show the records of trainings and validations, the latest first."""
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
