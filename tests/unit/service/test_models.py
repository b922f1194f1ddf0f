"""Models are listed, chosen and rolled back."""

import pytest
from fastapi.testclient import TestClient

from kernelcast.models.catalogue import make_model
from kernelcast.models.evidence.built_in import BUILT_IN
from kernelcast.models.evidence.registry import publish_evidence
from kernelcast.models.persistence import ModelRegistry
from kernelcast.service import ServiceSettings
from support.synthetic_rows import SCHEMA, make_rows

NAME = "linear/fake-device-0000"


@pytest.fixture
def versions(settings: ServiceSettings) -> list[str]:
    """Give a registry with three versions of a model."""
    registry = ModelRegistry(url=str(settings.registry))
    models = [make_model("linear").fit(make_rows(kernels=4, seed=seed)) for seed in range(3)]
    return [registry.publish(NAME, one, SCHEMA) for one in models]


def test_models_and_what_is_known_of_them(client: TestClient, versions: list[str]) -> None:
    """Versions, the one in use, and its report."""
    found = client.get("/v1/models").json()["models"]
    assert [(one["name"], one["versions"], one["used"]) for one in found] == [
        (NAME, versions, versions[2])
    ]
    assert client.get(f"/v1/models/{NAME}").json() == found[0]
    report = client.get(f"/v1/models/{NAME}/report").json()
    assert report["version"] == versions[2]
    assert report["schema_id"] == SCHEMA.id
    assert report["validation"] is None
    older = client.get(f"/v1/models/{NAME}/report", params={"version": "0001"}).json()
    assert older["version"] == versions[0]
    unknown = client.get(f"/v1/models/{NAME}/report", params={"version": "0009"})
    assert unknown.status_code == 422


def test_what_weighs_evidence_has_no_report(client: TestClient, settings: ServiceSettings) -> None:
    """It is listed like a model, and nobody is told of a report that it does not have."""
    publish_evidence(ModelRegistry(url=str(settings.registry)), "evidence_cpu", BUILT_IN)
    assert client.get("/v1/models/evidence_cpu").json()["name"] == "evidence_cpu"
    answer = client.get("/v1/models/evidence_cpu/report")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_report")


def test_a_version_is_activated_and_rolled_back(client: TestClient, versions: list[str]) -> None:
    """Both are written down."""
    chosen = client.post(f"/v1/models/{NAME}/activate", json={"version": "0001"}).json()
    assert chosen["used"] == chosen["pinned"] == versions[0]
    assert (
        client.post(f"/v1/models/{NAME}/activate", json={"version": None}).json()["used"]
        == (versions[2])
    )
    assert client.post(f"/v1/models/{NAME}/rollback").json()["used"] == versions[1]
    client.post(f"/v1/models/{NAME}/rollback")
    refused = client.post(f"/v1/models/{NAME}/rollback")
    assert refused.status_code == 422
    actions = [one["action"] for one in client.get("/v1/audit").json()["entries"]]
    assert actions == ["roll_back_model"] * 3 + ["activate_model"] * 2


def test_machine_descriptions_are_shown(client: TestClient) -> None:
    """Those that are shipped."""
    found = client.get("/v1/machines").json()["machines"]
    name = found[0]["name"]
    assert found[0]["is_shipped"]
    assert client.get(f"/v1/machines/{name}").json()["machine"]


def test_devices_are_shown(client: TestClient) -> None:
    """By id or its beginning; an id that could be several is refused."""
    found = client.get("/v1/devices").json()["devices"]
    assert [one["is_calibrated"] for one in found] == [False, False]
    assert client.get("/v1/devices/fake").json() == found[0]
