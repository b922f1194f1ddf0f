import os
from pathlib import Path

import pytest

from kernelcast.launches.machines import machine_path
from kernelcast.predictor.confinement import Protection
from kernelcast.service import settings as settings_module
from kernelcast.service.service import Service
from kernelcast.service.settings import ServiceSettings
from kernelcast.service.telemetry import Metrics
from kernelcast.workers import Confinement, Task, run_isolated

VIEW: Task[tuple[str, ...]] = Task(
    entry="kernelcast.workers.sandbox:list_view", returns=tuple[str, ...]
)


def test_what_a_service_keeps_is_hidden_and_machines_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Confined processes see calibrated machines, and nothing else that the service works on."""
    tmp_path.chmod(0o755)
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path))
    # As if all of it lay in a folder that runtimes need.
    monkeypatch.setenv("LD_LIBRARY_PATH", os.pathsep.join((str(tmp_path), str(Path.cwd()))))
    for name in ("rows.sqlite", "rows.sqlite-wal", "tokens"):
        (tmp_path / name).write_text("secret")
    machine_path("one").parent.mkdir()
    machine_path("one").write_text("id: one")
    settings = ServiceSettings(token_file=tmp_path / "tokens")
    protection = settings.protect(str(tmp_path / "rows.sqlite"))
    if protection.confinement is None:
        pytest.skip(protection.failure)
    inside = "/tmp/data/kernelcast/machines/one.yaml"
    asked = (*map(str, tmp_path.rglob("*.*")), str(tmp_path / "tokens"), inside)
    seen = run_isolated(VIEW, asked, timeout_s=60, subject="d", confinement=protection.confinement)
    assert seen == (inside,)


def test_a_gap_is_told_where_kernels_may_run() -> None:
    """Whoever allows to run strangers' kernels hears what protects, unless they are confined."""
    allowed = ServiceSettings(allow_run=True)
    missing = Protection(failure="there is no bwrap; install bubblewrap")
    assert "install bubblewrap" in allowed.describe_gap(missing)
    assert "--sandbox off" in allowed.describe_gap(Protection())
    assert allowed.describe_gap(Protection(confinement=Confinement())) == ""
    assert ServiceSettings().describe_gap(missing) == ""


def test_samplings_of_a_service_are_confined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What protects a service is given to each of its samplings."""
    protection = Protection(confinement=Confinement())
    monkeypatch.setattr(settings_module, "choose_protection", lambda *_: protection)
    settings = ServiceSettings(database=str(tmp_path / "rows.sqlite"), registry=str(tmp_path))
    service = Service(settings, Metrics())
    try:
        executor = service.estimating._backend._predictor._options.executor  # type: ignore[attr-defined]
        assert executor.children.confinement is protection.confinement
        assert service.protection.name == "bubblewrap"
    finally:
        service.state.close()
