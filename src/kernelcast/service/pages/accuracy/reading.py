"""Reads what the page *Accuracy* shows; kept until something changes."""

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.service_state import JobKind, JobState
from kernelcast.service.errors import message_of, refuse_unknown
from kernelcast.service.pages.accuracy.view import AccuracyState
from kernelcast.service.predictions import Compared
from kernelcast.service.service import Service

if TYPE_CHECKING:  # what reads models takes long to import
    from kernelcast.predictor.reviewing.held_rows import HeldRows
    from kernelcast.predictor.reviewing.judging import Explanation, ValidationReport
    from kernelcast.predictor.reviewing.model_answers import ModelAnswer, OpenModel

# Observations may come in thousands a second; and programs may write into the store without the
# service.
_HOLDS_S: Final = 3.0
_STANDS_S: Final = 60.0
_MOST_KEPT: Final = 2
_MOST_COMPARISONS: Final = 5

Stamp = tuple[object, ...]
"""Differs as soon as what was read may have changed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Content:
    """Observations, models in use, their answers by kind and key, and what could not be read."""

    held: "HeldRows"
    models: "tuple[OpenModel, ...]"
    answers: "Mapping[str, Mapping[str, ModelAnswer]]"
    failures: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Kept:
    stamp: Stamp
    read_s: float
    content: _Content


class _Shelf:
    """What was read last of each service; a page and its pictures ask for the same at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str | None], _Kept] = OrderedDict()

    def read(self, service: Service) -> _Content:
        """Give what is there, read anew if it may have changed and a moment has passed."""
        key = (service.database, service.settings.registry)
        with self._lock:
            known = self._kept.get(key)
            age_s = 0.0 if known is None else time.monotonic() - known.read_s
            if known is not None and age_s < _HOLDS_S:
                return known.content
            stamp = _make_stamp(service)
            if known is None or stamp != known.stamp or age_s > _STANDS_S:
                known = _Kept(stamp=stamp, read_s=time.monotonic(), content=_read(*key))
                self._kept[key] = known
                while len(self._kept) > _MOST_KEPT:
                    self._kept.popitem(last=False)
            return known.content


_SHELF: Final = _Shelf()


def read_state(
    service: Service, compared: tuple[Compared, ...], job_id: str | None = None
) -> AccuracyState:
    """Read what there is; blocks.

    Parameters
    ----------
    service : Service
        The running service.
    compared : tuple of Compared
        Answers of this process that were observed since.
    job_id : str, optional
        A validation whose report is shown in place of the models' own.

    Raises
    ------
    StoreError
        If the database does not answer.
    ApiError
        If there is no such validation.
    """
    content = _SHELF.read(service)
    reports = tuple(one.report for one in content.models if one.report is not None)
    if job_id is not None:
        reports = (_read_validation(service, job_id),)
    return AccuracyState(
        held=content.held,
        models=content.models,
        answers=content.answers,
        reports=reports,
        compared=compared,
        explanations=tuple(_read_explanations(service)),
        failures=content.failures,
    )


def _make_stamp(service: Service) -> Stamp:
    """Tell whether observations or models may have changed."""
    return (*sorted(service.state.changes.read().items()), service.upkeep.models)


def _read(database: str, registry: str | None) -> _Content:
    from kernelcast.predictor.reviewing.held_rows import read_held_rows
    from kernelcast.predictor.reviewing.model_answers import (
        answer_rows,
        list_used_models,
        open_model,
    )

    held = read_held_rows(database)
    failures: list[str] = []
    models: list[OpenModel] = []
    answers: dict[str, dict[str, ModelAnswer]] = {}
    try:
        used = list_used_models(registry)
    except InputError as error:
        used, failures = (), [message_of(error)]
    for one in used:
        try:
            model = open_model(one, registry)
            keys = [row.key for row in held.rows if row.device_id in model.devices]
            found = answer_rows(model, database, keys)
        except KernelcastError as error:
            failures.append(f"{one.name}: {message_of(error)}")
            continue
        models.append(model)
        answers.setdefault(model.kind, {}).update(found)
    return _Content(held=held, models=tuple(models), answers=answers, failures=tuple(failures))


def _read_validation(service: Service, job_id: str) -> "ValidationReport":
    from kernelcast.predictor.reviewing.judging import read_report

    job = service.state.jobs.find(job_id)
    if job is None or job.kind is not JobKind.VALIDATE or job.result is None:
        refuse_unknown("validation", job_id)
    return read_report(job.result)


def _read_explanations(service: Service) -> list["Explanation"]:
    """Give what the newest stored comparisons explain."""
    from kernelcast.predictor.reviewing.judging import read_comparison

    found: list[Explanation] = []
    jobs = service.state.jobs.list(
        kinds=(JobKind.COMPARE,), states=(JobState.DONE,), most=_MOST_COMPARISONS
    )
    for job in jobs:
        try:
            found += read_comparison(job.result).explained
        except (InputError, TypeError):  # of an older format
            continue
    return found
