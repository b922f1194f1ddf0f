"""Learned models as an administrator sees them: versions, the one in use, how good each is."""

import json
from typing import Any

from kernelcast.models.evidence.stored import load_evidence, model_to_json
from kernelcast.models.validation.report import report_to_json
from kernelcast.models.versioned_files import ModelVersions, VersionedFiles
from kernelcast.training.registry import (
    find_model,
    find_version,
    is_evidence,
    list_models,
    open_registry,
)


def list_known_models(registry: str | None = None) -> tuple[ModelVersions, ...]:
    """Give all models of a registry."""
    return list_models(open_registry(registry))


def show_model(
    name: str, version: str | None = None, registry: str | None = None
) -> tuple[ModelVersions, dict[str, Any]]:
    """Give the versions of a model, and what is known of one of them."""
    place = open_registry(registry)
    versions = find_model(place, name)
    wanted = find_version(versions, version) if version else versions.used
    if is_evidence(name):
        return versions, {"version": wanted, **describe_evidence(place, name, wanted)}
    stored = place.load(name, wanted)
    report = stored.report
    return versions, {
        "version": wanted,
        "schema": stored.schema.id,
        "features": list(stored.schema.names),
        "learned": stored.model.describe(),
        "trained_with": dict(stored.versions),
        "validation": None if report is None else json.loads(report_to_json(report)),
    }


def describe_evidence(place: VersionedFiles, name: str, version: str | None) -> dict[str, Any]:
    """Give what is known of a version of an evidence model."""
    model = load_evidence(place, name, version)
    return {
        "calibrated": dict(model.facts),
        "samplers": list(model.samplers),
        "numbers": json.loads(model_to_json(model)),
    }


def activate_version(name: str, version: str | None, registry: str | None = None) -> ModelVersions:
    """Use a version whatever is trained later; None means the latest again."""
    place = open_registry(registry)
    versions = find_model(place, name)
    place.pin(name, None if version is None else find_version(versions, version))
    return find_model(place, name)


def roll_back(name: str, registry: str | None = None) -> ModelVersions:
    """Make the version before the latest the latest; nothing is deleted."""
    place = open_registry(registry)
    find_model(place, name)
    place.roll_back(name)
    return find_model(place, name)
