"""Registries with a correction that answers use."""

from dataclasses import replace

from kernelcast.models.evidence.model import BUILT_IN, publish_evidence
from kernelcast.models.time_models import FittedModel
from kernelcast.models.versioned_files import VersionedFiles
from kernelcast.sampling.plan import SAMPLER


def publish_correction(
    registry: VersionedFiles, hybrid: FittedModel, name: str = "evidence/fake-device-0000"
) -> str:
    """Add an evidence model with the hybrid's correction; give its version."""
    facts: dict[str, float | str] = {"rows": 40, "data_digest": str(hybrid.facts["data_digest"])}
    model = replace(BUILT_IN, correction=hybrid.correction, facts=facts, samplers=(SAMPLER,))
    return publish_evidence(registry, name, model)
