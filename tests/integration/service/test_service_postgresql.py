"""The service over PostgreSQL, which may go away for a while."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from kernelcast.client import Client, Patience
from kernelcast.launches.data_store import open_data_store
from kernelcast.records.service_state import JobKind, JobRecord, JobState, Scope
from kernelcast.service.authentication import make_token
from kernelcast.service_state import open_state
from support.postgresql_cluster import PostgresqlCluster
from support.running_service import ServiceProcess
from support.service_attacks.attacks import PROBLEM


@pytest.fixture
def url(cluster: PostgresqlCluster) -> str:
    return cluster.make_database()


def test_the_state_is_the_same_as_in_sqlite(url: str) -> None:
    """Tokens, problems, counts and jobs; several openers at once, each job to one of them."""
    with ThreadPoolExecutor(4) as pool:
        states = list(pool.map(lambda _: open_state(url), range(4)))
        _, record = make_token("me", frozenset({Scope.RUN}))
        states[0].tokens.add(record)
        assert states[1].tokens.find(record.id) == record
        states[0].problems.add("a" * 64, "{}")
        states[1].problems.add("a" * 64, "{}")
        assert states[2].problems.find("a" * 64) == "{}"
        list(pool.map(lambda one: one.changes.count("x"), states * 5))
        assert states[3].changes.read()["x"] == 20
        for number in range(3):
            states[0].jobs.add(JobRecord(
                id=str(number), kind=JobKind.TRAIN, options={}, created_at=datetime.now(UTC)
            ), key="k" if number else None, request_digest="d")  # fmt: skip
        # Who claims at the same time may find all jobs looked at by another, and asks again.
        claimed = [
            one
            for _ in range(2)
            for one in pool.map(lambda one: one.jobs.claim(str(id(one)), ()), states)
            if one is not None
        ]
        assert sorted(one.id for one in claimed) == ["0", "1"]
        counts = states[0].jobs.count()
        assert counts[JobState.RUNNING] == 2
    for one in states:
        one.close()


def test_a_database_that_goes_away_and_comes_back(
    cluster: PostgresqlCluster, url: str, tmp_path: Path
) -> None:
    """Clear 503s meanwhile, normal service afterwards, nothing acknowledged is lost."""
    acknowledged, refused = 0, 0
    service = ServiceProcess(tmp_path / "data", "--no-jobs", "--database", url)
    with service, Client(service.url, patience=Patience(retries=20)) as client:
        about = {"problem_digest": client.send_problem(PROBLEM), "device": {"id": "far-away"},
                 "seconds": 0.1}  # fmt: skip

        def send(number: int) -> httpx.Response:
            nonlocal acknowledged, refused
            body = {"observations": [{**about, "key": f"{number}-{one}"} for one in range(20)]}
            answer = httpx.post(f"{service.url}/v1/observations", json=body, timeout=240)
            if answer.status_code == 200:
                acknowledged += answer.json()["added"] + answer.json()["known"]
            refused += answer.status_code == 503
            return answer

        for number in range(5):
            assert send(number).status_code == 200
        cluster.stop()
        for number in range(5, 8):
            answer = send(number)
            assert answer.status_code == 503, answer.text
            assert answer.json()["error"]["code"] == "database_unavailable"
            assert "retry-after" in answer.headers
            assert "127.0.0.1" not in answer.text  # where it is is nobody's business
            assert httpx.get(f"{service.url}/health", timeout=240).status_code == 200
            assert httpx.get(f"{service.url}/ready", timeout=240).status_code == 503
        cluster.start()
        while (answer := send(7)).status_code == 503:
            time.sleep(0.1)
        assert answer.status_code == 200, answer.text
        assert httpx.get(f"{service.url}/metrics", timeout=240).status_code == 200
    with open_data_store(url) as store:
        stored = store.count()
    assert refused > 0
    assert acknowledged > 0
    # A batch may have been stored whose answer was lost on the way: it is known, never missing.
    assert acknowledged <= stored <= acknowledged + 20 * refused
