"""Records of trainings and validations, in a folder that MLflow's file store reads.

``mlflow ui --backend-store-uri FOLDER`` shows them beside each other; nothing here
needs MLflow. The layout is MLflow's: a folder per experiment and run, a file per
parameter, metric and tag, and descriptions in YAML.
"""

import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
_EXPERIMENTS = {"train": "1", "validate": "2"}
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
    environment: Mapping[str, str]
    started_s: float
    ended_s: float
    id: str


def find_folder() -> Path:
    chosen = os.environ.get(VARIABLE)
    return Path(chosen) if chosen else data_folder() / "runs"


def record_run(
    kind: str,
    name: str,
    settings: Mapping[str, object],
    reports: Sequence[ValidationReport],
    *,
    started_s: float,
) -> str:
    """Write the record of a run that has ended; return its id."""
    folder, run_id = find_folder(), uuid4().hex
    experiment = folder / _EXPERIMENTS[kind]
    place = experiment / run_id
    begun, ended = round(1000 * started_s), round(1000 * time.time())
    metrics: dict[str, str] = {}
    for one in (score for report in reports for score in report.scores):
        figures = {"coverage": one.coverage, "half_width": one.half_width}
        if one.errors is not None:
            figures |= {f"{name}_error": one.errors[name] for name in ("mean", "median")}
        metrics |= {
            f"{one.model}.{what}.{one.device}": f"{ended} {value!r} 0\n"
            for what, value in figures.items()
            if value is not None
        }
    tags = {
        "mlflow.runName": name, **list_versions(), "python": platform.python_version(),
        "machine": platform.machine(), "processors": str(os.cpu_count()),
    }  # fmt: skip
    params = {key: str(one) for key, one in settings.items()}
    texts = {"artifacts": {}, "metrics": metrics, "params": params, "tags": tags}
    try:
        make_private_folder(folder)
        if not (experiment / "meta.yaml").exists():
            experiment.mkdir(exist_ok=True)
            _describe(
                experiment, artifact_location=experiment.as_uri(), creation_time=begun,
                experiment_id=experiment.name, last_update_time=begun, lifecycle_stage="active",
                name=f"kernelcast {kind}",
            )  # fmt: skip
        for part, files in texts.items():
            (place / part).mkdir(parents=True)
            for key, text in files.items():
                (place / part / key).write_text(text, encoding="utf-8")
        # Last: a run without it was cut off.
        _describe(
            place, artifact_uri=(place / "artifacts").as_uri(), end_time=ended,
            entry_point_name="", experiment_id=experiment.name, lifecycle_stage="active",
            run_id=run_id, run_name=name, run_uuid=run_id, source_name="", source_type=_LOCAL,
            source_version="", start_time=begun, status=_FINISHED, tags=[], user_id="",
        )  # fmt: skip
    except OSError as error:
        msg = f"{folder}: the record of this run cannot be written ({error}); name another "
        raise InputError(f"{msg}folder by {VARIABLE}") from error
    return run_id


def _describe(place: Path, **values: object) -> None:
    part = place / "meta.yaml.part"
    part.write_text(yaml.safe_dump(values), encoding="utf-8")
    part.replace(place / "meta.yaml")


def list_runs() -> list[Run]:
    kinds = {number: kind for kind, number in _EXPERIMENTS.items()}
    found = []
    for place in (path.parent for path in find_folder().glob("[12]/*/meta.yaml")):
        try:
            held = yaml.safe_load((place / "meta.yaml").read_text(encoding="utf-8"))
            params, metrics, tags = (
                {one.name: one.read_text(encoding="utf-8") for one in (place / part).iterdir()}
                for part in ("params", "metrics", "tags")
            )
            run = Run(
                kind=kinds[place.parent.name],
                name=str(held["run_name"]),
                settings=params,
                scores={name: float(one.split()[1]) for name, one in metrics.items()},
                environment={x: tags[x] for x in tags if not x.startswith("mlflow.")},
                started_s=held["start_time"] / 1000,
                ended_s=held["end_time"] / 1000,
                id=str(held["run_id"]),
            )
        except (OSError, ValueError, KeyError, TypeError, IndexError, yaml.YAMLError) as error:
            msg = f"{place}: is no record of a run ({error!r}); remove the folder"
            raise InputError(msg) from error
        found.append(run)
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
