"""Learned models in use, their validation, and what they say of observations that a store holds.

An answer counts only where the model has not learned from the launch: the validation's answer for
launches that it was trained on, which a fit without their kernel gave, and the model's own for all
others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kernelcast.models.persistence import ModelRegistry, StoredModel
from kernelcast.models.validation.report import ValidationReport
from kernelcast.predictor.answering.trained_models import find_shipped
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.training_table import TrainingTable
from kernelcast.reports.accuracy.held_launches import HeldLaunch
from kernelcast.training.registry import choose_registry, list_models
from kernelcast.training.rows import choose_newest_samples
from kernelcast.training.table import peaks_beside, tabulate
from kernelcast.training_data.store import Selection, Store
from kernelcast.training_data.store.launches import find_launches

MOST_ASKED: Final = 100
"""Launches that a model is asked about, those observed last: features of one take 2 ms to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedModel:
    """A model that estimates may use."""

    name: str
    """``model/device``, or the model alone where it serves all devices."""
    version: str
    """The one in use."""
    is_shipped: bool
    """Whether it came with the package."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenModel:
    """A model that was loaded."""

    used: UsedModel
    kind: str
    """Its name in the catalogue."""
    report: ValidationReport | None
    """How good it was found to be; None where it was not validated."""
    stored: StoredModel
    """As its file has it."""

    @property
    def devices(self) -> tuple[str, ...]:
        """Devices that the validation knows."""
        return () if self.report is None else tuple(sorted({*self.report.rows.devices}))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """What a model that has not learned from a launch says of it."""

    seconds: float
    low: float
    high: float
    """In seconds."""
    in_domain: bool
    """Whether the launch resembles those that were learned from."""


def list_used_models(registry: str | None = None) -> tuple[UsedModel, ...]:
    """Give the models in use: those of the registry, then those shipped that it does not have."""
    found: dict[str, UsedModel] = {}
    for place, is_shipped in ((choose_registry(registry), False), (find_shipped(), True)):
        for one in list_models(ModelRegistry(url=place)):
            if one.used is not None and one.name not in found:
                found[one.name] = UsedModel(name=one.name, version=one.used, is_shipped=is_shipped)
    return tuple(found.values())


def open_model(used: UsedModel, registry: str | None = None) -> OpenModel:
    """Load a model."""
    place = find_shipped() if used.is_shipped else choose_registry(registry)
    stored = ModelRegistry(url=place).load(used.name, used.version)
    return OpenModel(used=used, kind=stored.model.name, report=stored.report, stored=stored)


# Model, version, observation, and its linear time: samples that were replaced have another.
_Question = tuple[str, str, str, float]
_Asked = dict[_Question, ModelAnswer | None]


class ModelAnswers:
    """Models' answers to launches of a store; keeps them for the next time.

    Not for several threads at once.
    """

    def __init__(self) -> None:
        self._known: _Asked = {}

    def read(
        self, models: Sequence[OpenModel], store: Store, launches: Sequence[HeldLaunch]
    ) -> tuple[dict[str, dict[str, ModelAnswer]], dict[str, KernelcastError]]:
        """Give the answers by the models' kinds and the launches' keys, and why models gave none.

        Parameters
        ----------
        models : sequence of OpenModel
            Nobody knows what one without a validation has learned from: it has no answers.
        launches : sequence of HeldLaunch
            Those observed last come first.
        """
        asked: _Asked = {}
        found: dict[str, dict[str, ModelAnswer]] = {}
        failures: dict[str, KernelcastError] = {}
        for model in models:
            devices = model.devices
            own = [one for one in launches if one.device_id in devices]
            if model.report is None or not own:
                continue
            held_out, learned = _read_held_out(model.report, model.kind, store)
            new = [one for one in own if one.sampled_key is not None and one.key not in learned]
            places = {one.key: _identify(model, one) for one in new[:MOST_ASKED]}
            try:
                asked |= self._ask(model, store, [*places.values()])
            except KernelcastError as error:  # of a row that cannot be read, say
                failures[model.used.name] = error
            answers = found.setdefault(model.kind, {})
            answers |= {one.key: held_out[one.key] for one in own if one.key in held_out}
            told = {key: asked.get(place) for key, place in places.items()}
            answers |= {key: one for key, one in told.items() if one is not None}
        self._known = asked  # what was not needed any more is forgotten
        return found, failures

    def _ask(self, model: OpenModel, store: Store, places: Sequence[_Question]) -> _Asked:
        """Ask a model about observations that it was not asked about before."""
        known = {one: self._known[one] for one in places if one in self._known}
        new = [one for one in places if one not in known]
        found = _ask(model, store, [one[2] for one in new]) if new else {}
        return known | {one: found.get(one[2]) for one in new}


def _identify(model: OpenModel, launch: HeldLaunch) -> _Question:
    """Say what an answer is to."""
    return model.used.name, model.used.version, launch.sampled_key or "", launch.linear_s or 0.0


def _read_held_out(
    report: ValidationReport, kind: str, store: Store
) -> tuple[dict[str, ModelAnswer], frozenset[str]]:
    """Give answers by launch, and all launches that the model has learned from."""
    launch_of = find_launches(store, report.rows.keys)
    answers = {
        launch_of[key]: one for key, one in _list_answers(report, kind).items() if key in launch_of
    }
    return answers, frozenset(launch_of.values())


def _list_answers(report: ValidationReport, kind: str) -> dict[str, ModelAnswer]:
    rows = report.to_frame()
    rows = rows[
        (rows["model"] == kind) & rows[["predicted_s", "low_s", "high_s"]].notna().all(axis=1)
    ]
    return {
        one["key"]: ModelAnswer(
            seconds=one["predicted_s"], low=one["low_s"], high=one["high_s"],
            in_domain=one["in_domain"],
        )
        for one in rows.to_dict("records")
    }  # fmt: skip


def _ask(model: OpenModel, store: Store, keys: Sequence[str]) -> dict[str, ModelAnswer]:
    """Ask a model about observations by their keys."""
    try:
        rows = _read_table(store, keys)
        rows = rows.take(np.isfinite(rows.linear_s))
        if not len(rows):
            return {}
        found = model.stored.model.forecast(rows)
    except InputError:  # nothing to learn from there, or features of another version
        return {}
    return {
        str(key): ModelAnswer(
            seconds=float(found.seconds[place]),
            low=float(found.low[place]),
            high=float(found.high[place]),
            in_domain=bool(found.in_domain[place]),
        )
        for place, key in enumerate(rows.keys)
    }


def _read_table(store: Store, keys: Sequence[str]) -> TrainingTable:
    found = store.find(Selection(keys=tuple(keys)))
    table = tabulate(found, find_peaks=peaks_beside([store.where]))
    return choose_newest_samples(table, lambda _: None)
