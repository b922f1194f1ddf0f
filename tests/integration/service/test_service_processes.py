"""The service as a process: killed, ended in order, several at once."""

import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from kernelcast.client import Client, ConnectionFailedError
from kernelcast.client.transport import Patience
from kernelcast.training_data.store import open_store
from support.observations import make_observation
from support.service_backend import PROBLEM
from support.service_process import ServiceProcess

DEVICE = {"id": "far-away", "driver": "1"}
_BATCH = 50


def _count(data: Path) -> tuple[int, int]:
    """Give the rows of a store and their different keys."""
    with sqlite3.connect(data / "observations.sqlite") as connection:
        found: tuple[int, int] = connection.execute(
            "SELECT count(*), count(DISTINCT key) FROM observations"
        ).fetchone()
    connection.close()
    return found


def _wait_for_more(count: Callable[[], int], failures: list[Exception]) -> None:
    """Wait until some batches more are acknowledged, or the thread that sends them has failed."""
    wanted = count() + 3 * _BATCH
    while count() < wanted and not failures:
        time.sleep(0.05)


def test_a_killed_service_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    """Under load, twice; the client goes on by itself and nothing counts double."""
    service = ServiceProcess(tmp_path / "data")
    acknowledged, is_over = 0, threading.Event()
    failures: list[Exception] = []

    def report() -> None:
        nonlocal acknowledged
        with Client(service.url, patience=Patience(retries=50)) as client:
            digest = client.send_problem(PROBLEM)
            number = 0
            while not is_over.is_set():
                rows = client.observe([
                    {"key": f"{number}-{one}", "problem_digest": digest, "device": DEVICE,
                     "seconds": 0.1}
                    for one in range(_BATCH)
                ])  # fmt: skip
                acknowledged += rows.added + rows.known
                number += 1

    def guarded() -> None:
        try:
            report()
        except Exception as error:  # noqa: BLE001 - the test's own thread tells it
            failures.append(error)

    with service:
        thread = threading.Thread(target=guarded)
        thread.start()
        for _ in range(2):
            _wait_for_more(lambda: acknowledged, failures)
            service.kill()
            service.start()
        _wait_for_more(lambda: acknowledged, failures)
        is_over.set()
        thread.join()
        assert not failures
    rows, keys = _count(tmp_path / "data")
    assert acknowledged > _BATCH
    assert rows == keys == acknowledged


def test_the_page_accuracy_and_a_command_cost_no_observation(tmp_path: Path) -> None:
    """Rows that come after the page was read and a command has ended survive kill -9."""
    data = tmp_path / "data"
    known = {"id": "intel-amd-epyc-1512"}  # a shipped model is asked about its rows by the page
    with open_store(data / "observations.sqlite") as store:
        store.add_many(map(make_observation, range(50)))

    def observe(name: str, count: int) -> None:
        batch = [
            {"key": f"{name}-{number}", "problem": PROBLEM, "device": known, "seconds": 0.1}
            for number in range(count)
        ]
        answer = httpx.post(
            f"{service.url}/v1/observations", json={"observations": batch}, timeout=60
        )
        assert answer.json()["added"] == count

    with ServiceProcess(data, "--no-jobs") as service:
        observe("before", 1)
        assert httpx.get(f"{service.url}/accuracy", timeout=60).is_success
        subprocess.run(
            [sys.executable, "-m", "kernelcast", "data", "ls"],
            env={**os.environ, "KERNELCAST_DATA": str(data)}, check=True, capture_output=True,
        )  # fmt: skip
        observe("after", 200)
        service.kill()
    with open_store(data / "observations.sqlite") as store:
        assert store.count() == 251
        assert store.find_damage() == []


def test_an_orderly_end_answers_what_is_under_way(tmp_path: Path) -> None:
    """Streams end, the log ends, and the exit status is 0."""
    with ServiceProcess(tmp_path / "data", "--no-jobs") as service:
        with Client(service.url) as client:
            job = client.start_job("train")
            begun = threading.Event()

            def follow() -> None:
                with suppress(ConnectionFailedError):  # it asks the service that has ended again
                    for _ in client.follow_job(job.id):
                        begun.set()

            followed = threading.Thread(target=follow)
            followed.start()
            begun.wait()
            assert service.stop() == 0
            followed.join()
        messages = [one["message"] for one in service.read_log()]
    assert "service has stopped" in messages
    assert _list_open(tmp_path / "data") == [service.log]  # which we have made


def _list_open(folder: Path) -> list[Path]:
    """List what users beside the owner can reach."""
    return [one for one in [folder, *folder.rglob("*")] if one.stat().st_mode & 0o077]


def test_systemd_is_told_when_requests_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sends READY=1 to the socket of a unit of type notify, once."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        with ServiceProcess(tmp_path / "data") as service:
            assert manager.recv(100) == b"READY=1"
            assert httpx.get(f"{service.url}/health").status_code == 200
