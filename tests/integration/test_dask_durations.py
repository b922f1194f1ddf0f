"""A real Dask scheduler knows the durations that it was given."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError
from kernelcast.scheduling.dask_durations import (
    durations_of_estimates,
    expected_durations,
    task_durations,
)
from support.builders import make_estimate

distributed = pytest.importorskip("distributed")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples/dask/estimated_tasks.py"


def hold(event: str) -> None:
    """Wait until the test has looked."""
    distributed.Event(event).wait()


def read_durations(dask_scheduler: Any) -> tuple[dict[str, float], float]:  # noqa: ANN401
    """Give what the scheduler knows of each task, by its key, and the work it sees in all."""
    known = {key: task.prefix.duration_average for key, task in dask_scheduler.tasks.items()}
    return known, dask_scheduler.total_occupancy


def test_the_scheduler_expects_what_it_was_told() -> None:
    """Before any task has ended; names that it was not told of have Dask's own half second."""
    durations = task_durations({"horner_4096": 0.125, "matmul_64": 7.0})
    with (
        expected_durations(durations),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        keys = ["horner_4096-1", "matmul_64-1", "unheard-1"]
        futures = [client.submit(hold, "looked", key=key) for key in keys]
        found: dict[str, float] = {}
        occupancy_s = 0.0
        while len(found) < len(keys):  # they are on their way
            found, occupancy_s = client.run_on_scheduler(read_durations)
        distributed.Event("looked", client=client).set()
        client.gather(futures)
    assert [found[key] for key in keys] == [0.125, 7.0, -1]
    assert occupancy_s == pytest.approx(0.125 + 7.0 + 0.5)


def test_estimates_give_one_duration_per_kernel() -> None:
    """The mean of what workers on two devices take, who share the tasks by speed."""
    found = [
        make_estimate(seconds, kernel=kernel, device_id=device_id)
        for seconds, kernel, device_id in (
            (1.0, "triad", "a"),
            (3.0, "triad", "b"),
            (0.5, "nbody", "a"),
        )
    ]
    assert durations_of_estimates(found[:2], workers={"a": 1, "b": 1}) == {"triad": "1500000.000us"}
    named = durations_of_estimates(found[2:], workers={"a": 2}, names={"nbody": "nbody_64"})
    assert named == {"nbody_64": "500000.000us"}
    with pytest.raises(InputError, match="estimated twice"):
        durations_of_estimates([found[0], found[0]], workers={"a": 1})


@pytest.mark.device
def test_the_example_runs(first_device: DeviceDescription) -> None:
    """Kernels are estimated, and each worker runs them with objects that its driver keeps."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", EXAMPLE, "--device", first_device.id, "--tasks", "1"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "'matmul_384'" in done.stdout
    assert "4 tasks took" in done.stdout
