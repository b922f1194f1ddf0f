"""Takes a loaded service's database away for a while and says what the callers saw.

``python benchmarks/service_outage.py --seconds 10`` starts a PostgreSQL cluster and a service over
it in folders of their own. Clients report observations in batches and ask for an estimate that is
kept, all the time; the cluster is stopped under them and started again. Answers are counted by
status and by phase. Every acknowledged observation must be stored, each once.
"""

import argparse
import json
import tempfile
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import httpx
from machine import describe_machine

from kernelcast.client import Client
from kernelcast.client.transport import Patience
from kernelcast.launches.data_store import open_data_store
from kernelcast.testing.postgresql_cluster import PostgresqlCluster, explain_absence
from kernelcast.testing.service_process import ServiceProcess

RESULTS = Path(__file__).parent / "results" / "service_outage"
_BATCH = 50
_REPORTERS, _ASKERS = 4, 2
_AROUND_S = 15.0
_OK = 200
_PROBLEM: dict[str, Any] = {
    "code": "kernel void fill(global float *a) { a[get_global_id(0)] = 1.0f; }",
    "kernel": "fill",
    "global_size": [1024],
    "local_size": [64],
    "args": [{"buffer": "float32", "count": 1024}],
}


class Load:
    """Clients that ask until told to stop, and count what they are told.

    Parameters
    ----------
    url : str
        Of the service.
    digest, device : str
        Problem and device to ask for.
    """

    def __init__(self, url: str, digest: str, device: str) -> None:
        self.phase = "before"
        self.acknowledged = 0
        self.answers: dict[str, Counter[str]] = defaultdict(Counter)
        self.slowest_s: dict[str, float] = defaultdict(float)
        self.last_refusal_s = 0.0
        self._url, self._digest, self._device = url, digest, device
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            *(threading.Thread(target=self._report, args=(one,)) for one in range(_REPORTERS)),
            *(threading.Thread(target=self._ask) for _ in range(_ASKERS)),
        ]

    def start(self) -> None:
        """Start all clients."""
        for one in self._threads:
            one.start()

    def stop(self) -> None:
        """Stop them and wait."""
        self._is_over.set()
        for one in self._threads:
            one.join()

    def _report(self, number: int) -> None:
        """Report batches; one that was not acknowledged is sent again under the same keys."""
        one = {"problem_digest": self._digest, "device": {"id": "far-away"}, "seconds": 0.1}
        batch = 0
        with httpx.Client(base_url=self._url, timeout=60) as client:
            while not self._is_over.is_set():
                rows = [{**one, "key": f"{number}-{batch}-{place}"} for place in range(_BATCH)]
                answer = self._send(client, "observations", "/v1/observations", {
                    "observations": rows,
                })  # fmt: skip
                if answer is None or answer.status_code != _OK:
                    time.sleep(0.1)
                    continue
                batch += 1
                with self._lock:
                    self.acknowledged += answer.json()["added"] + answer.json()["known"]

    def _ask(self) -> None:
        body = {"problem_digest": self._digest, "devices": [self._device]}
        with httpx.Client(base_url=self._url, timeout=60) as client:
            while not self._is_over.is_set():
                self._send(client, "estimates", "/v1/estimates", body)
                time.sleep(0.01)

    def _send(
        self, client: httpx.Client, what: str, path: str, body: dict[str, Any]
    ) -> httpx.Response | None:
        begin_s = time.perf_counter()
        phase = self.phase
        try:
            answer = client.post(path, json=body)
            status = str(answer.status_code)
        except httpx.HTTPError as error:
            answer, status = None, type(error).__name__
        with self._lock:
            self.answers[f"{what}, {phase}"][status] += 1
            key = f"{what}, {phase}"
            self.slowest_s[key] = max(self.slowest_s[key], time.perf_counter() - begin_s)
            if status != str(_OK):
                self.last_refusal_s = time.perf_counter()
        return answer


def measure(device: str, seconds: float) -> dict[str, Any]:
    """Stop the database under load and start it again."""
    with tempfile.TemporaryDirectory() as folder, PostgresqlCluster() as cluster:
        service = ServiceProcess(Path(folder) / "data", "--no-jobs", "--database", cluster.url)
        with service, Client(service.url, patience=Patience(retries=20)) as client:
            found = next(one for one in client.devices() if one.id.startswith(device))
            digest = client.send_problem(_PROBLEM)
            client.observe([{"problem_digest": digest, "device": found.id, "seconds": 0.01}] * 5)
            time.sleep(2)  # until these are seen: the estimate is kept
            load = Load(service.url, digest, found.id)
            load.start()
            time.sleep(_AROUND_S)
            load.phase = "without the database"
            cluster.stop()
            time.sleep(seconds)
            cluster.start()
            back_s = time.perf_counter()
            load.phase = "after"
            time.sleep(_AROUND_S)
            load.stop()
        with open_data_store(cluster.url) as store:
            stored = store.count() - 5
    return {
        "machine": describe_machine(),
        "device": found.id,
        "seconds_without_database": seconds,
        "answers": {phase: dict(count) for phase, count in sorted(load.answers.items())},
        "slowest_seconds": dict(sorted(load.slowest_s.items())),
        "seconds_until_normal": max(0.0, load.last_refusal_s - back_s),
        "observations_acknowledged": load.acknowledged,
        "observations_stored": stored,
        "observations_lost": max(0, load.acknowledged - stored),
    }


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="intel")
    parser.add_argument("--seconds", type=float, default=10.0)
    asked = parser.parse_args()
    absence = explain_absence()
    if absence:
        raise SystemExit(absence)
    result = measure(asked.device, asked.seconds)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{asked.device}.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({key: one for key, one in result.items() if key != "machine"}, indent=1))


if __name__ == "__main__":
    main()
