"""All parts of a running service, put together."""

import asyncio
import contextlib
import hashlib
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Literal, TypeVar

from cachetools import FIFOCache

from kernelcast.launches.data_store import choose_store, open_data_store
from kernelcast.launches.problem_file import read_inline_problem
from kernelcast.predictor.answering.processes import CallerProcesses
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.private_files import make_private_folder
from kernelcast.records.problem import Problem
from kernelcast.service.authentication import Authenticator
from kernelcast.service.backend import Backend, ChangeWatcher, DeviceDirectory
from kernelcast.service.device_lock import host_name, locks_folder
from kernelcast.service.errors import ApiError
from kernelcast.service.estimating import Estimating
from kernelcast.service.guard import check_problem, check_source
from kernelcast.service.jobs import JobRunner
from kernelcast.service.observing import Answers, Observing
from kernelcast.service.settings import Limits, ServiceSettings
from kernelcast.service.telemetry import Metrics
from kernelcast.service_state import ServiceState, open_state
from kernelcast.training.registry import open_registry
from kernelcast.workers import Task, run_isolated


@dataclass(eq=False)
class ProblemCache:
    """Problems by their digests: a process reads each once, the database has them all."""

    _state: ServiceState
    _limits: Limits
    _known: FIFOCache[str, Problem] = field(default_factory=lambda: FIFOCache(4096))

    async def take(self, content: Mapping[str, Any]) -> tuple[str, Problem]:
        """Take a problem as it came."""
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(text.encode()).hexdigest()
        known = self._known.get(digest)
        if known is not None:
            return digest, known
        problem = self._read(content)
        await asyncio.to_thread(self._state.problems.add, digest, text)
        self._known[digest] = problem
        return digest, problem

    async def find(self, digest: str) -> Problem:
        known = self._known.get(digest)
        if known is None:
            known = self._known[digest] = self._read(await self.read(digest))
        return known

    async def read(self, digest: str) -> Mapping[str, Any]:
        """Read what was sent as a problem."""
        text = await asyncio.to_thread(self._state.problems.find, digest)
        if text is None:
            raise ApiError(
                HTTPStatus.NOT_FOUND,
                "unknown_problem",
                f"there is no problem {digest!r}; send it as `problem` once",
            )
        found: Mapping[str, Any] = json.loads(text)
        return found

    def _read(self, content: Mapping[str, Any]) -> Problem:
        given = dict(content)
        name = given.pop("name", None)
        # Refuse a problem by its text, before anything reads it.
        check_source(given["code"], self._limits, given.get("build_options", ()))
        try:
            problem = read_inline_problem(given, name=name)
        except (ValueError, OverflowError, RecursionError) as error:
            msg = f"problem: holds what cannot be read as a number or text ({error})"
            raise InputError(msg) from error
        check_problem(problem, self._limits)
        return problem


R = TypeVar("R")


class Service:
    """A running service; `kernelcast.service.app` gives it to every request."""

    def __init__(
        self, settings: ServiceSettings, metrics: Metrics, backend: Backend | None = None
    ) -> None:
        self.settings, self.metrics = settings, metrics
        database = settings.database or str(choose_store())
        self.state = open_state(database)
        self.confinement, failure = settings.protect(database)
        self.gap = settings.describe_gap(self.confinement, failure)
        self.sandbox: Literal["bubblewrap", "none"] = "bubblewrap" if self.confinement else "none"
        make_private_folder(locks_folder())
        # By this file processes of a host take turns on its processors.
        turns = locks_folder() / f"{host_name()}.turns"
        processes = CallerProcesses(self.confinement, turns)
        self.backend = backend or Backend(database, settings.registry, processes)
        self.problems = ProblemCache(self.state, settings.limits)
        self.answers = Answers(self.state, metrics, settings.limits)
        self.authenticator = Authenticator(settings, self.state)
        self.observing = Observing(
            open_data_store(database), self.backend, self.state, metrics, self.answers
        )
        self.watcher = ChangeWatcher(self.state, self.backend, metrics, self.authenticator.forget)
        self.estimating = Estimating(
            self.backend, settings.limits, metrics, self.answers, self.watcher
        )
        self.devices = DeviceDirectory(self.backend)
        self.registry = open_registry(settings.registry)
        self.runner = JobRunner(
            self.state, self.devices.ids, database=database, registry=settings.registry
        )
        # Wait for answers to questions about sources and loops, which run nothing.
        self._questions = ThreadPoolExecutor(2, "questions")
        self.stopping = asyncio.Event()
        """Is set when the service ends: streams end then."""
        self.streams = 0
        """Of events, open now."""
        self._tasks: list[asyncio.Task[None]] = []

    async def ask(self, question: Task[R], asked: object, subject: str) -> R:
        """Ask about a source or loops in a child process, within the sandbox; nothing is run."""

        def work() -> R:
            return run_isolated(
                question, asked, subject=subject, confinement=self.confinement,
                timeout_s=60.0,  # what somebody has typed may take for ever
            )  # fmt: skip

        return await asyncio.get_running_loop().run_in_executor(self._questions, work)

    async def start(self) -> None:
        self.metrics.process_starts.inc()
        await self.watcher.look()
        beside = [self.watcher.run(), self.answers.run()]
        if self.settings.runs_jobs:
            beside.append(self.runner.run())
        if self.settings.allow_run:
            share = self.settings.refine_share / self.settings.workers
            beside += [self._make_ready(), self.estimating.refine_while_idle(share)]
        self._tasks = [asyncio.create_task(one) for one in beside]

    async def _make_ready(self) -> None:
        """Have processes wait for the first samplings."""
        with contextlib.suppress(KernelcastError):  # who asks is told
            self.backend.make_ready(sorted(await self.devices.ids()))

    async def stop(self) -> None:
        """End in order: a job at work is written down as waiting."""
        self.stopping.set()
        for one in self._tasks:
            one.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.estimating.close()
        await self.answers.flush()
        await asyncio.to_thread(self.backend.close)
        self._questions.shutdown(wait=False, cancel_futures=True)
        self.observing.close()
        self.state.close()
