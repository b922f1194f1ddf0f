"""The service over a real device: a kernel that hangs, a collection that is killed."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from kernelcast.client import Client, Patience, ServiceError
from kernelcast.launches.data_store import open_data_store
from support.running_service import ServiceProcess, choose_device, list_children

pytestmark = [pytest.mark.device, pytest.mark.timeout(600)]

# An answer may take its time on a busy machine; that it comes at all is pytest's affair.
PATIENCE = Patience(retries=50, timeout_s=300)
ENDLESS: dict[str, Any] = {
    "name": "endless",
    "code": "kernel void e(global volatile int *a) { while (a[0] == 0) a[1] = a[1] + 1; }",
    "kernel": "e",
    "global_size": [1 << 20],
    "local_size": [256],
    "args": [{"buffer": "int32", "count": 64}],
}


def test_a_kernel_that_hangs_is_told_and_not_run_again(tmp_path: Path) -> None:
    """Its launch is ended after `--timeout`; a repeat is refused at once, and says until when."""
    options = ("--allow-run", "--no-jobs", "--refine", "0", "--timeout", "3")
    service = ServiceProcess(tmp_path / "data", *options)
    with service, Client(service.url, patience=PATIENCE) as client:
        device = choose_device(one.id for one in client.devices())
        for told in ("may never end", "is not run again before"):
            with pytest.raises(ServiceError, match=told) as caught:
                client.estimate(ENDLESS, devices=[device])
            assert caught.value.code == "kernel_timeout"


def test_a_collection_goes_on_after_every_kill(tmp_path: Path) -> None:
    """Killed are the service, then the process of the job; the job ends all the same."""
    options = {
        "kernels": ["nbody", "dot_product"], "sizes": 1, "local_sizes": 1, "runs": 2,
        "shortest_seconds": 0.02, "longest_seconds": 0.06,
    }  # fmt: skip
    service = ServiceProcess(tmp_path / "data")
    with service, Client(service.url, patience=Patience(retries=50)) as client:
        device = choose_device(one.id for one in client.devices())
        job = client.start_job("collect", {**options, "devices": [device]})
        _wait_for_job(service)
        service.kill()
        service.start()
        os.kill(_wait_for_job(service), signal.SIGKILL)
        *_, last = client.follow_job(job.id)
        assert last.state == "done", last.content
        outcome = client.job_result(job.id)["devices"][0]
    assert outcome["kernels"] == 2, outcome
    assert outcome["errors"] == {}
    with open_data_store(tmp_path / "data" / "observations.sqlite") as store:
        assert store.count() == outcome["measured"] + outcome["present"] > 0


def _wait_for_job(service: ServiceProcess) -> int:
    """Wait until the job's process has started to measure; give its id."""
    while True:
        for pid, command in list_children(service.pid).items():
            if "kernelcast.service.jobs" in command and any(
                "child_main" in one for one in list_children(pid).values()
            ):
                return pid
        time.sleep(0.05)
