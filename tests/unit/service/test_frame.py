"""What holds for every request, and for the description of all of them."""

import logging
import runpy
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import TypeAdapter

from kernelcast.records import errors
from kernelcast.records.errors import KernelcastError
from kernelcast.service import ServiceSettings
from kernelcast.service.errors import as_api_error
from kernelcast.service.routes.jobs import CompareOptions, JobRequest
from kernelcast.service.schemas import CorrectionIn, ObservationsRequest
from support.service_backend import open_client, service_of


def test_every_kind_of_error_has_a_code_of_its_own() -> None:
    """A program can tell all of our errors apart."""
    kinds = [one for one in vars(errors).values() if isinstance(one, type)]
    codes = {as_api_error(one("x")).code for one in kinds if issubclass(one, KernelcastError)}
    assert len(codes) == len(kinds)


def test_a_bug_tells_the_request_id_and_no_more(
    settings: ServiceSettings, problem: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    """A caller sees no traceback; the log has it."""
    with open_client(settings) as client:
        service_of(client).devices.choose = None  # type: ignore[method-assign,assignment]
        with caplog.at_level(logging.ERROR, "kernelcast.service"):
            answer = client.post("/v1/estimates", json={"problem": problem})
    assert answer.status_code == 500
    assert answer.headers["x-request-id"] in answer.json()["error"]["message"]
    assert "NoneType" not in answer.text
    assert any(one.exc_info for one in caplog.records)


def test_a_changed_description_needs_another_version() -> None:
    """A route that goes or comes is noticed under the same version, and allowed under another."""
    docs = Path(__file__).resolve().parents[3] / "docs"
    script: dict[str, Any] = runpy.run_path(str(docs / "make_openapi.py"))
    known = script["make_description"]()
    paths = {path: one for path, one in known["paths"].items() if path != "/v1/audit"}
    changed = {**known, "paths": paths}
    changed["info"] = {**known["info"], "x-content-digest": script["digest"](changed)}
    assert script["needs_new_version"](changed, known)
    changed["info"] = {**changed["info"], "version": "9.0.0"}
    assert not script["needs_new_version"](changed, known)


def test_examples_of_the_description_are_taken(client: TestClient) -> None:
    """Each is a request that the service understands."""
    schemas = client.get("/v1/openapi.json").json()["components"]["schemas"]
    for path, name in (("/v1/estimates", "EstimateRequest"), ("/v1/problems", "ProblemIn")):
        asked = {**schemas[name]["example"]}
        if "devices" in asked:
            asked["devices"] = ["fake-device-0000"]
        assert client.post(path, json=asked).status_code == 200
    for name, kind in (
        ("ObservationsRequest", ObservationsRequest), ("CorrectionIn", CorrectionIn),
        ("CollectJob", JobRequest), ("CompareOptions", CompareOptions),
    ):  # fmt: skip
        TypeAdapter(kind).validate_python(schemas[name]["example"])
