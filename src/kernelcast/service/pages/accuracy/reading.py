"""Reads what the page *Accuracy* shows; what has not changed since is kept."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from cachetools import LRUCache

from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.service_state import JobKind, JobState
from kernelcast.service.errors import message_of, refuse_unknown
from kernelcast.service.pages.accuracy.view import AccuracyState
from kernelcast.service.service import Service
from kernelcast.service_state import AnswerFilter

if TYPE_CHECKING:  # what reads models takes long to import
    from kernelcast.reports.accuracy.held_launches import HeldLaunch, HeldLaunches, LaunchDetails
    from kernelcast.reports.accuracy.judging import ExplainedError, ValidationReport
    from kernelcast.reports.accuracy.model_answers import (
        ModelAnswer,
        ModelAnswers,
        OpenModel,
    )
    from kernelcast.service_state import Store

_MOST_KEPT: Final = 2
_MOST_COMPARISONS: Final = 5
_MOST_COMPARED: Final = 2000
_OBSERVED: Final = AnswerFilter(is_observed=True)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Models:
    """Models in use as they were at a generation, and what could not be read of them."""

    generation: int
    models: "tuple[OpenModel, ...]"
    failures: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Content:
    """Launches, models in use, their answers by kind and launch, and what could not be read."""

    held: "HeldLaunches"
    models: _Models
    asked: "ModelAnswers"
    answers: "Mapping[str, Mapping[str, ModelAnswer]]"
    failures: tuple[str, ...]


@dataclass(slots=True)
class _Place:
    """What was read last of a service's store; one reader at a time."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    # Stays open: its statements are compiled once, which takes longer than to run them.
    store: "Store | None" = None
    content: _Content | None = None

    def read(self, service: Service) -> _Content:
        """Give what is there now."""
        with self.lock:
            self.content = _read(
                self.open(service), service.settings.registry, service.watcher.models, self.content
            )
            return self.content

    def open(self, service: Service) -> "Store":
        """Give the store; the lock is held meanwhile."""
        from kernelcast.launches.data_store import open_data_store

        if self.store is None:
            self.store = open_data_store(service.database)
        return self.store

    def close(self) -> None:
        """Close the store; a reader who comes later opens it again."""
        with self.lock:
            if self.store is not None:
                self.store.close()


class _Places(LRUCache[tuple[str, str | None], _Place]):
    """What was read last of each service."""

    def popitem(self) -> tuple[tuple[str, str | None], _Place]:
        """Close the store that was read longest ago."""
        key, place = super().popitem()
        place.close()
        return key, place

    def __missing__(self, key: tuple[str, str | None]) -> _Place:
        self[key] = _Place()
        return self[key]


_PLACES: Final = _Places(_MOST_KEPT)
_PLACES_LOCK: Final = threading.Lock()


def read_kernel(service: Service, kernel: str) -> "tuple[tuple[HeldLaunch, ...], LaunchDetails]":
    """Read a kernel's launches, their sizes and times."""
    from kernelcast.reports.accuracy.held_launches import read_kernel_launches, read_launch_details

    with _PLACES_LOCK:
        place = _PLACES[service.database, service.settings.registry]
    with place.lock:
        store = place.open(service)
        launches = read_kernel_launches(store, kernel)
        return launches, read_launch_details(store, launches)


def read_state(service: Service, job_id: str | None = None) -> AccuracyState:
    """Read what there is; blocks."""
    with _PLACES_LOCK:
        place = _PLACES[service.database, service.settings.registry]
    content = place.read(service)  # only what has changed since the last look is read
    reports = tuple(one.report for one in content.models.models if one.report is not None)
    if job_id is not None:
        reports = (_read_validation(service, job_id),)
    return AccuracyState(
        held=content.held,
        models=content.models.models,
        answers=content.answers,
        reports=reports,
        compared=tuple(service.state.answers.find(_OBSERVED, most=_MOST_COMPARED)),
        shifts={key: one.when for key, one in service.answers.shifts.items()},
        explanations=tuple(_read_explanations(service)),
        failures=content.failures,
    )


def _read(
    store: "Store", registry: str | None, generation: int, known: _Content | None
) -> _Content:
    from kernelcast.reports.accuracy.held_launches import NOTHING, read_held_launches
    from kernelcast.reports.accuracy.model_answers import ModelAnswers

    held = read_held_launches(store, NOTHING if known is None else known.held)
    if known is None or known.models.generation != generation:
        models = _read_models(registry, generation)
    else:
        models = known.models
    if known is not None and held is known.held and models is known.models:
        return known
    asked = ModelAnswers() if known is None else known.asked
    answers, failures = asked.read(models.models, store, held.launches)
    told = tuple(f"{name}: {message_of(error)}" for name, error in failures.items())
    return _Content(
        held=held, models=models, asked=asked, answers=answers, failures=(*models.failures, *told)
    )


def _read_models(registry: str | None, generation: int) -> _Models:
    from kernelcast.reports.accuracy.model_answers import list_used_models, open_model
    from kernelcast.training.registry import is_evidence

    failures: list[str] = []
    models: list[OpenModel] = []
    try:
        used = list_used_models(registry)
    except InputError as error:
        used, failures = (), [message_of(error)]
    for one in used:
        if is_evidence(one.name):
            continue  # it weighs what others say, and has no answers of its own
        try:
            models.append(open_model(one, registry))
        except KernelcastError as error:
            failures.append(f"{one.name}: {message_of(error)}")
    return _Models(generation=generation, models=tuple(models), failures=tuple(failures))


def _read_validation(service: Service, job_id: str) -> "ValidationReport":
    from kernelcast.reports.accuracy.judging import read_report

    job = service.state.jobs.find(job_id)
    if job is None or job.kind is not JobKind.VALIDATE or job.result is None:
        refuse_unknown("validation", job_id)
    return read_report(job.result)


def _read_explanations(service: Service) -> list["ExplainedError"]:
    """Give what the newest stored comparisons explain."""
    from kernelcast.reports.accuracy.judging import read_comparison

    found: list[ExplainedError] = []
    jobs = service.state.jobs.list(
        kinds=(JobKind.COMPARE,), states=(JobState.DONE,), most=_MOST_COMPARISONS
    )
    for job in jobs:
        try:
            found += read_comparison(job.result).explained
        except (InputError, TypeError):  # of an older format
            continue
    return found
