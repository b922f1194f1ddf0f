"""The service over a real device: sampling, crashes, a collection that is killed."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from kernelcast.client import Client, ServiceError
from kernelcast.client.transport import Patience
from kernelcast.predictor.data_store import open_data_store
from kernelcast.testing.service_process import ServiceProcess, list_children

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
    "global_size": [1 << 24],
    "local_size": [256],
    "args": [
        {"buffer": "float32", "count": 1 << 24, "init": "uniform"},
        {"buffer": "float32", "count": 1 << 24, "init": "uniform"},
        {"buffer": "float32", "count": 1 << 24},
        {"scalar": "float32", "value": 3},
    ],
}
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
    options = ("--allow-run", "--no-jobs", "--timeout", "20")
    with ServiceProcess(tmp_path / "data", *options) as service, Client(service.url) as client:
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
        for broken, code in ((ENDLESS, "kernel_timeout"), (STRAY, "kernel_crashed")):
            with pytest.raises(ServiceError) as caught:
                client.estimate(broken, devices=[device])
            assert caught.value.code == code
        report = {"problem": PROBLEM, "device": device, "seconds": 0.25}
        client.observe([report, report, report])
        time.sleep(3)
        history = client.estimate(PROBLEM, devices=[device])[0]
        assert (history.tier, history.seconds) == ("history", 0.25)


def test_a_collection_goes_on_after_every_kill(tmp_path: Path) -> None:
    """Killed are the service, then the process of the job; the job ends all the same."""
    options = {
        "kernels": ["nbody", "dot_product"], "sizes": 2, "local_sizes": 1, "runs": 2,
        "shortest_seconds": 0.02, "longest_seconds": 0.06,
    }  # fmt: skip
    service = ServiceProcess(tmp_path / "data")
    with service, Client(service.url, patience=Patience(retries=50)) as client:
        device = _choose_device(client)
        job = client.start_job("collect", {**options, "devices": [device]})
        time.sleep(4)
        service.kill()
        service.start()
        _kill_job(service)
        *_, last = client.follow_job(job.id)
        assert last.state == "done", last.content
        outcome = client.job_result(job.id)["devices"][0]
    assert outcome["kernels"] == 2, outcome
    assert outcome["errors"] == {}
    with open_data_store(tmp_path / "data" / "observations.sqlite") as store:
        assert store.count() == outcome["measured"] + outcome["present"] > 0


def _kill_job(service: ServiceProcess) -> None:
    """Kill the process of the job as soon as there is one."""
    ends_s = time.monotonic() + 60
    while time.monotonic() < ends_s:
        for pid, command in list_children(service.pid).items():
            if "job_process" in command:
                time.sleep(2)
                os.kill(pid, signal.SIGKILL)
                return
        time.sleep(0.1)
    msg = "the job did not begin again"
    raise AssertionError(msg)
