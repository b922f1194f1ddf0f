"""Records of trainings and validations, in a folder that MLflow's file store reads.

``mlflow ui --backend-store-uri FOLDER`` shows them beside each other; nothing here
needs MLflow. The layout is MLflow's: a folder per experiment and run, a file per
parameter, metric and tag, and descriptions in YAML.
"""

import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import yaml

from kernelcast.launches.data_folder import data_folder
from kernelcast.models.validation.report import ValidationReport
from kernelcast.models.versioned_files import list_versions
from kernelcast.records.errors import InputError
from kernelcast.records.private_files import make_private_folder

VARIABLE = "KERNELCAST_RUNS"
"""Environment variable that names another folder, such as one that machines share."""
# MLflow's numbers of what a run is and how it ended.
_LOCAL, _FINISHED = 4, 3
_SHORTEST_ID = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    kind: str
    """``train`` or ``validate``: MLflow's experiment."""
    name: str
    settings: Mapping[str, str]
    scores: Mapping[str, float]
    """By names such as ``hybrid.mean_error.device-0``."""
    environment: Mapping[str, str] = field(default_factory=dict)
    started_s: float = 0.0
    ended_s: float = 0.0
    id: str = ""


def find_folder() -> Path:
    """Return the folder of runs; it need not be there yet."""
    chosen = os.environ.get(VARIABLE)
    return Path(chosen) if chosen else data_folder() / "runs"


def record_run(
    kind: str,
    name: str,
    settings: Mapping[str, object],
    reports: Sequence[ValidationReport],
    *,
    started_s: float,
) -> Run:
    """Write the record of a run that has ended."""
    scores: dict[str, float] = {}
    for one in (score for report in reports for score in report.scores):
        figures = {"coverage": one.coverage, "half_width": one.half_width}
        if one.errors is not None:
            figures |= {"mean_error": one.errors.mean, "median_error": one.errors.median}
        told = {f"{one.model}.{name}.{one.device}": x for name, x in figures.items()}
        scores |= {name: x for name, x in told.items() if x is not None}
    run = Run(
        kind=kind,
        name=name,
        settings={key: str(one) for key, one in settings.items()},
        scores=scores,
        environment={
            **list_versions(), "python": platform.python_version(), "machine": platform.machine(),
            "processors": str(os.cpu_count()),
        },
        started_s=started_s,
        ended_s=time.time(),
        id=uuid4().hex,
    )  # fmt: skip
    try:
        _write(run, find_folder())
    except OSError as error:
        msg = f"{find_folder()}: the record of this run cannot be written ({error}); name another "
        raise InputError(f"{msg}folder by {VARIABLE}") from error
    return run


def _write(run: Run, folder: Path) -> None:
    experiment = folder / {"train": "1", "validate": "2"}[run.kind]
    place = experiment / run.id
    make_private_folder(folder)
    begun, ended = (round(1000 * one) for one in (run.started_s, run.ended_s))
    if not (experiment / "meta.yaml").exists():
        experiment.mkdir(exist_ok=True)
        _describe(
            experiment, artifact_location=experiment.as_uri(), creation_time=begun,
            experiment_id=experiment.name, last_update_time=begun, lifecycle_stage="active",
            name=f"kernelcast {run.kind}",
        )  # fmt: skip
    for part in ("artifacts", "metrics", "params", "tags"):
        (place / part).mkdir(parents=True)
    for name, text in run.settings.items():
        (place / "params" / name).write_text(text, encoding="utf-8")
    for name, value in run.scores.items():
        (place / "metrics" / name).write_text(f"{ended} {value!r} 0\n", encoding="utf-8")
    for name, text in {"mlflow.runName": run.name, **run.environment}.items():
        (place / "tags" / name).write_text(text, encoding="utf-8")
    # Last: a run without it was cut off.
    _describe(
        place, artifact_uri=(place / "artifacts").as_uri(), end_time=ended, entry_point_name="",
        experiment_id=experiment.name, lifecycle_stage="active", run_id=run.id, run_name=run.name,
        run_uuid=run.id, source_name="", source_type=_LOCAL, source_version="", start_time=begun,
        status=_FINISHED, tags=[], user_id="",
    )  # fmt: skip


def _describe(place: Path, **values: object) -> None:
    part = place / "meta.yaml.part"
    part.write_text(yaml.safe_dump(values), encoding="utf-8")
    part.replace(place / "meta.yaml")


def list_runs() -> list[Run]:
    found = [_read(path.parent) for path in find_folder().glob("[12]/*/meta.yaml")]
    return sorted(found, key=lambda one: -one.started_s)


def find_run(beginning: str) -> Run:
    found = [one for one in list_runs() if one.id.startswith(beginning)]
    if len(found) != 1 or len(beginning) < _SHORTEST_ID:
        raise InputError(
            f"{beginning!r} is the beginning of {len(found)} runs; give at least {_SHORTEST_ID} "
            "letters of one that `kernelcast train --list` names"
        )
    return found[0]


def is_run(text: str) -> bool:
    """Tell whether a text looks like the beginning of a run's id."""
    return len(text) >= _SHORTEST_ID and not set(text) - set("0123456789abcdef")


def compare_runs(first: Run, second: Run) -> list[tuple[str, str, str]]:
    """Return what two runs differ by, and all scores of both: name, first, second; "" for none."""
    if first == second:
        raise InputError("a run cannot be compared with itself; name two of `train --list`")
    begun, later = (
        time.strftime("%Y-%m-%d %H:%M", time.localtime(one.started_s)) for one in (first, second)
    )
    rows = [("started", begun, later)]
    for ours, theirs in (
        (first.settings, second.settings), (first.environment, second.environment),
    ):  # fmt: skip
        names = sorted({*ours} | {*theirs})
        pairs = ((name, ours.get(name, ""), theirs.get(name, "")) for name in names)
        rows += [one for one in pairs if one[1] != one[2]]
    scores = [{name: f"{x:.4g}" for name, x in one.scores.items()} for one in (first, second)]
    names = sorted({*first.scores} | {*second.scores})
    return rows + [(name, scores[0].get(name, ""), scores[1].get(name, "")) for name in names]


def _read(place: Path) -> Run:
    try:
        held = yaml.safe_load((place / "meta.yaml").read_text(encoding="utf-8"))
        texts = {
            part: {one.name: one.read_text(encoding="utf-8") for one in (place / part).iterdir()}
            for part in ("params", "metrics", "tags")
        }
        environment = {
            name: text for name, text in texts["tags"].items() if not name.startswith("mlflow.")
        }
        return Run(
            kind={"1": "train", "2": "validate"}[place.parent.name],
            name=str(held["run_name"]),
            settings=texts["params"],
            scores={name: float(one.split()[1]) for name, one in texts["metrics"].items()},
            environment=environment,
            started_s=held["start_time"] / 1000,
            ended_s=held["end_time"] / 1000,
            id=str(held["run_id"]),
        )
    except (OSError, ValueError, KeyError, TypeError, IndexError, yaml.YAMLError) as error:
        msg = f"{place}: is no record of a run ({error!r}); remove the folder"
        raise InputError(msg) from error
