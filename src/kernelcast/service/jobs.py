"""Does jobs, one at a time on a host, in processes that may die without harm.

A job's process writes down where the job stands and what it has come to. The service that has
started it gives the signs of life, and ends it, or lets the job wait again where it has died.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import wait
from pkgutil import resolve_name
from signal import SIGKILL
from threading import Event
from typing import Any, Final

from kernelcast.records.errors import KernelcastError
from kernelcast.records.service_state import JobRecord, JobState
from kernelcast.service.device_lock import FileLock, hold_device, host_name, locks_folder
from kernelcast.service.errors import as_api_error, redact_paths
from kernelcast.service.telemetry import log
from kernelcast.service_state import OBSERVATIONS_CHANGED, ServiceState, StoreError, open_state
from kernelcast.workers import Reporter, Task
from kernelcast.workers.process import ChildProcess
from kernelcast.workers.protocol import ClosedError, read_message

POLL_S: Final = 0.5
_HEARTBEAT_S: Final = 1.0
_SILENT: Final = timedelta(seconds=60)
Progress = Mapping[str, Any]


def do_job(order: tuple[str, str, str, str | None, str], _: Reporter) -> None:
    """Do a job in a process of its own: the job's id, who does it, database and registry of models,
    and the function that does such jobs.

    A database that is away for a while delays what is written; a job that fails by that dies.
    """
    job_id, owner, database, registry, work = order
    run_job: Callable[..., object] = resolve_name(work)
    with open_state(database) as state:
        job = state.jobs.find(job_id)
        if job is None:
            return
        told = progress = job.progress
        # What is done at the beginning was done before; rows are counted from each beginning.
        most_done, most_rows, next_s = int(progress.get("done") or 0), 0, 0.0

        def write() -> None:
            """Write down where the job stands, and whether it has come further than ever before."""
            nonlocal told, most_done, most_rows
            done, rows = (int(progress.get(name) or 0) for name in ("done", "rows"))
            has_advanced = done > most_done or rows > most_rows
            state.jobs.report(job_id, owner, progress, has_advanced=has_advanced)
            told, most_done, most_rows = progress, max(done, most_done), max(rows, most_rows)

        def tell(now: Progress) -> None:
            """Take where the job stands, to be written twice a second; a part that is done at
            once."""
            nonlocal progress, next_s
            has_moved = now.get("done") != progress.get("done")
            progress = _log_stage(progress, now, str(now.get("stage") or ""))
            if has_moved or time.monotonic() >= next_s:
                next_s = time.monotonic() + POLL_S
                with suppress(StoreError):
                    write()

        end: dict[str, Any] = {"state": JobState.DONE}
        try:
            end["result"] = run_job(
                job.kind, job.options, tell, database=database, registry=registry, hold=hold_device
            )
        except StoreError:
            raise
        except KernelcastError as error:
            message = redact_paths(str(error))
            end = {"state": JobState.FAILED,
                   "error": {**as_api_error(error).describe(), "message": message}}  # fmt: skip
        while True:
            try:
                if progress is not told:
                    write()
                if "result" in end:
                    state.changes.count(OBSERVATIONS_CHANGED)
                state.jobs.finish(job_id, owner, **end)
            except StoreError:
                time.sleep(POLL_S)
            else:
                return


def _log_stage(before: Progress, now: Progress, stage: str) -> Progress:
    """Give where a job stands now; a stage that begins is a line of its ``log``."""
    stages, stage = list(before.get("log", ())), stage[:80]
    if stage and (not stages or stages[-1][1] != stage):
        stages.append([datetime.now(UTC).isoformat(timespec="seconds"), stage])
    # It travels with every sign of progress: 6 KB at most.
    return {**now, "log": stages[-60:]} if stages else now


_DO_JOB: Final[Task[None]] = Task(entry=f"{__name__}:{do_job.__name__}")


@dataclass(eq=False)
class JobRunner:
    """Does the jobs of this host; of several processes of a host the one with the lock does."""

    state: ServiceState
    devices: Callable[[], Awaitable[set[str]]]
    _: KW_ONLY
    database: str
    registry: str | None
    work: str = "kernelcast.predictor.jobs:run_job"
    most_crashes: int = 20

    def __post_init__(self) -> None:
        self.owner = host_name()
        self._lock = FileLock(locks_folder() / f"{self.owner}.jobs")

    async def run(self) -> None:
        """Do jobs until cancelled; a job at work then waits for the next start."""
        while not self._lock.try_acquire():
            await asyncio.sleep(POLL_S)
        loop, stopping, trouble = asyncio.get_running_loop(), Event(), ""
        with ThreadPoolExecutor(1, thread_name_prefix="jobs") as thread:
            try:
                while True:
                    try:
                        devices = await self.devices()
                        step = loop.run_in_executor(thread, self._step, devices, stopping)
                        await asyncio.shield(step)
                        trouble = ""
                    except Exception as error:  # noqa: BLE001 - jobs go on, whatever it is
                        if trouble != repr(error):  # not the same line twice a second
                            trouble = repr(error)
                            log("jobs wait", level=40, error=trouble)
                    await asyncio.sleep(POLL_S)
            finally:
                stopping.set()
                await loop.run_in_executor(thread, self._lock.release)  # after the step

    def _step(self, devices: set[str], stopping: Event) -> None:
        """Do the next job, if there is one; returns when it has ended, or the service ends."""
        jobs, silent_since = self.state.jobs, datetime.now(UTC) - _SILENT
        orphans = jobs.put_back_orphans(self.owner, silent_since=silent_since)
        if orphans:
            log("jobs of a process that is gone wait again", count=orphans)
        job = jobs.claim(self.owner, devices)
        if job is None:
            return
        log("job begins", job=job.id, kind=job.kind, crashes=job.crashes)
        # The job's name in the list of processes.
        child = ChildProcess.start(steps=[__name__])
        try:
            order = (job.id, self.owner, self.database, self.registry, self.work)
            child.order(_DO_JOB, order, within_s=60.0)
            is_wanted = True
            while not wait([child.channel.socket], _HEARTBEAT_S):  # until it says or is nothing
                with suppress(KernelcastError):  # the database is away for a while
                    is_wanted = jobs.report(job.id, self.owner, None)
                if not is_wanted or stopping.is_set():
                    child.signal(SIGKILL)
            try:
                frame = child.channel.receive(within_s=60.0)
                died = str(read_message(frame, returns=_DO_JOB.returns, gives=None).content)
            except ClosedError:
                died = child.explain_death(f"job {job.id}", "")
            # Without a database it is found running at the next start, and goes on as well.
            while not self._end(job.id, died, is_stopped=stopping.is_set()):
                if stopping.wait(POLL_S):
                    return
        finally:
            child.end()

    def _end(self, job_id: str, died: str, *, is_stopped: bool) -> bool:
        """Note the end of a job's process; tell whether the database has taken that."""
        jobs, its, said = self.state.jobs, (job_id, self.owner), "job ends"
        try:
            job = jobs.find(job_id)
            if job is not None and job.owner == self.owner and job.state is JobState.RUNNING:
                if job.is_cancel_wanted:
                    said = "job is cancelled"
                    jobs.finish(*its, JobState.CANCELLED)
                elif is_stopped:
                    said = "job waits for the next start"
                    jobs.put_back(*its)
                else:
                    self._note_death(job, died)
        except KernelcastError:
            return False
        log(said, job=job_id)
        return True

    def _note_death(self, job: JobRecord, died: str) -> None:
        """Let a job go on whose process died, unless it does again and again at one place."""
        jobs, its = self.state.jobs, (job.id, self.owner)
        log("job died", level=40, job=job.id, said=died)
        if job.crashes + 1 >= self.most_crashes:
            message = (
                f"the job's process died {self.most_crashes} times without progress: "
                f"{redact_paths(died)}"
            )
            error = {"code": "job_crashed", "message": message, "detail": None}
            jobs.finish(*its, JobState.FAILED, error=error)
        else:
            progress = _log_stage(job.progress, job.progress, "its process died")
            jobs.report(*its, progress)
            jobs.put_back(*its, has_crashed=True)
