import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest
from fastapi.testclient import TestClient

from kernelcast.service import ServiceSettings, estimating
from kernelcast.service.device_lock import DeviceLock
from kernelcast.service.estimating import Estimating
from support.running_service import wait_until
from support.service_backend import FIRST, FakeBackend, Plain, estimate, open_client, service_of


@pytest.fixture
def quiet_client(settings: ServiceSettings, backend: FakeBackend) -> Iterator[TestClient]:
    """Give a client of a service that refines nothing by itself."""
    with open_client(settings, backend, refine_share=0.0) as found:
        yield found


def refine(client: TestClient) -> bool:
    """Refine the answer that has waited longest; tell whether it can be made better still."""
    estimating = service_of(client).estimating
    assert client.portal is not None
    return client.portal.call(estimating.refine, next(iter(estimating.refinable.values())))


def test_another_moment_makes_the_kept_answer_better(
    quiet_client: TestClient, problem: Plain
) -> None:
    """Narrows the interval as soon as nobody else measures, and repeats find the new answer."""
    first = estimate(quiet_client, problem)
    lock = DeviceLock(FIRST)
    assert lock.acquire(5)
    try:
        assert refine(quiet_client)
    finally:
        lock.release()
    assert estimate(quiet_client, problem) == {**first, "is_kept": True}
    assert refine(quiet_client)
    second = estimate(quiet_client, problem)
    assert second["is_kept"]
    assert second["high"] / second["low"] < first["high"] / first["low"]
    assert len(second["explanation"]["pieces"]) > len(first["explanation"]["pieces"])


def test_the_service_refines_by_itself_and_counts_it(
    settings: ServiceSettings, backend: FakeBackend, problem: Plain,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Begins soon after an answer where a share of the time is allowed."""
    monkeypatch.setattr(estimating, "_APART_S", 0.01)
    line = f'kernelcast_refinements_total{{device_id="{FIRST}"}}'
    with open_client(settings, backend, refine_share=1.0) as client:
        estimate(client, problem)
        wait_until(lambda: client.get("/metrics").text, lambda text: line in text)
        assert client.get("/health").json()["refine_share"] == 1.0


def test_pauses_keep_to_the_share(
    quiet_client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pauses 49 times as long as the last refinement took where 2 % are allowed."""
    sleep = AsyncMock(side_effect=[None, None, None, asyncio.CancelledError])
    # Of this module alone: the service beside it pauses, too.
    monkeypatch.setattr(estimating, "asyncio", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(Estimating, "_refine_next", AsyncMock(side_effect=[0.0, 2.0, 0.001]))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(service_of(quiet_client).estimating.refine_while_idle(0.02))
    pauses_s = [one.args[0] for one in sleep.await_args_list]
    assert pauses_s == pytest.approx([1.0, 1.0, 98.0, 1.0])
