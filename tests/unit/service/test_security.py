"""Who may do what."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.records.errors import InputError
from kernelcast.service import ServiceSettings
from kernelcast.service.authentication import make_token, read_token_file
from support.service_attacks.target import add_tokens
from support.service_backend import FakeBackend, Plain, estimate, open_client, send_estimate


@pytest.fixture
def guarded(settings: ServiceSettings) -> ServiceSettings:
    """Give settings of a service that needs tokens."""
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


def test_what_is_no_token_is_refused(guarded: ServiceSettings, backend: FakeBackend) -> None:
    """401 with the scheme that is wanted."""
    with open_client(guarded, backend) as client:
        for header in (b"", b"Bearer", b"Bearer x", b"Basic abc", b"kc_0_1", b"Bearer \xff"):
            answer = client.get("/v1/devices", headers={"authorization": header})
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"


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


def test_a_strangers_body_is_not_read(guarded: ServiceSettings, backend: FakeBackend) -> None:
    """401 without it; where one signs in, a token's worth of a body is read."""
    body = b"x" * 5000
    form = {"content-type": "application/x-www-form-urlencoded", "origin": "http://127.0.0.1"}
    with open_client(guarded, backend) as client:
        refused = client.post("/v1/observations", content=body)
        assert (refused.status_code, refused.headers["connection"]) == (401, "close")
        assert client.post("/sign-in", content=body, headers=form).status_code == 413
