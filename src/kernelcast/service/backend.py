"""The one place where the service asks the predictor."""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from cachetools import LRUCache

from kernelcast.launches.devices import list_descriptions
from kernelcast.launches.machines import machine_path
from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor.answering.answerer import Answerer
from kernelcast.predictor.answering.composing import Remembered, answer_from_history
from kernelcast.predictor.answering.devices_at_work import ChildProcesses
from kernelcast.predictor.answering.doubts import update_doubts
from kernelcast.predictor.answering.launch_history import LaunchHistory
from kernelcast.predictor.answering.memory import Memory
from kernelcast.predictor.answering.shelf import ModelShelf
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import CompileError, KernelcastError, KernelRunError
from kernelcast.records.estimates import Estimate
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.problem import Problem
from kernelcast.service.redaction import redact, redact_estimate, redact_paths
from kernelcast.workers import Confinement

_MOST_ANSWERERS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One launch on one device."""

    problem: Problem
    device: DeviceDescription
    settings: EstimateSettings
    timeout_s: float


class Backend(Protocol):
    """Answers launches; tests have one that needs no device. Called from several threads."""

    def list_devices(self) -> Sequence[DeviceDescription]:
        """Describe the devices of this host."""
        ...

    def recall(self, ask: Ask, beside: Estimate | None = None) -> Estimate | None:
        """Answer from observations; None without any that are believed.

        An answer `beside` that stands is given back where it now has to say of others observations
        that they are not believed.
        """
        ...

    def history(self, launch: LaunchIdentity) -> LaunchHistory:
        """Give what is known of a launch, to judge observations by."""
        ...

    def sample(self, ask: Ask) -> Estimate:
        """Answer by running work-groups; called by one thread at a time for each device."""
        ...

    def model(self, ask: Ask) -> Estimate:
        """Answer by the analytic model alone."""
        ...

    def generation(self) -> int:
        """Give a number that changes when other models are to be used, learned or analytic."""
        ...


class PredictorBackend:
    """Asks devices of this host, each sampling in a process of its own.

    Notes
    -----
    Each sampling has a fresh process. A warm one would answer sooner, but in it a stranger's kernel
    could wait for the next stranger's.
    """

    def __init__(
        self, database: str, registry: str | None, confinement: Confinement | None = None
    ) -> None:
        self._asker = ChildProcesses(confinement)
        self._shelf = ModelShelf(registry)
        self._memory = Memory(database)
        self._answerers: LRUCache[tuple[EstimateSettings, float], Answerer] = LRUCache(
            _MOST_ANSWERERS
        )
        self._lock = threading.Lock()

    def list_devices(self) -> Sequence[DeviceDescription]:
        """Describe the devices of this host; their drivers are asked in a process of its own."""
        return list_descriptions()

    def recall(self, ask: Ask, beside: Estimate | None = None) -> Estimate | None:
        """Answer from observations of exactly this launch."""
        identity, history = self._recall(ask)
        if identity is None or isinstance(history, Remembered):
            return None
        facts, usual = history.describe(), history.answer(ask.settings.coverage)
        if usual is not None:
            return answer_from_history(ask.device, identity, usual, facts)
        updated = None if beside is None else update_doubts(beside, facts)
        return None if updated is beside else updated

    def history(self, launch: LaunchIdentity) -> LaunchHistory:
        """Give what the store and this process know of a launch."""
        return self._memory.recall_named(launch)

    def sample(self, ask: Ask) -> Estimate:
        """Answer by running work-groups in a process of its own."""
        answerer = self._choose(ask)
        with _telling_own(ask):
            outcome = answerer.sample(ask.problem, ask.device)
        learned = answerer.learn([outcome])[0]
        remembered = self._remember(ask)
        answer = answerer.compose(ask.problem, ask.device, outcome, learned, remembered)
        return redact_estimate(answer.estimate, ask.problem.kernel)

    def model(self, ask: Ask) -> Estimate:
        """Answer by the analytic model alone, in a process of its own."""
        answerer = self._choose(ask)
        remembered = self._remember(ask)
        with _telling_own(ask):
            estimate = answerer.answer_unsampled(ask.problem, ask.device, remembered)
        return redact_estimate(estimate, ask.problem.kernel)

    def generation(self) -> int:
        """Give a number that changes with the models in use, and with a new calibration."""
        changed: list[object] = [self._shelf.refresh()]
        for path in sorted(machine_path("any").parent.glob("*.yaml")):
            with contextlib.suppress(OSError):
                changed.append((path.name, path.stat().st_mtime_ns))
        return hash(tuple(changed))

    def _recall(self, ask: Ask) -> tuple[LaunchIdentity | None, LaunchHistory | Remembered]:
        answerer = self._choose(ask)
        identity = answerer.identify(ask.problem, ask.device)
        return identity, answerer.recall(identity, ask.problem, ask.device)

    def _remember(self, ask: Ask) -> Remembered:
        return self._choose(ask).remember(*self._recall(ask))

    def _choose(self, ask: Ask) -> Answerer:
        """Give the answerer of these settings; all share models and memory."""
        key = (ask.settings, ask.timeout_s)
        with self._lock:
            if key not in self._answerers:
                self._answerers[key] = Answerer(
                    settings=ask.settings,
                    asker=self._asker,
                    shelf=self._shelf,
                    memory=self._memory,
                    timeout_s=ask.timeout_s,
                )
            return self._answerers[key]


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
