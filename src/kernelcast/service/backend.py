"""The one place where the service asks the predictor, and the devices that it may ask about."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from cachetools import TTLCache

from kernelcast.launches.devices import list_descriptions, pick_devices
from kernelcast.launches.machines import machine_path
from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor.answering.launch_history import LaunchHistory, update_doubts
from kernelcast.predictor.answering.memory import Answer
from kernelcast.predictor.answering.policy import Policy
from kernelcast.predictor.answering.processes import CallerProcesses, Executor, asked_by
from kernelcast.predictor.predictor import Predictor, PredictorOptions
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import (
    CompileError,
    DeviceError,
    KernelcastError,
    KernelRunError,
)
from kernelcast.records.estimates import Estimate
from kernelcast.records.explanation import Tier
from kernelcast.records.problem import LaunchIdentity, Problem, digest_text
from kernelcast.service.errors import message_of, redact, redact_estimate, redact_paths
from kernelcast.service.telemetry import Metrics, log
from kernelcast.service_state import OBSERVATIONS_CHANGED, TOKENS_CHANGED, ServiceState


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    problem: Problem
    device: DeviceDescription
    settings: EstimateSettings
    timeout_s: float
    caller: str = ""
    digest: str = ""
    """Of the problem, as callers name it."""
    lacks_scope: bool = False
    """Whether work-groups might be run if the caller were allowed to have them run."""

    @property
    def key(self) -> tuple[object, ...]:
        """What has the same answer."""
        return (self.digest, self.device.id, self.device.driver, self.settings)


class Backend:
    """Asks devices of this host; several threads may call it."""

    def __init__(self, database: str, registry: str | None, executor: Executor) -> None:
        self._executor = executor
        self._predictor = Predictor(
            store=database,
            registry=registry,
            options=PredictorOptions(executor=executor),
        )

    def list_devices(self) -> Sequence[DeviceDescription]:
        """Describe the devices of this host; their drivers are asked in a process of its own."""
        return list_descriptions()

    def recall(self, ask: Ask, beside: Estimate | None = None) -> Estimate | None:
        """Answer from observations of exactly this launch; None without any that are believed.

        An answer `beside` that stands is given again where it now has to name doubted observations.
        """
        policy = Policy(
            settings=replace(ask.settings, samples=False, within_s=None),
            methods=frozenset({Tier.HISTORY.value}),
            timeout_s=ask.timeout_s,
        )
        try:
            history = self._predictor.history(ask.problem, ask.device, policy=policy)
        except DeviceError:
            return None
        if len(history):
            return self._predictor.estimate(ask.problem, ask.device, policy=policy)
        updated = None if beside is None else update_doubts(beside, history.describe())
        return None if updated is beside else updated

    def history(self, launch: LaunchIdentity) -> LaunchHistory:
        return self._predictor.history(launch)

    def count_work(self, problem: Problem, caller: str) -> float | None:
        """Count the instructions of a launch by its source; None where that does not tell."""
        if problem.ndrange.local_size is None:
            return None
        with asked_by(caller):
            return self._executor.count_work(problem, "", asks=True)

    def make_ready(self, device_ids: Sequence[str]) -> None:
        """Start a process for each device, which opens it, where there are such processes."""
        if isinstance(self._executor, CallerProcesses):
            self._executor.make_ready(device_ids)

    def answer(self, ask: Ask) -> Answer:
        """Answer by running work-groups, one thread at a time for each device; where the settings
        allow none by the models alone, in a process of its own."""
        policy = Policy(settings=ask.settings, timeout_s=ask.timeout_s, spares_samples=True)
        found: list[Answer] = []

        def estimate() -> Answer:
            self._predictor.estimate(ask.problem, ask.device, policy=policy, keep=found.append)
            return found[0]

        return self._redact(ask, estimate)

    def close(self) -> None:
        if isinstance(self._executor, CallerProcesses):
            self._executor.close()

    def generation(self) -> int:
        """Give a number that changes with the models in use, and with a new calibration."""
        changed: list[object] = [self._predictor.refresh_models()]
        for path in sorted(machine_path("any").parent.glob("*.yaml")):
            with contextlib.suppress(OSError):
                changed.append((path.name, path.stat().st_mtime_ns))
        return hash(tuple(changed))

    def _redact(self, ask: Ask, answer: Callable[[], Answer]) -> Answer:
        """Have an answer and errors quote the submitted source alone, and name no path of this
        host."""
        kernel = ask.problem.kernel
        try:
            with asked_by(ask.caller):
                found = answer()
        except (CompileError, KernelRunError) as error:
            error.args = (redact(str(error), kernel),)
            raise
        except KernelcastError as error:
            error.args = (redact_paths(str(error)),)
            raise
        return replace(
            found,
            estimate=redact_estimate(found.estimate, kernel),
            refine=None if found.refine is None else partial(self._redact, ask, found.refine),
        )


class DeviceDirectory:
    """The devices of this host by their ids, asked for now and then."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._known: TTLCache[str, Sequence[DeviceDescription]] = TTLCache(1, 600.0)
        self._lock = asyncio.Lock()

    async def list(self) -> Sequence[DeviceDescription]:
        async with self._lock:
            found = self._known.get("")
            if found is None:
                found = await asyncio.to_thread(self._backend.list_devices)
                self._known[""] = found
        return found

    async def find(self) -> tuple[Sequence[DeviceDescription], str]:
        try:
            return await self.list(), ""
        except DeviceError as error:
            return [], message_of(error)

    async def ids(self) -> set[str]:
        return {one.id for one in (await self.find())[0]}

    async def choose(self, wanted: Sequence[str]) -> Sequence[DeviceDescription]:
        """Give the devices of those ids or beginnings of ids, each once, or all of them."""
        return pick_devices(wanted, await self.list())


PERIOD_S: Final = 1.0


def bucket_of(launch: LaunchIdentity) -> str:
    """Name the count that observations of a launch make grow."""
    device = launch.device
    parts = (launch.kernel.digest, device.id, device.driver, repr(launch.ndrange))
    return "observed:" + digest_text(*parts, launch.arguments_digest)[:3]


@dataclass(eq=False)
class ChangeWatcher:
    """Looks for changes of observations, models and tokens that other processes have made."""

    _state: ServiceState
    _backend: Backend
    _metrics: Metrics
    _forget_tokens: Callable[[], None]
    _models: int = 0
    _counts: dict[str, int] = field(default_factory=dict)
    _is_away: bool = False

    def stamp(self, bucket: str) -> tuple[int, int, int]:
        """Stamp an answer: it changes with the models in use, where any launch may have been
        observed, and where one of a bucket was."""
        return self._models, self._counts.get(OBSERVATIONS_CHANGED, 0), self._counts.get(bucket, 0)

    async def run(self) -> None:
        while True:
            await self.look()
            self._metrics.watch_process()
            await asyncio.sleep(PERIOD_S)

    async def look(self) -> None:
        """Look once; a database that does not answer costs a line in the log."""
        try:
            counts = await asyncio.to_thread(self._state.changes.read)
            self._models = await asyncio.to_thread(self._backend.generation)
        except Exception as error:  # noqa: BLE001 - it looks again in a second, whatever it is
            self._metrics.database_failures.labels("changes").inc()
            if not self._is_away:
                log("the database is away, changes are not seen", level=40, error=repr(error))
            self._is_away = True
            return
        self._is_away = False
        if counts.get(TOKENS_CHANGED) != self._counts.get(TOKENS_CHANGED):
            self._forget_tokens()
        self._counts = counts
