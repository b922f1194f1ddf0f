"""The one place where the service asks the predictor."""

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kernelcast.predictor.answering.answerer import Answerer
from kernelcast.predictor.answering.composing import answer_from_history
from kernelcast.predictor.answering.devices_at_work import ChildProcesses
from kernelcast.predictor.answering.memory import Memory
from kernelcast.predictor.answering.shelf import ModelShelf
from kernelcast.predictor.devices import list_descriptions
from kernelcast.predictor.machines import machine_path
from kernelcast.predictor.settings import EstimateSettings
from kernelcast.records.device import DeviceDescription
from kernelcast.records.estimates import Estimate
from kernelcast.records.problem import Problem
from kernelcast.workers import Confinement

_MOST_ANSWERERS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One launch on one device.

    Parameters
    ----------
    problem : Problem
        The launch.
    device : DeviceDescription
        The device.
    settings : EstimateSettings
        Budget, coverage, seed.
    timeout_s : float
        Time limit of a sampling, in seconds.
    """

    problem: Problem
    device: DeviceDescription
    settings: EstimateSettings
    timeout_s: float


class Backend(Protocol):
    """Answers launches; tests have one that needs no device. Called from several threads."""

    def list_devices(self) -> Sequence[DeviceDescription]:
        """Describe the devices of this host."""
        ...

    def recall(self, ask: Ask) -> Estimate | None:
        """Answer from observations; None without any."""
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

    Parameters
    ----------
    database : str
        Store of observations.
    registry : str or None
        Where models are.
    confinement : Confinement or None
        What those processes may see; None: what this user can.

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
        self._answerers: OrderedDict[tuple[EstimateSettings, float], Answerer] = OrderedDict()
        self._lock = threading.Lock()

    def list_devices(self) -> Sequence[DeviceDescription]:
        """Describe the devices of this host; their drivers are asked in a process of its own."""
        return list_descriptions()

    def recall(self, ask: Ask) -> Estimate | None:
        """Answer from observations of exactly this launch."""
        answerer = self._choose(ask)
        identity = answerer.identify(ask.problem, ask.device)
        remembered = answerer.remember(identity, answerer.recall(identity))
        if identity is None or remembered.interval is None or remembered.facts is None:
            return None
        return answer_from_history(ask.device, identity, remembered.interval, remembered.facts)

    def sample(self, ask: Ask) -> Estimate:
        """Answer by running work-groups in a process of its own."""
        answerer = self._choose(ask)
        outcome = answerer.sample(ask.problem, ask.device)
        learned = answerer.learn([outcome])[0]
        identity = answerer.identify(ask.problem, ask.device)
        remembered = answerer.remember(identity, answerer.recall(identity))
        return answerer.compose(ask.problem, ask.device, outcome, learned, remembered).estimate

    def model(self, ask: Ask) -> Estimate:
        """Answer by the analytic model alone, in a process of its own."""
        answerer = self._choose(ask)
        identity = answerer.identify(ask.problem, ask.device)
        remembered = answerer.remember(identity, answerer.recall(identity))
        return answerer.answer_unsampled(ask.problem, ask.device, remembered)

    def generation(self) -> int:
        """Give a number that changes with the models in use, and with a new calibration."""
        changed: list[object] = [self._shelf.refresh()]
        for path in sorted(machine_path("any").parent.glob("*.yaml")):
            with contextlib.suppress(OSError):
                changed.append((path.name, path.stat().st_mtime_ns))
        return hash(tuple(changed))

    def _choose(self, ask: Ask) -> Answerer:
        """Give the answerer of these settings; all share models and memory."""
        key = (ask.settings, ask.timeout_s)
        with self._lock:
            found = self._answerers.get(key)
            if found is None:
                found = self._answerers[key] = Answerer(
                    settings=ask.settings,
                    asker=self._asker,
                    shelf=self._shelf,
                    memory=self._memory,
                    timeout_s=ask.timeout_s,
                )
                if len(self._answerers) > _MOST_ANSWERERS:
                    self._answerers.popitem(last=False)
            else:
                self._answerers.move_to_end(key)
            return found
