"""Does jobs, one at a time on a host, in processes that may die without harm."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from signal import SIGKILL
from threading import Event
from typing import Any, Final

from kernelcast.records.errors import KernelcastError
from kernelcast.records.service_state import JobKind, JobRecord, JobState
from kernelcast.service.device_lock import FileLock, hold_device, host_name, locks_folder
from kernelcast.service.errors import as_api_error, redact_paths
from kernelcast.service.telemetry import log
from kernelcast.service_state import OBSERVATIONS_CHANGED, ServiceState, StoreError
from kernelcast.workers import MessageKind, Reporter, Task
from kernelcast.workers.process import ChildProcess, converse

POLL_S: Final = 0.5
_HEARTBEAT_S: Final = 1.0
_SILENT: Final = timedelta(seconds=60)
# What a job says that could not reach the database: by the time that is noted, it is back.
_AWAY: Final = as_api_error(StoreError("")).code

JobOrder = tuple[JobKind, Mapping[str, Any], str, str | None]
"""A job as its process takes it: kind, options, database and registry of models."""


def do_job(order: JobOrder, report: Reporter) -> str:
    """Do a job in a process of its own; tell progress, and the result or the error, as JSON."""
    from kernelcast.predictor.jobs import run_job

    kind, options, database, registry = order
    next_s, done = 0.0, -1

    def tell(progress: dict[str, Any]) -> None:
        """Tell where the job stands twice a second; a further part that is done always."""
        nonlocal next_s, done
        now_s, now_done = time.monotonic(), progress.get("done", -1)
        if now_s >= next_s or now_done != done:
            next_s, done = now_s + POLL_S, now_done
            report.give(json.dumps(progress))

    run = partial(run_job, database=database, registry=registry, hold=hold_device)
    try:
        return json.dumps({"result": run(kind, options, tell)})
    except KernelcastError as error:
        return json.dumps({"error": {**as_api_error(error).describe(), "message": str(error)}})


DO_JOB: Final = Task(
    entry=f"{__name__}:{do_job.__name__}", returns=str, gives=str, most_bytes=256 << 20
)


@dataclass(eq=False)
class JobRunner:
    """Does the jobs of this host; of several processes of a host the one with the lock does."""

    state: ServiceState
    devices: Callable[[], Awaitable[set[str]]]
    _: KW_ONLY
    database: str
    registry: str | None
    task: Task[str] = DO_JOB
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
        jobs, silent_since = self.state.jobs, datetime.now(UTC) - _SILENT
        orphans = jobs.put_back_orphans(self.owner, silent_since=silent_since)
        if orphans:
            log("jobs of a process that is gone wait again", count=orphans)
        job = jobs.claim(self.owner, devices)
        if job is not None:
            log("job begins", job=job.id, kind=job.kind, crashes=job.crashes)
            _Work(self, job).do(stopping)


class _Work:
    """One job at work; blocks until it has ended, or the service ends."""

    def __init__(self, runner: JobRunner, job: JobRecord) -> None:
        self._runner = runner
        self._job = job
        # Where the job stands, and what of that is in the database.
        self._progress = self._told = job.progress
        # What is done at the beginning was done before; rows are counted from each beginning.
        self._done, self._rows = int(job.progress.get("done") or 0), 0

    def do(self, stopping: Event) -> None:
        # The job's name in the list of processes.
        child = ChildProcess.start(steps=[self._runner.task.entry.partition(":")[0]])
        is_wanted = True
        try:
            with ThreadPoolExecutor(1, thread_name_prefix="job") as thread:
                following = thread.submit(self._follow, child)
                try:
                    while not wait([following], _HEARTBEAT_S).done:
                        if not is_wanted or stopping.is_set():
                            break
                        with suppress(KernelcastError):  # the database is away for a while
                            is_wanted = self._report()
                finally:
                    child.signal(SIGKILL)  # the thread that follows ends with it
            outcome = following.result()
            # Until the database takes the outcome, the job is not done. Without a database it is
            # found running at the next start, and goes on as well.
            while not self._note(outcome, is_wanted=is_wanted, is_stopped=stopping.is_set()):
                if stopping.wait(POLL_S):
                    return
        finally:
            child.end()

    def _follow(self, child: ChildProcess) -> dict[str, Any]:
        """Take what the process tells; give what it has come to, or how it died."""
        runner, job = self._runner, self._job
        order = (job.kind, dict(job.options), runner.database, runner.registry)
        outcome: dict[str, Any] = {}
        try:
            for message in converse(  # the limit: what a socket can wait
                child, runner.task, order, timeout_s=1e7, subject=f"job {job.id}"
            ):
                if message.kind is MessageKind.ITEM:
                    told = json.loads(message.content)
                    self._advance(told, str(told.get("stage") or ""))
                elif message.kind is MessageKind.RESULT:
                    outcome = json.loads(message.content)
        except KernelcastError as error:
            return {"died": str(error)}
        told = outcome.get("error", {})
        return {"died": told["message"]} if told.get("code") == _AWAY else outcome

    def _advance(self, progress: Mapping[str, Any], stage: str) -> None:
        """Take where the job stands now; a stage that begins is a line of its ``log``."""
        stages, stage = list(self._progress.get("log", ())), stage[:80]
        if stage and (not stages or stages[-1][1] != stage):
            stages.append([datetime.now(UTC).isoformat(timespec="seconds"), stage])
        # It travels with every sign of progress: 6 KB at most.
        self._progress = {**progress, "log": stages[-60:]} if stages else progress

    def _report(self) -> bool:
        """Give a sign of life, and tell where the job stands if that has changed, and whether it
        has come further than ever before; give whether it is wanted still."""
        progress = self._progress
        done = max(self._done, int(progress.get("done") or 0))
        rows = max(self._rows, int(progress.get("rows") or 0))
        goes_on = self._runner.state.jobs.report(
            self._job.id, self._runner.owner, None if progress is self._told else progress,
            has_advanced=done > self._done or rows > self._rows,
        )  # fmt: skip
        self._told, self._done, self._rows = progress, done, rows
        return goes_on

    def _note(self, outcome: Mapping[str, Any], *, is_wanted: bool, is_stopped: bool) -> bool:
        """Note what the job has come to; tell whether the database has taken it."""
        runner, told = self._runner, "job ends"
        jobs, its = runner.state.jobs, (self._job.id, runner.owner)
        try:
            if not is_wanted:
                told = "job is cancelled"
                jobs.finish(*its, JobState.CANCELLED)
            elif is_stopped and "died" in outcome:
                told = "job waits for the next start"
                jobs.put_back(*its)
            else:
                if self._progress is not self._told:
                    self._report()
                if "result" in outcome:
                    runner.state.changes.count(OBSERVATIONS_CHANGED)
                    jobs.finish(*its, JobState.DONE, result=outcome["result"])
                elif "error" in outcome:
                    error = outcome["error"]
                    error = {**error, "message": redact_paths(error["message"])}
                    jobs.finish(*its, JobState.FAILED, error=error)
                else:
                    # Let it go on, unless it dies again and again at the same place.
                    known, said = jobs.find(self._job.id), outcome["died"]
                    log("job died", level=40, job=self._job.id, said=said)
                    if known is not None and known.crashes + 1 >= runner.most_crashes:
                        message = (
                            f"the job's process died {runner.most_crashes} times without progress: "
                            f"{redact_paths(said)}"
                        )
                        error = {"code": "job_crashed", "message": message, "detail": None}
                        jobs.finish(*its, JobState.FAILED, error=error)
                    else:
                        self._advance(self._progress, "its process died")
                        self._report()
                        jobs.put_back(*its, has_crashed=True)
        except KernelcastError:
            return False
        log(told, job=self._job.id, outcome=next(iter(outcome)))
        return True
