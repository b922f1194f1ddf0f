"""Does jobs, one at a time on a host, in processes that may die without harm."""

import asyncio
import json
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta
from signal import SIGKILL
from threading import Event
from typing import Any, Final

from kernelcast.records.errors import KernelcastError
from kernelcast.records.service_state import JobKind, JobRecord, JobState
from kernelcast.service.changes import EVERYTHING
from kernelcast.service.device_lock import hold_device, host_name, jobs_lock
from kernelcast.service.errors import as_api_error
from kernelcast.service.redaction import redact_paths
from kernelcast.service.telemetry import log
from kernelcast.service_state import ServiceState, StoreError
from kernelcast.workers import MessageKind, Reporter, Task
from kernelcast.workers.process import ChildProcess
from kernelcast.workers.running import converse

POLL_S: Final = 0.5
_HEARTBEAT_S: Final = 1.0
_SILENT: Final = timedelta(seconds=60)
# What a job says that could not reach the database: by the time that is noted, it is back.
_AWAY: Final = as_api_error(StoreError("")).code

JobOrder = tuple[JobKind, Mapping[str, Any], str, str | None]
"""A job as its process takes it: kind, options, database and registry of models."""


def do_job(order: JobOrder, report: Reporter) -> str:
    """Do a job in a process of its own; tell progress, and the result or the error, as JSON."""
    from kernelcast.predictor.jobs import JobPlace, run_job

    kind, options, database, registry = order
    next_s, done = 0.0, -1

    def tell(progress: dict[str, Any]) -> None:
        """Tell where the job stands twice a second; a further part that is done always."""
        nonlocal next_s, done
        now_s, now_done = time.monotonic(), progress.get("done", -1)
        if now_s >= next_s or now_done != done:
            next_s, done = now_s + POLL_S, now_done
            report.give(json.dumps(progress))

    place = JobPlace(database=database, registry=registry, hold=hold_device)
    try:
        return json.dumps({"result": run_job(kind, options, place, tell)})
    except KernelcastError as error:
        return json.dumps({"error": {**as_api_error(error).describe(), "message": str(error)}})


DO_JOB: Final = Task(
    entry=f"{__name__}:{do_job.__name__}", returns=str, gives=str, most_bytes=256 << 20
)


class JobRunner:
    """Does the jobs of this host; of several processes of a host the one with the lock does."""

    def __init__(
        self,
        state: ServiceState,
        devices: Callable[[], Awaitable[set[str]]],
        *,
        database: str,
        registry: str | None,
        task: Task[str] = DO_JOB,
        most_crashes: int = 20,
    ) -> None:
        self._state = state
        self._devices = devices
        self._place = (database, registry)
        self._task = task
        self._most_crashes = most_crashes
        self._owner = host_name()
        self._lock = jobs_lock()

    async def run(self) -> None:
        """Do jobs until cancelled; a job at work then waits for the next start."""
        while not self._lock.try_acquire():
            await asyncio.sleep(POLL_S)
        loop, stopping, trouble = asyncio.get_running_loop(), Event(), ""
        with ThreadPoolExecutor(1, thread_name_prefix="jobs") as thread:
            try:
                while True:
                    try:
                        devices = await self._devices()
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
        """Do the next job, if there is one."""
        jobs, silent_since = self._state.jobs, datetime.now(UTC) - _SILENT
        orphans = jobs.put_back_orphans(self._owner, silent_since=silent_since)
        if orphans:
            log("jobs of a process that is gone wait again", count=orphans)
        job = jobs.claim(self._owner, devices)
        if job is not None:
            log("job begins", job=job.id, kind=job.kind, crashes=job.crashes)
            work = _Work(self._state, job, self._owner, self._most_crashes)
            work.do(self._task, (job.kind, dict(job.options), *self._place), stopping)


class _Work:
    """One job at work; blocks until it has ended, or the service ends."""

    def __init__(self, state: ServiceState, job: JobRecord, owner: str, most_crashes: int) -> None:
        self._state = state
        self._job = job
        self._owner = owner
        self._progress: Mapping[str, Any] | None = None
        self._last: Mapping[str, Any] = job.progress
        # The last stages with their times, kept beside the progress as ``log``. It travels with
        # every sign of progress: 6 KB at most.
        self._stages: deque[list[str]] = deque(job.progress.get("log", ()), maxlen=60)
        self._stage = ""
        self._most_crashes = most_crashes
        # What is done at the beginning was done before; rows are counted from each beginning.
        self._done, self._rows = int(job.progress.get("done") or 0), 0

    def do(self, task: Task[str], order: JobOrder, stopping: Event) -> None:
        """Start the process, follow it, and note what it has come to."""
        # The job's name in the list of processes.
        child = ChildProcess.start(steps=[task.entry.partition(":")[0]])
        is_wanted = True
        try:
            with ThreadPoolExecutor(1, thread_name_prefix="job") as thread:
                following = thread.submit(self._follow, child, task, order)
                try:
                    is_wanted = self._keep_alive(following, stopping)
                finally:
                    child.signal(SIGKILL)  # the thread that follows ends with it
            # Until the database takes the outcome, the job is not done. Without a database it is
            # found running at the next start, and goes on as well.
            while not self._note(following, is_wanted=is_wanted, is_stopped=stopping.is_set()):
                if stopping.wait(POLL_S):
                    return
        finally:
            child.end()

    def _follow(self, child: ChildProcess, task: Task[str], order: JobOrder) -> dict[str, Any]:
        """Take what the process tells; give what it has come to, or how it died."""
        outcome: dict[str, Any] = {}
        try:
            for message in converse(  # the limit: what a socket can wait
                child, task, order, timeout_s=1e7, subject=f"job {self._job.id}"
            ):
                if message.kind is MessageKind.ITEM:
                    self._last = json.loads(message.content)
                    stage = str(self._last.get("stage") or "")
                    self._progress = self._write_progress(stage if stage != self._stage else "")
                    self._stage = stage or self._stage
                elif message.kind is MessageKind.RESULT:
                    outcome = json.loads(message.content)
        except KernelcastError as error:
            return {"died": str(error)}
        told = outcome.get("error", {})
        return {"died": told["message"]} if told.get("code") == _AWAY else outcome

    def _keep_alive(self, following: Future[dict[str, Any]], stopping: Event) -> bool:
        """Give signs of life and progress to the end; tell whether the job is wanted still."""
        told_s = time.monotonic()
        while not wait([following], POLL_S).done:
            if stopping.is_set():
                break
            progress, self._progress = self._progress, None
            if progress is None and time.monotonic() < told_s + _HEARTBEAT_S:
                continue
            told_s = time.monotonic()
            try:
                if not self._report(progress):
                    return False
            except KernelcastError:
                self._progress = self._progress or progress  # the database is away for a while
        return True

    def _report(self, progress: Mapping[str, Any] | None) -> bool:
        """Tell where the job stands, and whether it has come further than ever before."""
        done, rows = self._done, self._rows
        if progress is not None:
            done = max(done, int(progress.get("done") or 0))
            rows = max(rows, int(progress.get("rows") or 0))
        goes_on = self._state.jobs.report(
            self._job.id, self._owner, progress,
            has_advanced=done > self._done or rows > self._rows,
        )  # fmt: skip
        self._done, self._rows = done, rows
        return goes_on

    def _note(
        self, following: Future[dict[str, Any]], *, is_wanted: bool, is_stopped: bool
    ) -> bool:
        """Note what the job has come to; tell whether the database has taken it."""
        jobs, job_id, owner = self._state.jobs, self._job.id, self._owner
        outcome = following.result()
        try:
            if not is_wanted:
                jobs.finish(job_id, owner, JobState.CANCELLED)
                log("job is cancelled", job=job_id)
                return True
            if is_stopped and "died" in outcome:
                jobs.put_back(job_id, owner)
                log("job waits for the next start", job=job_id)
                return True
            if self._progress is not None:
                self._report(self._progress)
                self._progress = None
            if "result" in outcome:
                self._state.changes.count(EVERYTHING)
                jobs.finish(job_id, owner, JobState.DONE, result=outcome["result"])
            elif "error" in outcome:
                error = outcome["error"]
                error = {**error, "message": redact_paths(error["message"])}
                jobs.finish(job_id, owner, JobState.FAILED, error=error)
            else:
                self._note_crash(outcome["died"])
                return True
        except KernelcastError:
            return False
        log("job ends", job=job_id, outcome=next(iter(outcome)))
        return True

    def _note_crash(self, said: str) -> None:
        """Let a job that died go on, unless it dies again and again at the same place."""
        jobs, job_id = self._state.jobs, self._job.id
        known = jobs.find(job_id)
        log("job died", level=40, job=job_id, said=said)
        if known is not None and known.crashes + 1 >= self._most_crashes:
            error = {
                "code": "job_crashed",
                "message": f"the job's process died {self._most_crashes} times without progress: "
                f"{redact_paths(said)}",
                "detail": None,
            }
            jobs.finish(job_id, self._owner, JobState.FAILED, error=error)
            return
        self._report(self._write_progress("its process died"))
        jobs.put_back(job_id, self._owner, has_crashed=True)

    def _write_progress(self, stage: str) -> Mapping[str, Any]:
        """Give the last progress with the log; a stage that begins is a line of it."""
        if stage:
            self._stages.append([datetime.now(UTC).isoformat(timespec="seconds"), stage[:80]])
        return {**self._last, "log": list(self._stages)} if self._stages else self._last
