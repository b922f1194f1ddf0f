"""The API's description is the API."""

import runpy
from pathlib import Path
from typing import Any

import yaml

DOCS = Path(__file__).resolve().parents[3] / "docs"
SCRIPT: dict[str, Any] = runpy.run_path(str(DOCS / "make_openapi.py"))


def test_the_committed_description_is_up_to_date() -> None:
    """Else run `python docs/make_openapi.py`."""
    text = (DOCS / "reference" / "openapi.yaml").read_text(encoding="utf-8")
    assert text == SCRIPT["write"](SCRIPT["make_description"]())


def test_a_change_needs_another_version() -> None:
    """A route that goes or comes is noticed under the same version, and allowed under another."""
    known = SCRIPT["make_description"]()
    paths = {path: one for path, one in known["paths"].items() if path != "/v1/audit"}
    changed = {**known, "paths": paths}
    changed["info"] = {**known["info"], "x-content-digest": SCRIPT["digest"](changed)}
    assert SCRIPT["needs_new_version"](changed, known)
    changed["info"] = {**changed["info"], "version": "9.0.0"}
    assert not SCRIPT["needs_new_version"](changed, known)


def test_every_route_says_what_it_does_and_how_it_fails() -> None:
    """With a sentence, and the one shape of errors."""
    described = yaml.safe_load((DOCS / "reference" / "openapi.yaml").read_text(encoding="utf-8"))
    for path, methods in described["paths"].items():
        for one in methods.values():
            assert one.get("description"), path
            assert "4XX" in one["responses"], path
            schema = one["responses"]["4XX"]["content"]["application/json"]["schema"]
            assert schema["$ref"].endswith("/ErrorAnswer")
