"""Who may do what, and what is kept from those who may not."""

import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.launches.machines import machine_path
from kernelcast.records.errors import InputError
from kernelcast.service import ServiceSettings
from kernelcast.service import settings as settings_module
from kernelcast.service.authentication import make_token, read_token_file
from kernelcast.service.service import Service
from kernelcast.service.telemetry import Metrics
from kernelcast.workers import Confinement, Task, run_isolated
from support.service_attacks.target import add_tokens
from support.service_backend import FakeBackend, Plain, estimate, open_client, send_estimate


@pytest.fixture
def guarded(settings: ServiceSettings) -> ServiceSettings:
    return replace(settings, require_tokens=True)


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_another_address_needs_tokens() -> None:
    """Only loopback goes without."""
    hosts = ("0.0.0.0", "192.168.1.7", "::", "example.org", "127.0.0.1", "localhost", "::1")
    assert [one for one in hosts if not ServiceSettings(host=one).needs_tokens] == [*hosts[4:]]


def test_running_kernels_needs_scope_and_permission(
    guarded: ServiceSettings, backend: FakeBackend, problem: Plain
) -> None:
    """Token and service must allow it; what was sampled for a runner is not given to others."""
    tokens = add_tokens(str(guarded.database))
    runner, reader = tokens["runner"], tokens["reader"]
    for allow_run, statuses in ((True, [200, 403, 401]), (False, [403, 403, 401])):
        found = []
        with open_client(guarded, backend, allow_run=allow_run) as client:
            for token in (runner, reader, "x"):
                client.headers = _bearer(token)
                found.append(send_estimate(client, problem).status_code)
        assert found == statuses
    backend.is_calibrated = True
    tiers = []
    with open_client(guarded, backend) as client:
        for token in (runner, reader):
            client.headers = _bearer(token)
            tiers.append(estimate(client, problem)["tier"])
    assert tiers == ["linear", "analytic"]


def test_secrets_are_kept_nowhere(
    guarded: ServiceSettings, backend: FakeBackend, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the database nor the log holds a secret, right or wrong."""
    right = add_tokens(str(guarded.database))["reader"]
    wrong = "kc_0123456789ab_" + "w" * 43
    with caplog.at_level(logging.DEBUG), open_client(guarded, backend) as client:
        answers = [client.get("/v1/devices", headers=_bearer(one)) for one in (right, wrong)]
    assert [one.status_code for one in answers] == [200, 401]
    logged = "".join(str(vars(one)) for one in caplog.records)
    folder = Path(str(guarded.database)).parent
    stored = b"".join(one.read_bytes() for one in folder.glob("store.sqlite*"))
    for secret in (right[16:], wrong[16:]):
        assert secret not in logged
        assert secret.encode() not in stored


def test_tokens_of_a_file(guarded: ServiceSettings, backend: FakeBackend, tmp_path: Path) -> None:
    """A host's administrator can keep tokens in a file that only they can read."""
    text, _ = make_token("x", frozenset())
    path = tmp_path / "tokens"
    path.write_text(f"# ours\n\nestimate,run {text}\n")
    path.chmod(0o600)
    with open_client(guarded, backend, token_file=path) as client:
        for asked, status in (("/v1/devices", 200), ("/v1/audit", 403)):
            assert client.get(asked, headers=_bearer(text)).status_code == status
    path.chmod(0o640)
    with pytest.raises(InputError, match="chmod 600"):
        read_token_file(path)
    path.chmod(0o600)
    for line in ("nonsense", "estimate short", f"fly {text}"):
        path.write_text(f"{line}\n")
        with pytest.raises(InputError):
            read_token_file(path)
    with pytest.raises(InputError, match="token name"):
        make_token("a\0b", frozenset())


def test_strangers_are_refused_unread(guarded: ServiceSettings, backend: FakeBackend) -> None:
    """401 with the scheme that is wanted; where one signs in, a token's worth of a body is read."""
    body = b"x" * 5000
    form = {"content-type": "application/x-www-form-urlencoded", "origin": "http://127.0.0.1"}
    with open_client(guarded, backend) as client:
        for header in (b"", b"Bearer", b"Bearer x", b"Basic abc", b"kc_0_1", b"Bearer \xff"):
            answer = client.get("/v1/devices", headers={"authorization": header})
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        refused = client.post("/v1/observations", content=body)
        assert (refused.status_code, refused.headers["connection"]) == (401, "close")
        assert client.post("/sign-in", content=body, headers=form).status_code == 413


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
    confinement, failure = settings.protect(str(tmp_path / "rows.sqlite"))
    if confinement is None:
        pytest.skip(failure)
    inside = "/tmp/data/kernelcast/machines/one.yaml"
    asked = (*map(str, tmp_path.rglob("*.*")), str(tmp_path / "tokens"), inside)
    seen = run_isolated(VIEW, asked, timeout_s=60, subject="d", confinement=confinement)
    assert seen == (inside,)


def test_a_gap_is_told_where_kernels_may_run() -> None:
    """Whoever allows to run strangers' kernels hears what protects, unless they are confined."""
    allowed = ServiceSettings(allow_run=True)
    missing = (None, "there is no bwrap; install bubblewrap")
    assert "install bubblewrap" in allowed.describe_gap(*missing)
    assert "--sandbox off" in allowed.describe_gap(None, "")
    assert allowed.describe_gap(Confinement(), "") == ""
    assert ServiceSettings().describe_gap(*missing) == ""


def test_samplings_of_a_service_are_confined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What protects a service is given to each of its samplings."""
    confinement = Confinement()
    monkeypatch.setattr(settings_module, "choose_protection", lambda *_: (confinement, ""))
    settings = ServiceSettings(database=str(tmp_path / "rows.sqlite"), registry=str(tmp_path))
    service = Service(settings, Metrics())
    try:
        executor = service.estimating._backend._predictor._options.executor  # type: ignore[attr-defined]
        assert executor.children.confinement is confinement
        assert service.sandbox == "bubblewrap"
    finally:
        service.state.close()
