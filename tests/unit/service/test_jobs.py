"""Jobs are done, followed, cancelled, and survive whoever does them; devices are held for them."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from kernelcast.records.service_state import JobKind, JobRecord, JobState
from kernelcast.service import jobs
from kernelcast.service.device_lock import DeviceLock, hold_device
from kernelcast.service.jobs import JobRunner
from kernelcast.service.routes import jobs as routes
from kernelcast.service_state import ServiceState
from support.service_backend import service_of


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "POLL_S", 0.02)
    monkeypatch.setattr(jobs, "_HEARTBEAT_S", 0.05)
    monkeypatch.setattr(routes, "_LOOK_S", 0.02)


def _add(state: ServiceState, *, devices: tuple[str, ...] = ()) -> str:
    job = JobRecord(
        id="job", kind=JobKind.TRAIN, options={}, created_at=datetime.now(UTC), devices=devices
    )
    return state.jobs.add(job)[0].id


def _find(state: ServiceState, job_id: str) -> JobRecord:
    job = state.jobs.find(job_id)
    assert job is not None
    return job


def _run(state: ServiceState, folder: Path, job: str, until: Callable[[], bool]) -> None:
    """Do jobs by a function of `support.jobs_to_do` until a condition holds, then end in order."""

    async def devices() -> set[str]:
        return {"fake-device-0000"}

    async def work() -> None:
        database, work = str(folder / "store.sqlite"), f"support.jobs_to_do:{job}"
        runner = JobRunner(
            state, devices, database=database, registry=None, work=work, most_crashes=2
        )
        task = asyncio.create_task(runner.run())
        while not await asyncio.to_thread(until):
            await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(work())


@pytest.mark.parametrize("job", ["be_away_once", "die_twice"])
def test_a_job_that_dies_goes_on(state: ServiceState, folder: Path, job: str) -> None:
    """Where the database was away, and as often as it makes progress in between."""
    job_id = _add(state)
    _run(state, folder, job, lambda: _find(state, job_id).state.is_final)
    assert _find(state, job_id).state is JobState.DONE
    log = _find(state, job_id).progress["log"]
    assert {text for _, text in log} == {"its process died"}


def test_a_job_that_dies_at_the_same_place_is_given_up(state: ServiceState, folder: Path) -> None:
    """After two deaths without progress, with what it wrote last."""
    job_id = _add(state)
    _run(state, folder, "die", lambda: _find(state, job_id).state.is_final)
    job = _find(state, job_id)
    assert job.state is JobState.FAILED
    assert job.error is not None
    assert job.error["code"] == "job_crashed"
    assert "exit status 7" in job.error["message"]
    assert "out of memory" in job.error["message"]


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_a_job_at_work_ends_with_a_request_or_the_service(
    state: ServiceState, folder: Path, is_cancelled: bool
) -> None:
    """What it has told stays; after the end of the service the next start goes on with it."""
    job_id = _add(state)

    def is_over() -> bool:
        job = _find(state, job_id)
        if is_cancelled and job.progress:
            state.jobs.cancel(job_id)
        return job.state.is_final if is_cancelled else bool(job.progress)

    _run(state, folder, "sleep", is_over)
    job = _find(state, job_id)
    assert job.state is (JobState.CANCELLED if is_cancelled else JobState.QUEUED)
    assert job.progress == {"done": 3}


def test_jobs_go_to_the_host_with_their_devices(state: ServiceState) -> None:
    """And what another host does is left to it while it gives signs of life."""
    job_id = _add(state, devices=("somewhere-else",))
    assert state.jobs.claim("here", {"fake-device-0000"}) is None
    assert state.jobs.claim("there", {"somewhere-else", "more"}) is not None
    assert state.jobs.put_back_orphans("here", silent_since=datetime(2020, 1, 1, tzinfo=UTC)) == 0
    assert state.jobs.report(job_id, "there", None)
    assert state.jobs.put_back_orphans("here", silent_since=datetime.now(UTC)) == 1
    assert not state.jobs.report(job_id, "there", None)
    state.jobs.finish(job_id, "there", JobState.DONE)
    assert _find(state, job_id).state is JobState.QUEUED


def test_only_so_many_jobs_are_followed_at_once(client: TestClient, state: ServiceState) -> None:
    """Each stream looks at the database; whoever comes too late may ask for the state."""
    job_id = client.post("/v1/jobs", json={"kind": "train"}).json()["id"]
    service = service_of(client)
    service.streams = service.settings.limits.streams
    for path in (f"/v1/jobs/{job_id}/events", f"/jobs/{job_id}/events"):
        answer = client.get(path)
        assert answer.status_code == 503
        assert "retry-after" in answer.headers
    service.streams = 0
    state.jobs.cancel(job_id)
    assert client.get(f"/v1/jobs/{job_id}/events").status_code == 200
    assert service.streams == 0


_HOLD = """
import sys, time
from kernelcast.service.device_lock import DeviceLock
lock = DeviceLock("a/b c")
assert lock.acquire()
print("held", flush=True)
time.sleep(600)
"""


def test_a_lock_of_a_killed_process_is_free(folder: Path) -> None:
    """It holds while the process lives, and not a moment longer."""
    process = subprocess.Popen([sys.executable, "-c", _HOLD], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    lock = DeviceLock("a/b c")
    assert not lock.acquire(0.05)
    assert DeviceLock("another").acquire(0.05)
    process.kill()
    process.wait()
    process.stdout.close()
    assert lock.acquire()
    lock.release()
    assert all(one.parent == folder / "locks" for one in folder.rglob("*.lock"))


def test_who_waits_comes_before_a_job_that_goes_on(folder: Path) -> None:
    """Between two steps of a job an estimate gets its turn."""
    del folder
    order: list[str] = []

    def estimate() -> None:
        lock = DeviceLock("x")
        assert lock.acquire()
        order.append("estimate")
        lock.release()

    with hold_device("x") as let_others_in:
        order.append("first step")
        thread = threading.Thread(target=estimate)
        thread.start()
        door = DeviceLock("x")._door
        while door.try_acquire():  # nobody stands there yet
            door.release()
            time.sleep(0.005)
        let_others_in()
        order.append("second step")
    thread.join()
    assert order == ["first step", "estimate", "second step"]
