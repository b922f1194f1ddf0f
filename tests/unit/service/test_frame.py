"""What holds for every request, its description, and how a service is run and deployed."""

import logging
import os
import re
import runpy
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient
from pydantic import TypeAdapter

from kernelcast.cli import app
from kernelcast.predictor.confinement import SandboxMode
from kernelcast.records import errors
from kernelcast.records.errors import KernelcastError
from kernelcast.service import ServiceSettings
from kernelcast.service.errors import as_api_error
from kernelcast.service.routes.estimates import CorrectionIn, ObservationsRequest
from kernelcast.service.routes.jobs import CompareOptions, JobRequest
from kernelcast.service.settings import CONVERTER
from kernelcast.service.telemetry import share_counts
from support.service_backend import open_client, service_of


def test_every_kind_of_error_has_a_code_of_its_own() -> None:
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


DEPLOY = Path(__file__).parents[3] / "docs" / "how-to" / "deploy"


def test_expressions_name_what_is_counted(client: TestClient) -> None:
    """Each metric of the board and the alerts is one of `/metrics`."""
    described = client.get("/metrics").text
    known = dict(re.findall(r"^# TYPE (\S+) (\w+)$", described, re.MULTILINE))
    texts = [(DEPLOY / name).read_text() for name in ("kernelcast-alerts.yml", "grafana.json")]
    named = re.findall(r"\b((?:kernelcast|process)_[a-z_]+)", "".join(texts))
    assert len(named) > 20
    for name in named:
        bare = re.sub(r"_(total|bucket|count|sum)$", "", name)
        assert name in known or known.get(bare) == "histogram" or f"{bare}_total" in known, name


@pytest.mark.parametrize(
    ("name", "command"),
    [
        # Exposes less than systemd calls medium.
        ("kernelcast.service",
         "systemd-analyze security --offline=true --threshold=40 --no-pager"),
        ("kernelcast-alerts.yml", "promtool check rules"),
        ("prometheus.yml", "promtool check config --syntax-only"),
        ("Caddyfile", "caddy validate --adapter caddyfile --config"),
        ("Dockerfile", "hadolint"),
    ],
)  # fmt: skip
def test_each_files_own_tool_accepts_it(name: str, command: str) -> None:
    """Where the tool is; nginx.conf serves in `test_service_nginx`."""
    program, *options = command.split()
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"no {program}")
    done = subprocess.run(
        [found, *options, str(DEPLOY / name)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr


def test_the_image_is_built_of_what_is_there() -> None:
    """Copies files that the list of ignored ones lets through."""
    root, path = DEPLOY.parents[2], DEPLOY / "Dockerfile"
    sent = {
        line[1:] for line in (root / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    }
    copied = re.findall(r"^COPY (?!--)(.+) \S+$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name for line in copied for name in line.split()} == sent
    assert all((root / name).exists() for name in sent)


def test_counts_of_several_processes_go_with_their_service(tmp_path: Path) -> None:
    """However it ends; what one has left that was killed goes at the next start."""
    counts = tmp_path / "counts"
    counts.mkdir()
    (counts / "left").touch()
    with share_counts(counts):
        assert os.environ["PROMETHEUS_MULTIPROC_DIR"] == str(counts)
        assert not [*counts.iterdir()]
    assert not counts.exists()
    assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ


def _run(*words: str) -> Any:  # noqa: ANN401 - click's result
    return CliRunner().invoke(app, ["serve", *words])


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[ServiceSettings]:
    """Give the settings that the service would be run with."""
    found: list[ServiceSettings] = []

    def keep(settings: ServiceSettings, tell: Callable[[str], None]) -> None:
        found.append(settings)
        tell("http://127.0.0.1:8372/")

    monkeypatch.setattr("kernelcast.service.app.serve", keep)
    return found


def test_options_become_settings(folder: Path, served: list[ServiceSettings]) -> None:
    """And survive the way to other processes; it is careful unless told otherwise."""
    assert _run().exit_code == 0
    usual = served.pop()
    assert (usual.is_loopback, usual.allow_run, usual.needs_tokens) == (True, False, False)
    database = str(folder / "x.sqlite")
    result = _run("--host", "0.0.0.0", "--port", "1", "--workers", "2", "--allow-run", "--no-jobs",
                  "--queue", "3", "--timeout", "9", "--sandbox", "off",
                  "--database", database)  # fmt: skip
    assert result.exit_code == 0
    assert "no tokens yet" in result.stderr
    settings = served.pop()
    assert (settings.host, settings.port, settings.workers) == ("0.0.0.0", 1, 2)
    assert settings.allow_run
    assert not settings.runs_jobs
    assert settings.needs_tokens
    assert (settings.limits.queue, settings.limits.sample_seconds) == (3, 9.0)
    assert settings.sandbox is SandboxMode.OFF
    assert CONVERTER.loads(CONVERTER.dumps(settings), ServiceSettings) == settings
    assert _run("--trusted-proxy", "127.0.0.1", "--trusted-proxy", "10.0.0.0/8").exit_code == 0
    (proxied,) = served
    assert proxied.trusted_proxies == ("127.0.0.1", "10.0.0.0/8")
    assert proxied.needs_tokens  # on loopback too


def test_what_keeps_it_from_starting_is_told(folder: Path, served: list[ServiceSettings]) -> None:
    """Before anything listens."""
    folder.mkdir()
    path = folder / "tokens"
    path.write_text("")
    path.chmod(0o644)
    for words in (("--token-file", str(path)), ("--database", "mysql://x")):
        assert _run(*words).exit_code == 2
    (folder / "other.sqlite").write_text("no database, but long enough to be read as one")
    assert _run("--database", str(folder / "other.sqlite")).exit_code == 1
    assert served == []
