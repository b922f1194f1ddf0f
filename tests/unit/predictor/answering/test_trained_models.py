from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.features.vector.catalogue import make_schema
from kernelcast.models.persistence import ModelRegistry
from kernelcast.models.protocol import FittedModel
from kernelcast.predictor.answering.trained_models import TrainedModels, find_shipped
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.sampling.plan import SAMPLER

DEVICE = "fake-device-0000"
SCHEMA = make_schema()


class Clock:
    """Tells the time that a test sets."""

    now_s = 0.0

    def __call__(self) -> float:
        """Give it."""
        return self.now_s


def test_finds_nothing_where_there_is_nothing(tmp_path: Path) -> None:
    """A registry that does not exist is no failure."""
    trained_models = TrainedModels(str(tmp_path / "none"), shipped=str(tmp_path / "neither"))
    assert not trained_models.has(DEVICE)
    lookup = trained_models.find(DEVICE, SCHEMA)
    assert lookup.found is None
    assert lookup.failures == ()


def test_finds_the_devices_own_model(registry: ModelRegistry) -> None:
    """The device's model is found, with its version and the data it was trained on."""
    trained_models = TrainedModels(registry.url, shipped="")
    assert trained_models.has(DEVICE)
    found = trained_models.find(DEVICE, SCHEMA).found
    assert found is not None
    assert found.facts.name == f"hybrid/{DEVICE}"
    assert found.facts.version.startswith("0001-")
    assert found.facts.rows == 40
    assert len(found.facts.data_digest) == 64
    assert trained_models.find("another device", SCHEMA).found is None


def test_shipped_models_come_last(
    registry: ModelRegistry, hybrid: FittedModel, tmp_path: Path
) -> None:
    """A model of the package serves where the registry has none, and only there."""
    shipped = ModelRegistry(url=str(tmp_path / "shipped"))
    for name in (f"hybrid/{DEVICE}", "hybrid/other"):
        shipped.publish(name, hybrid, SCHEMA)
    trained_models = TrainedModels(registry.url, shipped=shipped.url)
    places = [
        found.facts.place
        for one in (DEVICE, "other")
        if (found := trained_models.find(one, SCHEMA).found) is not None
    ]
    assert places == [registry.url, shipped.url]
    assert Path(find_shipped()).name == "pretrained"


def test_another_schema_is_a_failure_that_says_so(registry: ModelRegistry) -> None:
    """A model of other features is passed over; the reason names both schemas."""
    other = FeatureSchema(names=SCHEMA.names[1:], version=SCHEMA.version)
    lookup = TrainedModels(registry.url, shipped="").find(DEVICE, other)
    assert lookup.found is None
    assert SCHEMA.id in lookup.failures[0]
    assert other.id in lookup.failures[0]


def test_a_model_of_older_samples_is_a_failure_that_says_so(
    registry: ModelRegistry, hybrid: FittedModel
) -> None:
    """A model that knows how far off another sampler is is passed over."""
    registry.publish("hybrid/old", hybrid, SCHEMA, samplers=(SAMPLER - 1,))
    lookup = TrainedModels(registry.url, shipped="").find("old", SCHEMA)
    assert lookup.found is None
    assert f"revision {SAMPLER - 1} of the sampler, not {SAMPLER}" in lookup.failures[0]


def test_a_damaged_file_is_a_failure(registry: ModelRegistry) -> None:
    """A file that is not the one that was published is not loaded."""
    (path,) = Path(registry.url).rglob("*.skops")
    path.write_bytes(path.read_bytes()[:-10])
    lookup = TrainedModels(registry.url, shipped="").find(DEVICE, SCHEMA)
    assert lookup.found is None
    assert "not the file that was published" in lookup.failures[0]


def test_new_versions_are_seen_after_a_while(registry: ModelRegistry, hybrid: FittedModel) -> None:
    """A version is loaded once; a newer one, and a pinned one, are found at the next look."""
    clock = Clock()
    trained_models = TrainedModels(registry.url, shipped="", recheck_s=5.0, clock=clock)
    first = trained_models.find(DEVICE, SCHEMA).found
    assert first is not None
    assert trained_models.find(DEVICE, SCHEMA).found is first
    newer = registry.publish(f"hybrid/{DEVICE}", hybrid, SCHEMA)
    assert trained_models.find(DEVICE, SCHEMA).found is first
    assert trained_models.refresh() == 0
    clock.now_s = 6.0
    assert trained_models.refresh() == 1
    second = trained_models.find(DEVICE, SCHEMA).found
    assert second is not None
    assert second.facts.version == newer
    registry.pin(f"hybrid/{DEVICE}", first.facts.version)
    clock.now_s = 12.0
    pinned = trained_models.find(DEVICE, SCHEMA).found
    assert pinned is not None
    assert pinned.facts == replace(first.facts)


@pytest.mark.parametrize("url", ["nowhere://models", "http://127.0.0.1:9/models"])
def test_a_place_that_cannot_be_read_is_a_failure(url: str) -> None:
    """An address that nobody answers at costs the model, with a reason."""
    lookup = TrainedModels(url, shipped="").find(DEVICE, SCHEMA)
    assert lookup.found is None
    assert all("cannot be read" in one for one in lookup.failures)
    assert lookup.failures
