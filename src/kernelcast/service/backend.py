"""The one place where the service asks the predictor, and the devices that it may ask about."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

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
    NoDeviceError,
)
from kernelcast.records.estimates import Estimate
from kernelcast.records.explanation import Tier
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.problem import Problem
from kernelcast.service.errors import message_of
from kernelcast.service.redaction import redact, redact_estimate, redact_paths


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    problem: Problem
    device: DeviceDescription
    settings: EstimateSettings
    timeout_s: float
    caller: str = ""


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
        """Give what the store and this process know of a launch."""
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

    def sample(self, ask: Ask) -> Answer:
        """Answer by running work-groups; called by one thread at a time for each device."""
        return self._ask(ask, lambda: self._answer(ask, ask.settings))

    def model(self, ask: Ask) -> Estimate:
        """Answer by the analytic model alone, in a process of its own."""
        return self._ask(
            ask, lambda: self._answer(ask, replace(ask.settings, samples=False))
        ).estimate

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

    def _answer(self, ask: Ask, settings: EstimateSettings) -> Answer:
        policy = Policy(settings=settings, timeout_s=ask.timeout_s, spares_samples=True)
        found: list[Answer] = []
        self._predictor.estimate(ask.problem, ask.device, policy=policy, keep=found.append)
        return found[0]

    def _ask(self, ask: Ask, answer: Callable[[], Answer]) -> Answer:
        with _telling_own(ask), asked_by(ask.caller):
            found = answer()
        return replace(
            found,
            estimate=redact_estimate(found.estimate, ask.problem.kernel),
            refine=None if found.refine is None else partial(self._ask, ask, found.refine),
        )


@contextlib.contextmanager
def _telling_own(ask: Ask) -> Iterator[None]:
    """Have errors quote the submitted source and no other file, and name no path of this host."""
    try:
        yield
    except (CompileError, KernelRunError) as error:
        error.args = (redact(str(error), ask.problem.kernel),)
        raise
    except KernelcastError as error:
        error.args = (redact_paths(str(error)),)
        raise


class DeviceDirectory:
    """The devices of this host by their ids, asked for now and then."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._devices: dict[str, DeviceDescription] = {}
        self._ends_s = 0.0
        self._lock = asyncio.Lock()

    async def list(self) -> Sequence[DeviceDescription]:
        return list((await self._read()).values())

    async def find(self) -> tuple[Sequence[DeviceDescription], str]:
        """Describe all devices, or say why there is none."""
        try:
            return await self.list(), ""
        except DeviceError as error:
            return [], message_of(error)

    async def ids(self) -> set[str]:
        """Give the ids of all devices; none where there is no device."""
        try:
            return set(await self._read())
        except NoDeviceError:
            return set()

    async def choose(self, wanted: Sequence[str]) -> Sequence[DeviceDescription]:
        """Give the devices of those ids or beginnings of ids, each once, or all of them."""
        return pick_devices(wanted, await self.list())

    async def _read(self) -> dict[str, DeviceDescription]:
        if time.monotonic() < self._ends_s:
            return self._devices
        async with self._lock:
            if time.monotonic() >= self._ends_s:
                found = await asyncio.to_thread(self._backend.list_devices)
                self._devices = {one.id: one for one in found}
                self._ends_s = time.monotonic() + 600.0
        return self._devices
