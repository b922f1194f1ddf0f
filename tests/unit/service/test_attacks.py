"""Every attack of the table gets a true refusal; nothing is shown, proven or run."""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # as in conftest.py
    from fastapi.testclient import TestClient

from kernelcast.service import Limits, ServiceSettings, create_app
from support.service_attacks.attacks import ON_DEVICES, Attack, list_attacks
from support.service_attacks.target import Secret, Target, add_tokens, make_secret
from support.service_backend import FakeBackend, make_devices

_ATTACKS = [one for one in list_attacks() if one.part != ON_DEVICES]
_DEVICE = make_devices()[0].id
_TOKENS = {"runner": "r", "reader": "e", "admin": "a"}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Give a service that lives as long as these tests."""
    folder = tmp_path_factory.mktemp("attacks")
    with pytest.MonkeyPatch.context() as patch, make_secret() as secret:
        patch.setenv("KERNELCAST_DATA", str(folder))
        database = str(folder / "rows.sqlite")
        settings = ServiceSettings(
            database=database,
            registry=str(folder / "models"),
            allow_run=True,
            require_tokens=True,
            runs_jobs=False,
            limits=Limits(wrong_tokens=1000),
        )
        backend = FakeBackend(database)
        app = create_app(settings, backend=backend)
        with TestClient(app, base_url="http://127.0.0.1") as client:
            tokens = add_tokens(database)
            yield Target(client, tokens, secret, _DEVICE, lambda: backend.calls["sample"])


@pytest.mark.parametrize("attack", _ATTACKS, ids=lambda one: one.id)
def test_an_attack_gets_nothing(target: Target, attack: Attack) -> None:
    """The true status; no file is shown or proven, nothing runs without the right, all goes on."""
    assert target.attack(attack).faults == ()


def test_the_table_is_as_long_as_promised() -> None:
    """Forty attacks at least, of every part, each once."""
    attacks = list_attacks()
    assert len(attacks) >= 40
    assert len({one.id for one in attacks}) == len(attacks)
    assert {one.part for one in attacks} == {
        "source", "options", "problem", "yaml", "json", "http", "pages", "devices",
    }  # fmt: skip


def _judge(
    answer: Callable[[httpx.Request], httpx.Response], secret: Secret, runs: Iterator[int]
) -> str:
    """Have an invented service attacked; give what is found wrong."""
    with httpx.Client(transport=httpx.MockTransport(answer), base_url="http://127.0.0.1") as client:
        target = Target(client, _TOKENS, secret, _DEVICE, lambda: next(runs))
        attack = next(one for one in _ATTACKS if one.name == "#include with quotes")
        return "; ".join(target.attack(attack).faults)


def _refuse(request: httpx.Request) -> httpx.Response:
    if b"SECRET" in request.content or b"secret-" in request.content:
        content = {"error": {"code": "invalid_input", "message": "no", "detail": None}}
        return httpx.Response(422, json=content)
    return httpx.Response(200, json={})


def test_a_service_that_stands_firm_is_believed(tmp_path: Path) -> None:
    """And one that gives in is not."""
    secret = Secret(tmp_path)
    assert _judge(_refuse, secret, iter([0, 0])) == ""

    def show(request: httpx.Request) -> httpx.Response:
        known = _refuse(request)
        text = f"{known.text}{secret.content}"
        return httpx.Response(known.status_code, text=text) if known.is_error else known

    def prove(request: httpx.Request) -> httpx.Response:
        known = _refuse(request)
        if b"secret-a" in request.content:
            return httpx.Response(422, json={**known.json(), "more": 1})
        return known

    def die(request: httpx.Request) -> httpx.Response:
        return _refuse(request) if b"secret-" in request.content else httpx.Response(500)

    assert "shows the file" in _judge(show, secret, iter([0, 0]))
    assert "whether the file is there" in _judge(prove, secret, iter([0, 0]))
    assert "not healthy" in _judge(die, secret, iter([0, 0]))
    assert "expected 422" in _judge(lambda _: httpx.Response(200, json={}), secret, iter([0, 0]))
    assert "1 kernels were run" in _judge(_refuse, secret, iter([0, 1]))


def test_a_file_that_was_read_is_noticed(tmp_path: Path) -> None:
    """By whom ever; where the file system keeps when files were read."""
    secret = Secret(tmp_path)
    if not secret.is_watched:
        pytest.skip("this file system does not keep when files were read")
    assert not secret.was_read()
    secret.path.read_bytes()
    assert secret.was_read()
