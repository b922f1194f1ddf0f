"""The service as a process: killed, ended in order, several at once."""

import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from kernelcast.client import Client, Patience
from kernelcast.training_data.store import open_store
from support.observations import make_observation
from support.running_service import ServiceProcess
from support.service_attacks.attacks import PROBLEM

_BATCH = 50


def test_a_killed_service_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    """Under load, twice; the client goes on by itself and nothing counts double."""
    service = ServiceProcess(tmp_path / "data")
    acknowledged, is_over = 0, threading.Event()

    def report() -> None:
        nonlocal acknowledged
        with Client(service.url, patience=Patience(retries=50)) as client:
            about = {"problem_digest": client.send_problem(PROBLEM), "seconds": 0.1,
                     "device": {"id": "far-away", "driver": "1"}}  # fmt: skip
            number = 0
            while not is_over.is_set():
                rows = client.observe([{**about, "key": f"{number}-{n}"} for n in range(_BATCH)])
                acknowledged += rows.added + rows.known
                number += 1

    with service, ThreadPoolExecutor(1) as pool:
        sending = pool.submit(report)
        for is_last in (False, False, True):
            wanted = acknowledged + 3 * _BATCH
            while acknowledged < wanted and not sending.done():
                time.sleep(0.05)
            if not is_last:
                service.kill()
                service.start()
        is_over.set()
        sending.result()
    with open_store(tmp_path / "data" / "observations.sqlite") as store:
        assert store.count() == acknowledged > _BATCH


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
        assert client.observe(batch).added == count

    with ServiceProcess(data, "--no-jobs") as service, Client(service.url) as client:
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


def test_an_orderly_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit of type notify is told once requests are answered; at the end streams and log end.

    The exit status is 0, and users beside the owner can reach nothing.
    """
    data = tmp_path / "data"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        with (
            ServiceProcess(data, "--no-jobs") as service,
            Client(service.url) as client,
            ThreadPoolExecutor(1) as pool,
        ):
            assert manager.recv(100) == b"READY=1"
            assert httpx.get(f"{service.url}/health").status_code == 200
            job, begun = client.start_job("train"), threading.Event()

            def follow() -> None:
                events = f"{service.url}/v1/jobs/{job.id}/events"
                with httpx.stream("GET", events) as told:
                    for _ in told.iter_lines():
                        begun.set()

            followed = pool.submit(follow)
            begun.wait()
            assert service.stop() == 0
            followed.result()
    assert "service has stopped" in [one["message"] for one in service.read_log()]
    reachable = [one for one in [data, *data.rglob("*")] if one.stat().st_mode & 0o077]
    assert reachable == [service.log]  # which we have made
