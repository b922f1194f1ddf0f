"""Long work as plain values in and out: what the service's jobs do in processes of their own."""

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypeVar

from kernelcast.calibration.calibration import (
    CalibrationSettings,
    Effort,
    calibrate_device,
)
from kernelcast.collection.collection import (
    CollectionOrder,
    DeviceOutcome,
    collect,
)
from kernelcast.collection.settings import CollectionSettings
from kernelcast.launches.data_store import open_data_store
from kernelcast.launches.devices import choose_devices
from kernelcast.models.evidence.model import model_to_json
from kernelcast.models.time_models import make_model
from kernelcast.models.validation.comparison import RESAMPLES, comparison_to_json
from kernelcast.models.validation.report import StoredModel, report_to_json, write_model
from kernelcast.models.versioned_files import VersionedFiles
from kernelcast.records.device import Progress
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.observation import Observation
from kernelcast.records.plain import list_keys, pick
from kernelcast.records.service_state import JobKind
from kernelcast.records.training_table import TrainingTable
from kernelcast.training.comparing import check_methods, compare_table
from kernelcast.training.evidence import calibrate_evidence
from kernelcast.training.registry import open_registry
from kernelcast.training.settings import (
    DEFAULT_MODEL,
    RowFilter,
    Split,
    TrainingSettings,
    ValidationSettings,
)
from kernelcast.training.table import load_training_table, machines_beside
from kernelcast.training.training import train, validate_models
from kernelcast.training_data.applications import find_kernels

Plain = dict[str, Any]
Report = Callable[[Plain], None]
S = TypeVar("S")


Hold = Callable[[str], AbstractContextManager[Callable[[], None]]]
"""Holds a device: one measurement at a time runs on it. What it gives lets others in between two
steps."""


def run_job(
    kind: JobKind,
    options: Mapping[str, Any],
    report: Report,
    *,
    database: str,
    registry: str | None,
    hold: Hold,
) -> object:
    """Do a job on a database, a registry of models, and devices that are held."""
    load = partial(load_training_table, [database], devices=options.get("devices", ()))
    match kind:
        case JobKind.COLLECT:
            return _collect(options, database, hold, report)
        case JobKind.CALIBRATE:
            return _calibrate(options, hold, report)
        case JobKind.TRAIN:
            return _train(options, load, open_registry(registry), report)
        case JobKind.VALIDATE:
            found = validate_models(load(), _validation_settings(options), _tell_fits(report))
            return json.loads(report_to_json(found))
        case JobKind.COMPARE:
            return _compare(options, load(), report)


def check_job(kind: JobKind, options: Mapping[str, Any]) -> None:
    match kind:
        case JobKind.COLLECT:
            find_kernels(*options.get("kernels", ()))
            _read_settings(CollectionSettings, options)
        case JobKind.CALIBRATE:
            _calibration_settings(options)
        case JobKind.TRAIN:
            make_model(options.get("model", DEFAULT_MODEL))
        case JobKind.VALIDATE:
            _validation_settings(options)
            for name in options.get("models", ()):
                make_model(name)
        case JobKind.COMPARE:
            split = _validation_settings(options).split
            check_methods((options["first"], options["second"]), split)


def _collect(options: Mapping[str, Any], database: str, hold: Hold, report: Report) -> object:
    devices = choose_devices(options.get("devices", ()))
    settings = _read_settings(CollectionSettings, options)
    kernels = find_kernels(*options.get("kernels", ()))
    found: list[DeviceOutcome] = []
    is_out_of_time = False
    with open_data_store(database) as store:
        for number, device in enumerate(devices):
            order = CollectionOrder(
                kernels=kernels,
                devices=(device,),
                settings=settings,
                retries_failures=bool(options.get("retry_failures", False)),
                budget_s=options.get("time_budget_seconds"),
            )
            with hold(device.id) as let_others_in:
                tell = partial(_tell, report, (number, len(devices)), let_others_in)
                outcome = collect(order, store, report=tell)
            found += outcome.devices
            is_out_of_time = is_out_of_time or outcome.is_out_of_time
    return {"devices": [one.to_dict() for one in found], "is_out_of_time": is_out_of_time}


def _tell(
    report: Report,
    device: tuple[int, int],
    let_others_in: Callable[[], None],
    progress: Progress,
) -> None:
    """Turn where the work on one device of several stands into where the job does."""
    number, devices = device
    told: Plain = {
        "done": number * progress.total + progress.done,
        "total": devices * progress.total,
        "device_id": progress.device_id,
        "stage": progress.words,
        "remaining_seconds": progress.remaining_s,
    }
    if progress.rows is not None:
        told["rows"] = progress.rows
    if not progress.stage:
        let_others_in()  # nothing is measured between two kernels, or two microbenchmarks
    report(told)


def _calibrate(options: Mapping[str, Any], hold: Hold, report: Report) -> object:
    settings = _calibration_settings(options)
    results: list[Plain] = []
    devices = choose_devices(options.get("devices", ()))
    for number, device in enumerate(devices):
        with hold(device.id) as let_others_in:
            tell = partial(_tell, report, (number, len(devices)), let_others_in)
            try:
                done = calibrate_device(device, settings, report=tell)
            except InputError:
                raise  # the same for every device
            except KernelcastError as error:
                results.append({"device_id": device.id, "error_message": str(error)})
                continue
        told = pick(done, "resumed", "failed", durations_seconds="durations_s")
        results.append({"device_id": device.id, **told})
    return {"devices": results}


def _train(
    options: Mapping[str, Any],
    load: Callable[..., TrainingTable],
    registry: VersionedFiles,
    report: Report,
) -> object:
    models: list[Plain] = []
    seen: list[Observation] = []
    left_out: list[str] = []

    def keep(one: StoredModel) -> None:
        models.append({
            "name": one.name,
            "version": registry.publish(one.name, write_model(one)),
            "rows": one.model.facts["rows"],
            "kernels": len(one.model.facts["kernels"]),
            "devices": one.model.facts["devices"],
        })  # fmt: skip

    settings = TrainingSettings(with_validation=bool(options.get("validate", True)), jobs=1)
    _, refused, lacking = train(
        load(seen=seen, tell=left_out.append),
        options.get("model", DEFAULT_MODEL),
        settings,
        keep=keep,
        report=_tell_fits(report),
    )
    calibrated = [
        {"name": name, "version": registry.publish(name, model_to_json(model)), "devices": devices,
         **model.facts}
        for name, model, devices in calibrate_evidence(seen, machines_beside())
    ]  # fmt: skip
    left_out += [f"{name}: {why}" for name, why in lacking.items()]
    return {"models": models, "evidence": calibrated, "refused": refused, "left_out": left_out}


def _compare(options: Mapping[str, Any], table: TrainingTable, report: Report) -> object:
    found = compare_table(
        table,
        (options["first"], options["second"]),
        _validation_settings(options),
        resamples=options.get("resamples") or RESAMPLES,
        report=lambda stage, done, total: report({"stage": stage, "done": done, "total": total}),
    )
    return None if found.pair is None else json.loads(comparison_to_json(found.pair))


def _tell_fits(report: Report) -> Callable[[int, int], None]:
    return lambda done, total: report({"stage": "fits", "done": done, "total": total})


def _read_settings(kind: Callable[..., S], options: Mapping[str, Any], **chosen: object) -> S:
    """Make settings of what is chosen, and of options that are named as fields are in JSON."""
    given = {
        name: tuple(value) if isinstance(value, list) else value
        for name, key in list_keys(kind).items()
        if (value := options.get(key)) is not None
    }
    return kind(**{**given, **chosen})


def _calibration_settings(options: Mapping[str, Any]) -> CalibrationSettings:
    effort = Effort(options.get("effort", Effort.NORMAL))
    return _read_settings(CalibrationSettings, options, effort=effort)


def _validation_settings(options: Mapping[str, Any]) -> ValidationSettings:
    split, rows = Split(options.get("split", Split.KERNEL)), _read_settings(RowFilter, options)
    return _read_settings(ValidationSettings, options, split=split, rows=rows, jobs=1)
