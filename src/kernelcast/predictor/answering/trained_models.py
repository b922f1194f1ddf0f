"""Trained models as estimates find them: loaded once, looked up anew every few seconds."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kernelcast.models.evidence.fusion import Kind
from kernelcast.models.evidence.model import BUILT_IN, EvidenceModel, know_analytic, load_evidence
from kernelcast.models.versioned_files import VersionedFiles
from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.errors import InputError
from kernelcast.records.explanation import ModelFacts
from kernelcast.sampling.plan import SAMPLER
from kernelcast.training.registry import (
    choose_registry,
    list_evidence_names,
    load_model,
    name_model,
    name_runtime,
)
from kernelcast.training.settings import DEFAULT_MODEL, POOLED_MODEL

if TYPE_CHECKING:
    from kernelcast.models.validation.report import StoredModel
    from kernelcast.records.feature_vector import FeatureSchema

_POINTERS = "versions.json"
_UNUSABLE = (InputError, OSError, ValueError, ImportError)


_Model = TypeVar("_Model")


def find_shipped() -> str:
    return str(Path(str(files("kernelcast"))) / "models" / "pretrained")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoundEvidence:
    model: EvidenceModel
    origin: str
    facts: ModelFacts
    failures: tuple[str, ...] = ()


_ORIGINS = (
    "calibrated on this device",
    "calibrated on devices of the same runtime",
    "calibrated on other CPU devices",
)


class TrainedModels:
    """Finds models in a registry, then among those that come with the package."""

    def __init__(
        self,
        url: str | None = None,
        *,
        shipped: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._places = (choose_registry(url), find_shipped() if shipped is None else shipped)
        self._clock = clock
        self._checked_s = clock()
        self._versions: dict[tuple[str, str], tuple[str | None, str]] = {}
        """By place and name: the version in use, and why that is not known."""
        self._loaded: dict[tuple[str, ...], Any] = {}
        self._evidence: dict[str, FoundEvidence] = {}
        self._lock = threading.RLock()
        self.generation = 0
        """Grows whenever another version of any model asked for is to be used."""

    def has(self, device_id: str, model: str) -> bool:
        """Tell whether there is a model that might stand beside answers, of whatever schema."""
        with self._lock:
            return any(any(self._look(*one)) for one in self._candidates(device_id, model))

    def takes_counters(self, device: DeviceDescription) -> bool:
        """Tell whether counting is worth a build: for CPUs it changes errors by 0.2 points."""
        correction = self.find_evidence(device).model.correction
        return device.kind is not DeviceKind.CPU and (
            correction is None or any(one.startswith("counters.") for one in correction.names)
        )

    def find(
        self, device_id: str, schema: "FeatureSchema | None", model: str
    ) -> "tuple[StoredModel | None, tuple[str, ...]]":
        """Find a model of the catalogue, that of a device or one for all, and why others failed."""

        def load(place: str, name: str, version: str) -> "StoredModel":
            stored = load_model(VersionedFiles(url=place), name, version)
            stored.require(schema, SAMPLER)
            return stored

        key = "" if schema is None else schema.id
        found, failures = self._search(self._candidates(device_id, model), key, load)
        return (found[0] if found else None), failures

    def find_evidence(self, device: DeviceDescription) -> FoundEvidence:
        """Find what weighs evidence on a device: its own, its runtime's, any CPU's, or built-in."""

        def load(place: str, name: str, version: str) -> EvidenceModel:
            return load_evidence(VersionedFiles(url=place), name, version, sampler=SAMPLER)

        with self._lock:
            if device.id in self._evidence:
                return self._evidence[device.id]
            names = list_evidence_names(device.id, is_cpu=device.kind is DeviceKind.CPU)
            candidates = ((place, name) for name in names for place in self._places)
            held, failures = self._search(candidates, "", load)
            model, origin, facts = BUILT_IN, "built in", ModelFacts()
            if held is not None:
                model, place, name, version = held
                rows = model.facts.get("rows")
                origin = f"{_ORIGINS[names.index(name)]} ({name} {version})"
                facts = ModelFacts(
                    name=name,
                    version=version,
                    place=place,
                    data_digest=str(model.facts.get("data_digest", "")),
                    rows=None if rows is None else int(rows),
                    error=None if model.correction is None else model.correction.inner_error,
                )
            found = self._evidence[device.id] = FoundEvidence(
                model=_add_analytic(model, device, is_own=facts.name == names[0]),
                origin=origin,
                facts=facts,
                failures=failures,
            )
            return found

    def refresh(self) -> int:
        """Look for new versions of the models asked for, every few seconds; give the generation."""
        now_s = self._clock()
        if now_s < self._checked_s + 5.0:
            return self.generation
        with self._lock:
            self._checked_s = now_s
            self._evidence.clear()  # what could not be loaded may be there by now
            for where, (before, _) in self._versions.items():
                version, problem = _read_version(*where)
                self._versions[where] = before if problem else version, problem
                if version != before and not problem:
                    self.generation += 1
                    self._loaded.clear()
            return self.generation

    def _candidates(self, device_id: str, model: str) -> Iterator[tuple[str, str]]:
        for place in self._places:
            yield place, name_model(model, device_id)
            yield place, POOLED_MODEL if model == DEFAULT_MODEL else model

    def _search(
        self,
        candidates: Iterable[tuple[str, str]],
        key: str,
        load: Callable[[str, str, str], _Model],
    ) -> tuple[tuple[_Model, str, str, str] | None, tuple[str, ...]]:
        """Find the first usable model, with place, name and version, and why others are not."""
        failures: list[str] = []
        with self._lock:
            for place, name in candidates:
                version, problem = self._look(place, name)
                if version is None:
                    failures += [problem] if problem else []
                    continue
                where = (place, name, version)
                try:
                    if (*where, key) not in self._loaded:
                        self._loaded[*where, key] = load(*where)
                except _UNUSABLE as error:
                    failures.append(str(error))
                else:
                    return (self._loaded[*where, key], *where), tuple(failures)
        return None, tuple(failures)

    def _look(self, place: str, name: str) -> tuple[str | None, str]:
        """Find a model's version in use; the registry is asked once, then by `refresh`."""
        if (place, name) not in self._versions:
            self._versions[place, name] = _read_version(place, name)
        return self._versions[place, name]


def _read_version(place: str, name: str) -> tuple[str | None, str]:
    if "://" not in place and not (Path(place) / name / _POINTERS).is_file():
        return None, ""  # without importing what reads models
    try:
        pointers = VersionedFiles(url=place).find_versions(name)
    except _UNUSABLE as error:
        return None, f"models at {place} cannot be read: {error}"
    return pointers.pinned or pointers.latest, ""


def _add_analytic(
    model: EvidenceModel, device: DeviceDescription, *, is_own: bool
) -> EvidenceModel:
    """Have a model know how far the analytic model of CPUs is off, if not by the device's rows."""
    if device.kind is not DeviceKind.CPU:
        return model
    if is_own and Kind.ANALYTIC.value in model.intervals:
        from kernelcast.analytic.cpu.estimate import REVISION
        from kernelcast.training.settings import CPU_MODEL

        if model.facts.get(CPU_MODEL) == REVISION:
            return model
    return know_analytic(model, name_runtime(device.id))
