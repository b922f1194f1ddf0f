"""Learned models in use, their validation, and what they say of observations that a store holds.

An answer counts only where the model has not learned from the launch: the validation's answer for
rows that it was trained on, which a fit without their kernel gave, and the model's own for newer
rows.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from kernelcast.models.persistence import ModelRegistry, StoredModel
from kernelcast.models.validation.report import ValidationReport
from kernelcast.predictor.answering.shelf import find_shipped
from kernelcast.predictor.training.registry import choose_registry, list_models
from kernelcast.predictor.training.table import load_training_table
from kernelcast.records.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedModel:
    """A model that estimates may use.

    Parameters
    ----------
    name : str
        ``model/device``, or the model alone where it serves all devices.
    version : str
        The one in use.
    is_shipped : bool
        Whether it came with the package.
    """

    name: str
    version: str
    is_shipped: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenModel:
    """A model that was loaded.

    Parameters
    ----------
    used : UsedModel
        Which.
    kind : str
        Its name in the catalogue.
    report : ValidationReport or None
        How good it was found to be; None where it was not validated.
    stored : StoredModel
        As its file has it.
    """

    used: UsedModel
    kind: str
    report: ValidationReport | None
    stored: StoredModel

    @property
    def devices(self) -> tuple[str, ...]:
        """Devices that the validation knows."""
        return () if self.report is None else tuple(sorted({*self.report.rows.devices}))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """What a model that has not learned from a launch says of it.

    Parameters
    ----------
    seconds, low, high : float
        In seconds.
    in_domain : bool
        Whether the launch resembles those that were learned from.
    """

    seconds: float
    low: float
    high: float
    in_domain: bool


def list_used_models(registry: str | None = None) -> tuple[UsedModel, ...]:
    """Give the models in use: those of the registry, then those shipped that it does not have.

    Raises
    ------
    InputError
        If the registry cannot be read.
    """
    found: dict[str, UsedModel] = {}
    for place, is_shipped in ((choose_registry(registry), False), (find_shipped(), True)):
        for one in list_models(ModelRegistry(url=place)):
            if one.used is not None and one.name not in found:
                found[one.name] = UsedModel(name=one.name, version=one.used, is_shipped=is_shipped)
    return tuple(found.values())


def open_model(used: UsedModel, registry: str | None = None) -> OpenModel:
    """Load a model.

    Raises
    ------
    InputError
        If its file is damaged, or not there any more.
    """
    place = find_shipped() if used.is_shipped else choose_registry(registry)
    stored = ModelRegistry(url=place).load(used.name, used.version)
    return OpenModel(used=used, kind=stored.model.name, report=stored.report, stored=stored)


def answer_rows(
    model: OpenModel, database: str, keys: Collection[str]
) -> Mapping[str, ModelAnswer]:
    """Give a model's answers to observations of a store, by their keys.

    Parameters
    ----------
    model : OpenModel
        Without a validation nobody knows what it has learned from: it has no answers then.
    database : str
        The store.
    keys : collection of str
        The observations, of the model's devices.

    Raises
    ------
    StoreError
        If the store does not answer.
    """
    report = model.report
    if report is None:
        return {}
    known = _read_held_out(report, model.kind)
    new = {*keys} - {*report.rows.keys}
    return {**known, **_ask(model, database, new)} if new else known


def _read_held_out(report: ValidationReport, kind: str) -> dict[str, ModelAnswer]:
    answers = next((one for one in report.rows.models if one.model == kind), None)
    if answers is None:
        return {}
    columns = zip(
        report.rows.keys, answers.seconds, answers.low, answers.high, answers.in_domain,
        strict=True,
    )  # fmt: skip
    return {
        key: ModelAnswer(seconds=seconds, low=low, high=high, in_domain=known)
        for key, seconds, low, high, known in columns
        if seconds is not None and low is not None and high is not None
    }


def _ask(model: OpenModel, database: str, new: Collection[str]) -> dict[str, ModelAnswer]:
    """Ask the model about rows that it has not seen."""
    try:
        table = load_training_table([database], devices=model.devices)
        is_new = np.isin(table.keys.astype(str), sorted(new)) & np.isfinite(table.linear_s)
        rows = table.take(is_new & np.isin(table.devices.astype(str), model.devices))
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
