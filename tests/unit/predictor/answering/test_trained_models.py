"""Where estimates find models, and what they say of those that cannot be used."""

from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.features.vector import make_schema
from kernelcast.models.evidence.model import BUILT_IN, model_to_json
from kernelcast.models.time_models import FittedModel
from kernelcast.models.versioned_files import VersionedFiles
from kernelcast.predictor.answering.trained_models import TrainedModels, find_shipped
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.sampling.plan import SAMPLER
from support.corrections import publish_correction, publish_model
from support.fake_executor import DEVICE

SCHEMA = make_schema()


def test_shipped_models_come_last(
    registry: VersionedFiles, hybrid: FittedModel, tmp_path: Path
) -> None:
    """A model of the package serves where the registry has none, and only there."""
    shipped = VersionedFiles(url=str(tmp_path / "shipped"))
    for name in (f"evidence/{DEVICE.id}", "evidence/other"):
        publish_correction(shipped, hybrid, name)
    models = TrainedModels(registry.url, shipped=shipped.url)
    places = [models.find_evidence(replace(DEVICE, id=one)).facts.place
              for one in (DEVICE.id, "other")]  # fmt: skip
    assert places == [registry.url, shipped.url]
    assert Path(find_shipped()).name == "pretrained"


def test_what_is_shipped_can_be_used() -> None:
    """Every runtime that has a model has one of today's sampler and format."""
    models = TrainedModels("/nowhere", shipped=find_shipped())
    names = [one.name for one in (Path(find_shipped()) / "evidence_runtime").iterdir()]
    assert names
    for name in names:
        found = models.find_evidence(replace(DEVICE, id=f"{name}-some-device"))
        assert "same runtime" in found.origin
        assert not found.failures


def test_models_that_do_not_fit_are_failures_that_say_so(
    registry: VersionedFiles, hybrid: FittedModel
) -> None:
    """Other features, older samples and damaged files are passed over, each with its reason."""
    publish_model(registry, f"hybrid/{DEVICE.id}", hybrid)
    publish_model(registry, "hybrid/old", hybrid, SAMPLER - 1)
    models = TrainedModels(registry.url, shipped="")
    assert models.find(DEVICE.id, SCHEMA, "hybrid")[0] is not None
    narrow = FeatureSchema(names=SCHEMA.names[1:], version=SCHEMA.version)
    found, failures = models.find(DEVICE.id, narrow, "hybrid")
    assert found is None
    assert narrow.id in failures[0]
    _, (old,) = models.find("old", SCHEMA, "hybrid")
    assert f"revision {SAMPLER - 1} of the sampler, not {SAMPLER}" in old
    old = replace(BUILT_IN, samplers=(SAMPLER - 1,))
    registry.publish("evidence/old", model_to_json(old))
    (path,) = (Path(registry.url) / "evidence" / DEVICE.id).glob("0*.json")
    path.write_bytes(path.read_bytes()[:-10])
    for device_id, why in ((DEVICE.id, "not the file that was published"), ("old", "revision")):
        found = models.find_evidence(replace(DEVICE, id=device_id))
        assert found.origin == "built in"
        assert why in found.failures[0]


@pytest.mark.parametrize("url", ["nowhere://models", "http://127.0.0.1:9/models"])
def test_a_place_that_cannot_be_read_is_a_failure(url: str) -> None:
    """An address that nobody answers at costs the model, with a reason."""
    models = TrainedModels(url, shipped="")
    for failures in (
        models.find(DEVICE.id, SCHEMA, "ridge")[1], models.find_evidence(DEVICE).failures
    ):  # fmt: skip
        assert failures
        assert all("cannot be read" in one for one in failures)
