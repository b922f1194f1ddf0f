"""What was said to be stored is there, whatever is done with the store and killed meanwhile."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from kernelcast.testing.observations import make_observation
from kernelcast.testing.postgresql_cluster import PostgresqlCluster, explain_absence
from kernelcast.testing.service_process import ServiceProcess
from kernelcast.training_data.store import open_store

# Seeds 14 and 18 lost rows when the service opened its SQLite store as a plain file.
_SEEDS = {"sqlite": (4, 14, 18), "postgresql": (4, 18)}
# Of its own, because it forks: a process of pytest has threads, and stores of other tests.
_RUN = """
import json, sys
from dataclasses import asdict
from pathlib import Path
from kernelcast.testing.store_survival import (
    PostgresqlDatabase, SqliteDatabase, preload, run_sequence, summarise
)
from kernelcast.testing.store_survival.commands import make_import_files

preload()
folder, server, seeds = Path(sys.argv[1]), sys.argv[2], map(int, sys.argv[3:])
database = PostgresqlDatabase(folder, server, "survival") if server else SqliteDatabase(folder)
import_files, found = make_import_files(folder), []
for seed in seeds:
    (folder / str(seed)).mkdir()
    found.append(run_sequence(seed, database, import_files, folder / str(seed), steps=6))
print(json.dumps(asdict(summarise(found))))
"""
_PROBLEM: dict[str, Any] = {
    "code": "kernel void fill(global float *a) { a[get_global_id(0)] = 1.0f; }",
    "kernel": "fill",
    "global_size": [1024],
    "local_size": [64],
    "args": [{"buffer": "float32", "count": 1024}],
}
# A shipped model knows it: the page *Accuracy* asks that model about the rows of the store.
_DEVICE = {"id": "intel-amd-epyc-1512"}


def _run_sequences(folder: Path, server: str, seeds: Sequence[int]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(folder), server, *map(str, seeds)],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="sequences are forked processes")
@pytest.mark.parametrize("database", _SEEDS)
def test_random_mixes_lose_nothing_that_was_acknowledged(database: str, tmp_path: Path) -> None:
    """Pages, observations, commands, jobs, imports, kill -9 and restarts, in both databases."""
    seeds = _SEEDS[database]
    if database == "sqlite":
        found = _run_sequences(tmp_path, "", seeds)
    else:
        pytest.importorskip("psycopg", reason="pip install 'kernelcast[postgresql]'")
        if absence := explain_absence():
            pytest.skip(absence)
        with PostgresqlCluster() as cluster:
            found = _run_sequences(tmp_path, cluster.url, seeds)
    assert found["rows_acknowledged"] > 20 * len(seeds)
    assert found["rows_lost"] == found["tokens_lost"] == 0
    assert found["integrity_checks_clean"] == len(seeds)
    assert found["trouble"] == []


def test_the_page_accuracy_and_a_command_cost_no_observation(tmp_path: Path) -> None:
    """Rows that come after the page was read and a command has ended survive kill -9."""
    data = tmp_path / "data"
    with open_store(data / "observations.sqlite") as store:
        store.add_many(map(make_observation, range(50)))

    def observe(name: str, count: int) -> None:
        batch = [
            {"key": f"{name}-{number}", "problem": _PROBLEM, "device": _DEVICE, "seconds": 0.1}
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
