"""``kernelcast serve`` and its tokens."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kernelcast.cli import app
from kernelcast.predictor.confinement import SandboxMode
from kernelcast.service import ServiceSettings
from kernelcast.service.settings import CONVERTER


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
    (settings,) = served
    assert (settings.host, settings.port, settings.workers) == ("0.0.0.0", 1, 2)
    assert settings.allow_run
    assert not settings.runs_jobs
    assert settings.needs_tokens
    assert (settings.limits.queue, settings.limits.sample_seconds) == (3, 9.0)
    assert settings.sandbox is SandboxMode.OFF
    assert CONVERTER.loads(CONVERTER.dumps(settings), ServiceSettings) == settings


@pytest.mark.usefixtures("folder")
def test_a_trusted_proxy_needs_tokens(served: list[ServiceSettings]) -> None:
    """On loopback too."""
    assert _run("--trusted-proxy", "127.0.0.1", "--trusted-proxy", "10.0.0.0/8").exit_code == 0
    assert served[0].trusted_proxies == ("127.0.0.1", "10.0.0.0/8")
    assert served[0].needs_tokens


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
