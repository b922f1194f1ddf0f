"""The service over a real device: sampling, crashes, a collection that is killed."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from kernelcast.client import Client, ServiceError
from kernelcast.client.transport import Patience
from kernelcast.launches.data_store import open_data_store
from support.service_process import ServiceProcess, list_children

pytestmark = [pytest.mark.device, pytest.mark.timeout(600)]

PROBLEM: dict[str, Any] = {
    "name": "triad",
    "code": """
kernel void triad(global const float *a, global const float *b, global float *c, float s) {
    size_t i = get_global_id(0);
    c[i] = a[i] + s * b[i];
}
""",
    "kernel": "triad",
    "global_size": [1 << 20],
    "local_size": [256],
    "args": [
        {"buffer": "float32", "count": 1 << 20, "init": "uniform"},
        {"buffer": "float32", "count": 1 << 20, "init": "uniform"},
        {"buffer": "float32", "count": 1 << 20},
        {"scalar": "float32", "value": 3},
    ],
}
# An answer may take its time on a busy machine; that it comes at all is pytest's affair.
PATIENCE = Patience(retries=50, timeout_s=300)
ENDLESS = {
    **PROBLEM,
    "name": "endless",
    "code": "kernel void e(global volatile int *a) { while (a[0] == 0) a[1] = a[1] + 1; }",
    "kernel": "e",
    "args": [{"buffer": "int32", "count": 64}],
}
STRAY = {
    **PROBLEM,
    "name": "stray",
    "code": "kernel void s(global int *a) { a[(size_t)get_global_id(0) << 40] = 1; }",
    "kernel": "s",
    "args": [{"buffer": "int32", "count": 64}],
}


def _choose_device(client: Client) -> str:
    """Give the embedded device, or the first one there is."""
    devices = client.devices()
    return next((one.id for one in devices if "intel" in one.id.lower()), devices[0].id)


def test_from_a_sampling_to_history(tmp_path: Path) -> None:
    """A sampled answer, kept; a kernel that hangs or crashes is told and does no harm."""
    # What is refined meanwhile would hold samples beside what is observed.
    options = ("--allow-run", "--no-jobs", "--refine", "0", "--timeout")
    patient = ServiceProcess(tmp_path / "data", *options, "240")
    with patient as service, Client(service.url, patience=PATIENCE) as client:
        device = _choose_device(client)
        first = client.estimate(PROBLEM, devices=[device])[0]
        assert first.error is None
        assert first.tier in {"linear", "hybrid"}  # as a model of this device is shipped or not
        assert first.low is not None
        assert first.high is not None
        assert first.seconds is not None
        assert 0 < first.low <= first.seconds <= first.high
        again = client.estimate(PROBLEM, devices=[device])[0]
        assert again.content["is_kept"]
        assert again.seconds == first.seconds
        assert _fail(client, STRAY, device) == "kernel_crashed"
        report = {"problem": PROBLEM, "device": device, "seconds": 1.2 * first.seconds}
        client.observe([report, report, report])
        while (history := client.estimate(PROBLEM, devices=[device])[0]).tier != "history":
            time.sleep(0.1)
        assert history.seconds == pytest.approx(report["seconds"])
    hasty = ServiceProcess(tmp_path / "data", *options, "3")
    with hasty as service, Client(service.url, patience=PATIENCE) as client:
        assert _fail(client, ENDLESS, device) == "kernel_timeout"


def _fail(client: Client, problem: dict[str, Any], device: str) -> str:
    """Give the code of the error that a problem ends with."""
    with pytest.raises(ServiceError) as caught:
        client.estimate(problem, devices=[device])
    return caught.value.code


def test_a_collection_goes_on_after_every_kill(tmp_path: Path) -> None:
    """Killed are the service, then the process of the job; the job ends all the same."""
    options = {
        "kernels": ["nbody", "dot_product"], "sizes": 1, "local_sizes": 1, "runs": 2,
        "shortest_seconds": 0.02, "longest_seconds": 0.06,
    }  # fmt: skip
    service = ServiceProcess(tmp_path / "data")
    with service, Client(service.url, patience=Patience(retries=50)) as client:
        device = _choose_device(client)
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
            if "job_process" in command and any(
                "child_main" in one for one in list_children(pid).values()
            ):
                return pid
        time.sleep(0.05)
