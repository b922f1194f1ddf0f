"""Validations by several processes and by a cluster: the same report, and nothing left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.models.validation.report import ValidationReport
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.observation import Observation
from kernelcast.training import training
from kernelcast.training.settings import ALL_ROWS, ValidationSettings
from kernelcast.training.training import validate_models
from kernelcast.training_data.store import open_store
from support.observations import make_observation
from support.synthetic_rows import make_rows

TABLE = make_rows(kernels=4, sizes=2)


def validate(*, jobs: int = 1, scheduler: str | None = None) -> ValidationReport:
    """Validate two models."""
    settings = ValidationSettings(
        models=("linear", "hybrid"), rows=ALL_ROWS, jobs=jobs, scheduler=scheduler
    )
    return validate_models(TABLE, settings)


def list_group(group: int) -> list[int]:
    """Give the processes of a group that run still."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, owner = entry.read_text(encoding="utf-8").rpartition(")")[2].split()[:3]
        except OSError:  # it has ended meanwhile
            continue
        if int(owner) == group and state != "Z":
            found.append(int(entry.parent.name))
    return found


@pytest.fixture
def cluster() -> Iterator[str]:
    """Run a scheduler with one worker in this process; give its address.

    Of a cluster that does one thing at a time joblib makes no use.
    """
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
    ) as found:
        yield found.scheduler_address


def test_processes_and_a_cluster_give_the_same_report(cluster: str) -> None:
    """Two processes, or the workers of a Dask cluster, find what one finds."""
    assert validate(jobs=2) == validate() == validate(scheduler=cluster)


def test_a_cluster_that_cannot_work_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names a scheduler that does not answer, or has no workers, and says how to start them."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(training, "_WORKERS_TIMEOUT_S", 0.5)
    monkeypatch.setattr("kernelcast.workers._CONNECT_TIMEOUT_S", 0.5)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
        pytest.raises(InputError, match=r"has no workers.*dask worker"),
    ):
        validate(scheduler=empty.scheduler_address)
    with pytest.raises(InputError, match=r"no Dask scheduler answers.*dask scheduler"):
        validate(scheduler="tcp://127.0.0.1:9")


def test_a_cluster_that_fails_is_an_error(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it was, and no traceback; errors of our own stay what they are."""
    errors = iter([RuntimeError("lost"), InputError("wrong")])

    def fail(*_: object, **__: object) -> None:
        raise next(errors)

    monkeypatch.setattr(training, "validate", fail)
    with pytest.raises(KernelcastError, match=r"the cluster failed \(RuntimeError\('lost'\)\)"):
        validate(scheduler=cluster)
    with pytest.raises(InputError, match=r"^wrong$"):
        validate(scheduler=cluster)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_ctrl_c_leaves_no_process(tmp_path: Path) -> None:
    """It ends with 130 and without workers, whenever it strikes."""

    def observe(number: int) -> Observation:
        one = make_observation(number, kernels=40, devices=1)
        return replace(one, samples=(replace(one.samples[0], multiple=0),))

    path = tmp_path / "rows.sqlite"
    with open_store(path) as opened:
        opened.add_many(map(observe, range(400)))
    command = [sys.executable, "-m", "kernelcast", "validate", "--data", str(path), "--jobs", "2"]
    running = subprocess.Popen(
        [*command, "--models", "svr,gradient_boosting", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        while len(list_group(running.pid)) < 3:  # workers start
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does
        shown, told = running.communicate()
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == 130, told
    assert not shown
    # Interpreters that have only just started complain by themselves: no line of ours is in that.
    assert "src/kernelcast" not in told
    while list_group(running.pid):  # that this ends is pytest's affair
        time.sleep(0.05)
