"""What few programs change about a predictor."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kernelcast.launches.settings import DEFAULT_TIMEOUT_S, EstimateSettings
from kernelcast.predictor.answering.evidence import Foretell
from kernelcast.predictor.answering.processes import Executor, WarmProcesses
from kernelcast.predictor.answering.samples_store import SamplesStore
from kernelcast.sampling.contention_meter import METER, ContentionMeter


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorOptions:
    """What few programs change.

    Parameters
    ----------
    settings : EstimateSettings
        Budget, coverage, what may be used.
    timeout_s : float
        Time limit of one sampling, build included, in seconds.
    executor : Executor
        Has devices sample: each device in a process of its own unless another is given.
    samples_store : SamplesStore or None
        Where samples of launches are kept for other processes: in the data folder, nowhere if None
        or where the executor samples on no device of this machine.
    foretell : callable or None
        A model of one's own that needs no samples: gives the seconds of a problem on a device, or
        None. It counts where an evidence model knows its errors.
    clock : callable
        Gives seconds; for tests.
    """

    settings: EstimateSettings = field(default_factory=EstimateSettings)
    timeout_s: float = DEFAULT_TIMEOUT_S
    executor: Executor = field(default_factory=WarmProcesses)
    samples_store: SamplesStore | None = field(default_factory=SamplesStore)
    foretell: Foretell | None = None
    clock: Callable[[], float] = time.monotonic

    def choose_samples_store(self) -> SamplesStore | None:
        """Give the place of samples, where the executor samples on this machine's devices."""
        return self.samples_store if getattr(self.executor, "samples_here", False) else None

    def choose_meter(self) -> ContentionMeter | None:
        """Give what measures other programs: callers of a service run launches who knows where."""
        return METER if isinstance(self.executor, WarmProcesses) else None

    def end_children(self) -> None:
        """End the processes that samplings of this predictor have started."""
        if isinstance(self.executor, WarmProcesses):
            self.executor.close()
