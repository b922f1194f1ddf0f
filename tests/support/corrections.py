"""Registries with a correction that answers use."""

from dataclasses import replace

from kernelcast.models.evidence.model import BUILT_IN, model_to_json
from kernelcast.models.time_models import FittedModel
from kernelcast.models.validation.report import StoredModel, write_model
from kernelcast.models.versioned_files import VersionedFiles
from kernelcast.sampling.plan import SAMPLER


def publish_correction(
    registry: VersionedFiles, hybrid: FittedModel, name: str = "evidence/fake-device-0000"
) -> str:
    """Add an evidence model with the hybrid's correction; give its version."""
    facts: dict[str, float | str] = {"rows": 40, "data_digest": str(hybrid.facts["data_digest"])}
    model = replace(BUILT_IN, correction=hybrid.correction, facts=facts, samplers=(SAMPLER,))
    return registry.publish(name, model_to_json(model))


def publish_model(registry: VersionedFiles, name: str, model: FittedModel, *samplers: int) -> str:
    """Add a trained model; give its version."""
    stored = StoredModel(name=name, model=model, samplers=samplers)
    return registry.publish(name, write_model(stored))
