"""Does jobs, one at a time on a host, in processes that may die without harm."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from kernelcast.records.errors import KernelcastError
from kernelcast.records.service_state import JobRecord, JobState
from kernelcast.service.changes import EVERYTHING
from kernelcast.service.device_lock import host_name, jobs_lock
from kernelcast.service.errors import kind_of
from kernelcast.service.redaction import redact_paths
from kernelcast.service.telemetry import log
from kernelcast.service_state import ServiceState, StoreError

POLL_S: Final = 0.5
_HEARTBEAT_S: Final = 1.0
_SILENT: Final = timedelta(seconds=60)
# What a job says that could not reach the database: by the time that is noted, it is back.
_AWAY: Final = kind_of(StoreError("")).code
# The log travels with every sign of progress: 6 KB at most.
_LINES: Final = 60


class JobRunner:
    """Does the jobs of this host; of several processes of a host the one with the lock does."""

    def __init__(
        self,
        state: ServiceState,
        devices: Callable[[], Awaitable[set[str]]],
        *,
        database: str,
        registry: str | None,
        command: tuple[str, ...] = ("-m", "kernelcast.service.job_process"),
        most_crashes: int = 20,
    ) -> None:
        self._state = state
        self._devices = devices
        self._place = {"database": database, "registry": registry}
        self._command = command
        self._most_crashes = most_crashes
        self._owner = host_name()
        self._lock = jobs_lock()

    async def run(self) -> None:
        """Do jobs until cancelled; a job at work then waits for the next start."""
        while not self._lock.try_acquire():
            await asyncio.sleep(POLL_S)
        try:
            trouble = ""
            while True:
                try:
                    await self._step()
                    trouble = ""
                except Exception as error:  # noqa: BLE001 - jobs go on, whatever it is
                    if trouble != repr(error):  # not the same line twice a second
                        trouble = repr(error)
                        log("jobs wait", level=40, error=trouble)
                await asyncio.sleep(POLL_S)
        finally:
            self._lock.release()

    async def _step(self) -> None:
        """Do the next job, if there is one."""
        silent_since = datetime.now(UTC) - _SILENT
        orphans = await asyncio.to_thread(
            self._state.jobs.put_back_orphans, self._owner, silent_since=silent_since
        )
        if orphans:
            log("jobs of a process that is gone wait again", count=orphans)
        devices = await self._devices()
        job = await asyncio.to_thread(self._state.jobs.claim, self._owner, devices)
        if job is not None:
            log("job begins", job=job.id, kind=job.kind, crashes=job.crashes)
            work = _Work(self._state, job, self._owner, self._most_crashes)
            await work.do(self._command, self._place)


class _Work:
    """One job at work."""

    def __init__(self, state: ServiceState, job: JobRecord, owner: str, most_crashes: int) -> None:
        self._state = state
        self._job = job
        self._owner = owner
        self._progress: Mapping[str, Any] | None = None
        self._log = StageLog(job.progress)
        self._outcome: dict[str, Any] = {}
        self._is_unwanted = False
        self._most_crashes = most_crashes
        # What is done at the beginning was done before; rows are counted from each beginning.
        self._done, self._rows = int(job.progress.get("done") or 0), 0

    async def do(self, command: tuple[str, ...], place: Mapping[str, Any]) -> None:
        """Start the process, follow it, and note what it has come to."""
        read_end, write_end = os.pipe()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", *command, str(write_end),
            stdin=PIPE, stdout=DEVNULL, stderr=PIPE, pass_fds=(write_end,),
            start_new_session=True,
        )  # fmt: skip
        os.close(write_end)
        tasks: list[asyncio.Task[Any]] = []
        try:
            errors = asyncio.create_task(_read_end(process))
            tasks = [
                asyncio.create_task(self._listen(read_end)),
                asyncio.create_task(self._keep_alive(process)),
                errors,
            ]
            await self._order(process, place)
            await process.wait()
            await tasks[0]
            await self._finish(process, await errors)
        except asyncio.CancelledError:
            await self._end(process)
            # Without a database the job is found running at the next start, and goes on as well.
            with contextlib.suppress(KernelcastError):
                await asyncio.to_thread(self._state.jobs.put_back, self._job.id, self._owner)
            log("job waits for the next start", job=self._job.id)
            raise
        finally:
            for one in tasks:
                one.cancel()
            await self._end(process)

    async def _order(self, process: Process, place: Mapping[str, Any]) -> None:
        order = {"kind": self._job.kind, "options": dict(self._job.options), **place}
        if process.stdin is None:
            return
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            # It stays open: the process ends when it closes, and with it this one.
            process.stdin.write(json.dumps(order).encode() + b"\n")
            await process.stdin.drain()

    async def _listen(self, descriptor: int) -> None:
        """Take what the process tells."""
        reader = asyncio.StreamReader(limit=256 << 20)
        loop = asyncio.get_running_loop()
        pipe = os.fdopen(descriptor, "rb")
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        try:
            while line := await reader.readline():
                message = json.loads(line)
                if "progress" in message:
                    self._progress = self._log.extend(message["progress"])
                else:
                    self._outcome = message
        finally:
            transport.close()

    async def _keep_alive(self, process: Process) -> None:
        """Give signs of life and progress; end the process when nobody wants the job any more."""
        passed_s = 0.0
        while True:
            await asyncio.sleep(POLL_S)
            passed_s += POLL_S
            progress, self._progress = self._progress, None
            if progress is None and passed_s < _HEARTBEAT_S:
                continue
            passed_s = 0.0
            try:
                goes_on = await self._report(progress)
            except KernelcastError:
                self._progress = self._progress or progress  # the database is away for a while
                continue
            if not goes_on:
                self._is_unwanted = True
                await self._end(process)
                return

    async def _report(self, progress: Mapping[str, Any] | None) -> bool:
        """Tell where the job stands, and whether it has come further than ever before."""
        done, rows = self._done, self._rows
        if progress is not None:
            done = max(done, int(progress.get("done") or 0))
            rows = max(rows, int(progress.get("rows") or 0))
        goes_on = await asyncio.to_thread(
            partial(
                self._state.jobs.report,
                self._job.id,
                self._owner,
                progress,
                has_advanced=done > self._done or rows > self._rows,
            )
        )
        self._done, self._rows = done, rows
        return goes_on

    async def _finish(self, process: Process, errors: str) -> None:
        """Note the outcome; until the database takes it, the job is not done."""
        while True:
            try:
                await self._note(process, errors)
            except KernelcastError:
                await asyncio.sleep(POLL_S)
            else:
                return

    async def _note(self, process: Process, errors: str) -> None:
        jobs, job_id = self._state.jobs, self._job.id
        if self._is_unwanted:
            await asyncio.to_thread(jobs.finish, job_id, self._owner, JobState.CANCELLED)
            log("job is cancelled", job=job_id)
            return
        if self._progress is not None:
            await self._report(self._progress)
            self._progress = None
        if "result" in self._outcome:
            result = self._outcome["result"]
            await asyncio.to_thread(self._state.changes.count, EVERYTHING)
            await asyncio.to_thread(jobs.finish, job_id, self._owner, JobState.DONE, result=result)
        elif "error" in self._outcome and self._outcome["error"]["code"] != _AWAY:
            error = self._outcome["error"]
            error = {**error, "message": redact_paths(error["message"])}
            await asyncio.to_thread(jobs.finish, job_id, self._owner, JobState.FAILED, error=error)
        else:
            said = self._outcome.get("error", {}).get("message", errors)
            await self._note_crash(process, said)
            return
        log("job ends", job=job_id, outcome=next(iter(self._outcome)))

    async def _note_crash(self, process: Process, errors: str) -> None:
        """Let a job that died go on, unless it dies again and again at the same place."""
        jobs, job_id = self._state.jobs, self._job.id
        known = await asyncio.to_thread(jobs.find, job_id)
        log("job died", level=40, job=job_id, status=process.returncode, said=errors)
        if known is not None and known.crashes + 1 >= self._most_crashes:
            error = {
                "code": "job_crashed",
                "message": f"the job's process died {self._most_crashes} times without progress "
                f"(exit status {process.returncode}): {redact_paths(errors)}",
                "detail": None,
            }
            await asyncio.to_thread(jobs.finish, job_id, self._owner, JobState.FAILED, error=error)
            return
        await self._report(self._log.note(f"its process died (exit status {process.returncode})"))
        await asyncio.to_thread(jobs.put_back, job_id, self._owner, has_crashed=True)

    async def _end(self, process: Process) -> None:
        """End the process and all that it has started, gently first."""
        if process.returncode is not None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(5.0):
                    await process.wait()
                    return


async def _read_end(process: Process) -> str:
    """Read standard error until it ends; give its last lines."""
    last = b""
    if process.stderr is None:
        return ""
    while part := await process.stderr.read(4096):
        last = (last + part)[-4000:]
    return last.decode(errors="replace").strip()


class StageLog:
    """The last stages of a job with their times, kept beside its progress as ``log``."""

    def __init__(self, progress: Mapping[str, Any]) -> None:
        self._last = dict(progress)
        self._lines: deque[list[str]] = deque(progress.get("log", ()), maxlen=_LINES)
        self._stage: object = None

    def extend(self, progress: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give progress with the log; a stage that begins is a line."""
        self._last = dict(progress)
        stage = progress.get("stage")
        if stage and stage != self._stage:
            self._stage = stage
            return self.note(str(stage))
        return self._write()

    def note(self, text: str) -> Mapping[str, Any]:
        """Add a line; give the last progress with the log."""
        self._lines.append([datetime.now(UTC).isoformat(timespec="seconds"), text[:80]])
        return self._write()

    def _write(self) -> Mapping[str, Any]:
        return {**self._last, "log": list(self._lines)} if self._lines else self._last
