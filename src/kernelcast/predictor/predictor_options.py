"""What few programs change about a predictor."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kernelcast.predictor.answering.devices_at_work import Asker, ChildProcesses
from kernelcast.predictor.settings import DEFAULT_TIMEOUT_S, EstimateSettings


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
        Has devices sample: each sampling in a process of its own unless another is given.
    clock : callable
        Gives seconds; for tests.
    """

    settings: EstimateSettings = field(default_factory=EstimateSettings)
    timeout_s: float = DEFAULT_TIMEOUT_S
    asker: Asker = field(default_factory=ChildProcesses)
    clock: Callable[[], float] = time.monotonic
