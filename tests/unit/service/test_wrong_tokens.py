"""What wrong tokens do to others: nothing."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from kernelcast.records.service_state import Scope, TokenRecord
from kernelcast.service import Limits, ServiceSettings, create_app
from kernelcast.service.rate_limit import AttemptCounter, name_address
from kernelcast.service.tokens import make_token
from kernelcast.service_state import open_state
from support.service_backend import FakeBackend

MOST = 3
Ask = Callable[[str], int]


@pytest.fixture
def guarded(settings: ServiceSettings) -> ServiceSettings:
    """Give settings of a service that needs tokens and bears few wrong ones."""
    return replace(settings, require_tokens=True, limits=Limits(wrong_tokens=MOST))


def _add(settings: ServiceSettings, record: TokenRecord) -> None:
    with open_state(str(settings.database)) as state:
        state.tokens.add(record)


def _make(settings: ServiceSettings) -> str:
    text, record = make_token("tester", frozenset({Scope.ESTIMATE}))
    _add(settings, record)
    return text


def _ask(client: TestClient, token: str) -> int:
    found: int = client.get("/v1/devices", headers={"authorization": f"Bearer {token}"}).status_code
    return found


def _unknown(number: int) -> str:
    return f"kc_{number:012x}_{'x' * 43}"


def _open(settings: ServiceSettings, backend: FakeBackend) -> TestClient:
    return TestClient(create_app(settings, backend=backend), base_url="http://localhost")


def test_a_right_token_opens_beside_any_number_of_wrong_ones(
    guarded: ServiceSettings, backend: FakeBackend
) -> None:
    """From the same address, and although nobody has used it before."""
    token = _make(guarded)
    with _open(guarded, backend) as client:
        wrong = [_ask(client, _unknown(one)) for one in range(4 * MOST)]
        assert _ask(client, token) == 200
    assert wrong == [401] * MOST + [429] * (3 * MOST)


def test_guessing_at_an_id_keeps_its_owner_in(
    guarded: ServiceSettings, backend: FakeBackend
) -> None:
    """Wrong secrets of one id are told to wait; the right one is not."""
    token = _make(guarded)
    wrong = token[:16] + "x" * 43
    with _open(guarded, backend) as client:
        found = [_ask(client, wrong) for _ in range(2 * MOST)]
        assert _ask(client, token) == 200
    assert found == [401] * MOST + [429] * MOST


def test_who_waits_is_told_how_long(guarded: ServiceSettings, backend: FakeBackend) -> None:
    """Retry-After says so."""
    with _open(guarded, backend) as client:
        for one in range(MOST):
            _ask(client, _unknown(one))
        headers = {"authorization": f"Bearer {_unknown(MOST)}"}
        answer = client.get("/v1/devices", headers=headers)
    assert answer.status_code == 429
    assert 1 <= int(answer.headers["retry-after"]) <= 60


def test_a_flood_costs_no_looks_at_the_database(
    guarded: ServiceSettings, backend: FakeBackend
) -> None:
    """Wrong tokens are compared in memory; after a few the database is not asked either."""
    token = _make(guarded)
    app = create_app(guarded, backend=backend)
    with TestClient(app, base_url="http://localhost") as client:
        assert _ask(client, token) == 200
        table = app.state.service.state.tokens
        looked = []
        find = table.find
        table.find = lambda one: looked.append(one) or find(one)
        for one in range(50):
            assert _ask(client, _unknown(one)) in {401, 429}
            assert _ask(client, token[:16] + "x" * 43) in {401, 429}
    assert len(looked) <= MOST


def test_counts_end_after_a_minute() -> None:
    """Whoever waits as told is heard again; what is counted takes little memory."""
    now_s = 0.0
    counts = AttemptCounter(2, lambda: now_s)
    assert [counts.note("a") for _ in range(4)] == [False, True, True, True]
    assert counts.wait_s("a") == 60
    assert counts.wait_s("b") is None
    now_s = 61.0
    assert counts.wait_s("a") is None


def test_addresses_of_one_network_count_as_one() -> None:
    """Whoever has one IPv6 address has 2**64 of them."""
    assert name_address("2001:db8::1") == name_address("2001:db8::ffff:1")
    assert name_address("192.0.2.1") != name_address("192.0.2.2")
    assert name_address("testclient") == "testclient"
