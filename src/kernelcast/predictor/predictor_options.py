"""What few programs change about a predictor."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kernelcast.launches.settings import DEFAULT_TIMEOUT_S, EstimateSettings
from kernelcast.predictor.answering.devices_at_work import Asker
from kernelcast.predictor.answering.facts_store import FactsStore
from kernelcast.predictor.answering.standing import StandingProcesses


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorOptions:
    """What few programs change.

    Parameters
    ----------
    settings : EstimateSettings
        Budget, coverage, what may be used.
    timeout_s : float
        Time limit of one sampling, build included, in seconds.
    asker : Asker
        Has devices sample: each device in a process of its own unless another is given.
    facts_store : FactsStore or None
        Where facts about launches are kept for other processes: in the data folder unless another
        place is given, nowhere if None or if another asker is given.
    clock : callable
        Gives seconds; for tests.
    """

    settings: EstimateSettings = field(default_factory=EstimateSettings)
    timeout_s: float = DEFAULT_TIMEOUT_S
    asker: Asker = field(default_factory=StandingProcesses)
    facts_store: FactsStore | None = field(default_factory=FactsStore)
    clock: Callable[[], float] = time.monotonic

    def choose_facts_store(self) -> FactsStore | None:
        """Give the place of facts: what another asker finds is not this machine's."""
        return self.facts_store if isinstance(self.asker, StandingProcesses) else None

    def end_children(self) -> None:
        """End the processes that samplings of this predictor have started."""
        if isinstance(self.asker, StandingProcesses):
            self.asker.close()
