"""Kills a service and its jobs at random moments and counts what was lost: nothing should be.

``python benchmarks/service_kills.py --kills 20`` has a service collect some kernels with very short
launches while a client reports observations. The service with all its processes and the job's
process alone are killed in turn with SIGKILL at random moments. At the end the job must be done and
every acknowledged observation stored once.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import sqlite3
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from machine import describe_machine

from kernelcast.client import Client
from kernelcast.client.transport import Patience
from kernelcast.testing.service_process import ServiceProcess, list_children

RESULTS = Path(__file__).parent / "results" / "service_kills"
_KERNELS = ["nbody", "mat_vec_mul", "binomial", "dot_product", "median_filter"]
_BATCH = 50
_LONGEST_WAIT_S = 14.0
_PROBLEM: dict[str, Any] = {
    "code": "kernel void fill(global float *a) { a[get_global_id(0)] = 1.0f; }",
    "kernel": "fill",
    "global_size": [1024],
    "local_size": [64],
    "args": [{"buffer": "float32", "count": 1024}],
}


class Reporter:
    """Reports observations until told to stop, and counts what is acknowledged."""

    def __init__(self, url: str) -> None:
        self.acknowledged = 0
        self.error = ""
        self._url = url
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        """Stop."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with Client(self._url, patience=Patience(retries=100)) as client:
                digest = client.send_problem(_PROBLEM)
                one = {"problem_digest": digest, "device": {"id": "far-away"}, "seconds": 0.1}
                number = 0
                while not self._is_over.wait(0.05):
                    rows = client.observe([
                        {**one, "key": f"{number}-{place}"} for place in range(_BATCH)
                    ])  # fmt: skip
                    self.acknowledged += rows.added + rows.known
                    number += 1
        except Exception as error:  # noqa: BLE001 - told in the result
            self.error = repr(error)


def run(device: str, kills: int, seed: int) -> dict[str, Any]:
    """Collect with kills, and say what is missing."""
    rng = random.Random(seed)
    killed = {"service": 0, "job": 0}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        service = ServiceProcess(data)
        with service, Client(service.url, patience=Patience(retries=100)) as client:
            found = next(one for one in client.devices() if one.id.startswith(device))
            job = client.start_job("collect", {
                "devices": [found.id], "kernels": _KERNELS, "sizes": 4, "runs": 2,
                "shortest_seconds": 0.02, "longest_seconds": 0.08,
            })  # fmt: skip
            reporter = Reporter(service.url)
            lost, before = 0, 0
            while sum(killed.values()) < kills and not client.job(job.id).is_over:
                time.sleep(rng.uniform(2.0, _LONGEST_WAIT_S))
                if sum(killed.values()) % 2:
                    killed["job"] += _kill_job(service)
                else:
                    service.kill()
                    killed["service"] += 1
                    now = _count(data)
                    lost, before = lost + max(0, before - now), now
                    service.start()
                print(f"killed {killed}: {_count(data)} rows", flush=True)
            *_, last = client.follow_job(job.id)
            reporter.stop()
            result = client.job_result(job.id) if last.state == "done" else None
        reported = _count(data, "WHERE device_id = 'far-away'")
        keys = _count(data, "", what="count(DISTINCT key)")
        return {
            "machine": describe_machine(),
            "device": found.id,
            "kernels": _KERNELS,
            "kills": killed,
            "job_state": last.state,
            "job_error": None if last.error is None else str(last.error),
            "job_result": result,
            "rows": _count(data),
            "rows_lost_at_a_kill": lost,
            "duplicates": _count(data) - keys,
            "observations_acknowledged": reporter.acknowledged,
            "observations_stored": reported,
            "observations_lost": reporter.acknowledged - reported,
            "reporter_error": reporter.error,
        }


def _kill_job(service: ServiceProcess) -> int:
    """Kill the process of the job, if there is one now."""
    for pid, command in list_children(service.pid).items():
        if "job_process" in command:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                return 1
    return 0


def _count(data: Path, where: str = "", *, what: str = "count(*)") -> int:
    connection = sqlite3.connect(data / "observations.sqlite", timeout=60)
    found: int = connection.execute(f"SELECT {what} FROM observations {where}").fetchone()[0]
    connection.close()
    return found


def main() -> None:
    """Run and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="intel")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    result = run(asked.device, asked.kills, asked.seed)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{asked.device}.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({k: v for k, v in result.items() if k != "machine"}, indent=1))


if __name__ == "__main__":
    main()
